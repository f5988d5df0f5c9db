"""The tiny question before a model becomes a partition: who is kept out, who is not, and why."""

import json
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Lock, Thread
from typing import Any, Self

import pytest

from eval_pipeline.evaluation import catalog as module
from eval_pipeline.evaluation.catalog import Preflight, preflight
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.records.model import Model
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import a_model, a_question, settings_in

KEY = "sk-planted-0123456789"


class _Server(ThreadingHTTPServer):
    request_queue_size = 100


class Shop:
    """A gateway whose list, prices and manners can be changed while it runs."""

    def __init__(self) -> None:
        self.prices: dict[str, tuple[float, float]] = {}
        self.status: dict[str, int] = {}
        self.asked: list[dict[str, Any]] = []
        self.closed = False
        self.gate = Barrier(1)
        self.most_at_once = self._at_once = 0
        self._lock = Lock()

    def list_models(self) -> tuple[int, object]:
        entries = [
            {"id": name, "pricing": {"prompt": str(prompt), "completion": str(completion)}}
            for name, (prompt, completion) in self.prices.items()
        ]
        return (503, {"error": "closed"}) if self.closed else (200, {"data": entries})

    def answer(self, body: dict[str, Any]) -> tuple[int, object]:
        with self._lock:
            self.asked.append(body)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        self.gate.wait(timeout=30)
        with self._lock:
            self._at_once -= 1
        if (status := self.status.get(body["model"])) is not None:
            return status, {"error": {"message": f"{body['model']} says {status}"}}
        said = {"message": {"role": "assistant", "content": "yes"}, "finish_reason": "length"}
        return 200, {"choices": [{"index": 0, **said}]}

    def names_asked(self) -> list[str]:
        """Who was asked since the last time."""
        names = sorted(body["model"] for body in self.asked)
        self.asked.clear()
        return names

    def gateway(self, name: str = "shop", **more: object) -> dict[str, object]:
        return {"name": name, "kind": "openrouter", "base_url": self.url, **more}

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        serve = {"poll_interval": 0.01}
        self._thread = Thread(target=self._server.serve_forever, kwargs=serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(shop: Shop) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(*shop.list_models())

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            self._send(*shop.answer(json.loads(self.rfile.read(length))))

        def _send(self, status: int, content: object) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as shop:
        yield shop


def tried(settings: Settings, *models: Model, longest_s: float = 20) -> Preflight:
    return run_async(preflight(models, settings, longest_s=longest_s))


def some_models(count: int, **changes: object) -> list[Model]:
    return [a_model(f"x/m{number:02}", gateway="shop", **changes) for number in range(count)]


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        ({"status": {"demo/strong": 404}}, "unknown_model: HTTP 404: A simulated fault."),
        ({"status": {"demo/strong": 403}}, "forbidden: HTTP 403: A simulated fault."),
        ({"status": {"demo/strong": 500}}, "server_error: HTTP 500: A simulated fault."),
        ({"hang": 1}, "timeout: No whole reply within 0.3 s."),
        ({"reset": 1}, "connection_error: "),
        ({"invalid_json": 1}, "invalid_reply: "),
        ({"cut_stream": 1}, "cut_stream: "),
    ],
)
def test_a_model_for_which_nobody_answers_is_kept_out(
    tmp_path: Path, faults: dict[str, Any], reason: str
) -> None:
    with DemoGateway([a_question()], faults=Faults.model_validate(faults)) as gateway:
        demo = {"name": "demo", "kind": "demo", "base_url": gateway.base_url}
        settings = settings_in(tmp_path, gateways=[demo])

        found = tried(settings, a_model("demo/strong"), longest_s=0.3 if "hang" in faults else 20)

        assert list(found.kept_out) == ["demo/strong"]
        assert found.kept_out["demo/strong"].startswith(reason)
        why = found.kept_out["demo/strong"].rstrip(".")
        assert found.warnings == (f"Gateway 'demo': 1 model is kept out (demo/strong): {why}.",)
        assert gateway.requests["demo/strong"] == 1


@pytest.mark.parametrize(
    "faults",
    [
        {},
        {"status": {"demo/strong": 429}},
        {"status": {"demo/strong": 400}},
        {"context_too_long": 1},
        {"empty": 1},
    ],
)
def test_whatever_shows_that_somebody_is_there_is_enough(
    tmp_path: Path, faults: dict[str, Any]
) -> None:
    with DemoGateway([a_question()], faults=Faults.model_validate(faults)) as gateway:
        demo = {"name": "demo", "kind": "demo", "base_url": gateway.base_url}

        found = tried(settings_in(tmp_path, gateways=[demo]), a_model("demo/strong"))

        assert found == ({}, ())
        assert gateway.requests["demo/strong"] == 1


@pytest.mark.parametrize(("status", "trouble"), [(401, "auth"), (402, "no_credit")])
def test_a_gateways_own_trouble_is_told_once_and_keeps_nobody_out(
    tmp_path: Path, shop: Shop, status: int, trouble: str
) -> None:
    models = some_models(module.AT_ONCE * 3)
    shop.status = dict.fromkeys((model.request_name for model in models), status)
    other = a_model("demo/unheard-of")
    demo = {"name": "demo", "kind": "demo"}

    found = tried(settings_in(tmp_path, gateways=[shop.gateway(), demo]), *models, other)

    assert list(found.kept_out) == ["demo/unheard-of"]
    warning, _ = found.warnings
    assert warning.startswith("The models of gateway 'shop' are taken without a trial: ")
    assert f"{trouble}: HTTP {status}: x/m" in warning
    assert len(shop.asked) <= module.AT_ONCE


def test_without_its_key_a_gateway_is_asked_nothing(tmp_path: Path, shop: Shop) -> None:
    settings = settings_in(tmp_path, gateways=[shop.gateway(api_key_variable="SHOP_KEY")])

    found = tried(settings, *some_models(3))

    assert found.kept_out == {} and shop.asked == []
    (warning,) = found.warnings
    assert "'shop' needs a key: put SHOP_KEY=… into .env" in warning


@pytest.mark.parametrize(
    ("dialect", "limit"),
    [
        ("chat_completions", {"max_tokens": 1}),
        ("messages", {"max_tokens": 1}),
        ("responses", {"max_output_tokens": 16}),
    ],
)
@pytest.mark.parametrize("streaming", [True, False])
def test_the_question_is_as_small_as_its_dialect_allows(
    tmp_path: Path, shop: Shop, dialect: str, limit: dict[str, int], streaming: bool
) -> None:
    (model,) = some_models(1, dialect=dialect, streaming=streaming)
    shop.status = {model.request_name: 429}

    tried(settings_in(tmp_path, gateways=[shop.gateway()]), model)

    (body,) = shop.asked
    assert {name: body[name] for name in body if name.startswith("max_")} == limit
    assert body.get("stream", False) is streaming
    assert len(json.dumps(body)) < 300


def test_so_many_are_asked_at_once_and_no_more(tmp_path: Path, shop: Shop) -> None:
    # Nobody gets an answer before so many have asked, and one more would have had the time to.
    shop.gate = Barrier(module.AT_ONCE, action=partial(time.sleep, 0.2))

    found = tried(
        settings_in(tmp_path, gateways=[shop.gateway()]), *some_models(2 * module.AT_ONCE)
    )

    assert found == ({}, ())
    assert shop.most_at_once == module.AT_ONCE
    assert len(shop.names_asked()) == 2 * module.AT_ONCE


def test_a_key_that_the_server_repeats_is_not_told(tmp_path: Path) -> None:
    faults = Faults(echo_key=True, status={"demo/strong": 500, "demo/weak": 402})
    with DemoGateway([a_question()], api_key=KEY, faults=faults) as gateway:
        demo = {"name": "demo", "kind": "demo", "base_url": gateway.base_url}
        settings_in(tmp_path, gateways=[{**demo, "api_key_variable": "DEMO_KEY"}])
        written = {"EVALS_SETTINGS": str(tmp_path / "eval_pipeline.toml"), "DEMO_KEY": KEY}
        models = a_model("demo/strong"), a_model("demo/weak")

        found = tried(Settings.from_env(written), *models)

    assert len(found.warnings) == 2
    assert all("Your key is [DEMO_KEY]." in warning for warning in found.warnings)
    assert KEY not in repr(found)

"""The catalog: gateways are asked over real HTTP, and patterns pick models."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, Event, Thread
from typing import Any

import httpx
import pytest

from eval_pipeline.gateways import catalog as module
from eval_pipeline.gateways.catalog import Catalog, fetch, select
from eval_pipeline.gateways.model_lists import CatalogError, static_models
from eval_pipeline.records.model import Model
from eval_pipeline.settings.gateway import Gateway, Override, StaticModel
from eval_pipeline.settings.sections import Selection
from eval_pipeline.settings.settings import Settings

KEY = "sk-very/secret+key"

Answer = Callable[[BaseHTTPRequestHandler], tuple[int, bytes]]


def a_list(*ids: str) -> bytes:
    return json.dumps({"object": "list", "data": [{"id": model_id} for model_id in ids]}).encode()


@contextmanager
def a_server(answers: dict[str, Answer]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers[self.path](self)
            # A client that has given up is what some tests are about.
            with suppress(ConnectionError):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def a_client(gateway: Gateway) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {KEY}"}
    return httpx.AsyncClient(base_url=gateway.address or "", headers=headers)


def some_settings(*gateways: Gateway, **more: Any) -> Settings:
    suites = [{"name": "suite", "path": "suite.jsonl"}]
    required = {"root": ".", "suites": suites, "judge": {"model": "a/judge"}, "gateways": gateways}
    return Settings.model_validate(required | more)


def a_gateway(base_url: str, name: str, **more: Any) -> Gateway:
    return Gateway(**({"name": name, "kind": "openai", "base_url": f"{base_url}/{name}"} | more))


def fetched(settings: Settings, longest_s: float = 30) -> Catalog:
    hidden = partial(re.sub, re.escape(KEY), "***")
    return asyncio.run(fetch(settings, a_client, redact=hidden, longest_s=longest_s))


def ids(models: tuple[Model, ...]) -> list[str]:
    return [model.id for model in models]


def test_a_failing_gateway_costs_only_its_own_models() -> None:
    answers: dict[str, Answer] = {
        "/right/models": lambda _: (200, a_list("z", "a/b")),
        "/broken/models": lambda _: (500, b"<h1>out of\norder</h1>"),
        "/nonsense/models": lambda _: (200, b"<html>"),
        "/garbled/models": lambda _: (-1, b""),
    }

    with a_server(answers) as url:
        gateways = [a_gateway(url, name) for name in ("broken", "nonsense", "garbled", "right")]
        catalog = fetched(some_settings(*gateways))

    assert ids(catalog.models) == ["a/b", "right/z"]
    assert catalog.failed == {
        "broken": "Gateway 'broken' answered with status 500 (<h1>out of order</h1>).",
        "nonsense": "Gateway 'nonsense' did not answer with JSON.",
        "garbled": catalog.warnings[2],
    }
    assert catalog.warnings[:2] == tuple(catalog.failed.values())[:2]
    assert catalog.warnings[2].startswith("Gateway 'garbled' could not be asked (illegal ")


def test_if_every_gateway_fails_the_error_names_each() -> None:
    with a_server({"/one/models": lambda _: (401, b"")}) as url:
        settings = some_settings(a_gateway(url, "one"), a_gateway("http://127.0.0.1:1", "two"))

        with pytest.raises(CatalogError, match=r"'one' answered .* 401 .*'two' could not be asked"):
            fetched(settings)


@pytest.mark.parametrize(
    "say",
    [
        lambda key: (500, f"no such key: {key}".encode()),
        lambda key: (401, json.dumps({"error": key}).replace("/", "\\/").encode()),
        lambda key: (500, ("x" * 190 + key).encode()),
        lambda key: (200, a_list(f"bad id {key}")),
        lambda key: (200, a_list("x" * 75 + " " + key)),
    ],
)
def test_a_key_that_is_echoed_stays_secret(say: Callable[[str], tuple[int, bytes]]) -> None:
    def echo(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        return say(request.headers["Authorization"].removeprefix("Bearer "))

    with a_server({"/echo/models": echo, "/right/models": lambda _: (200, a_list())}) as url:
        catalog = fetched(some_settings(a_gateway(url, "echo"), a_gateway(url, "right")))

    (warning,) = catalog.warnings
    assert ("***" in warning, "sk-" in warning) == (True, False)


@pytest.mark.parametrize(
    ("body", "reason"),
    [(body, "did not answer with JSON") for body in (b"[" * 40_000, b"9" * 5_000, b"\xff\xfe", b"")]
    + [(b" " * 50_001, "answered with more than 50000 bytes")],
)
def test_a_hostile_body_is_refused(
    body: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST_LIST", 50_000)

    with (
        a_server({"/one/models": lambda _: (200, body)}) as url,
        pytest.raises(CatalogError, match=reason),
    ):
        fetched(some_settings(a_gateway(url, "one")))


def test_a_gateway_that_takes_too_long_is_left_out() -> None:
    left = Event()

    def slow(_: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        left.wait(60)
        return 200, a_list()

    with a_server({"/slow/models": slow, "/right/models": lambda _: (200, a_list("a"))}) as url:
        settings = some_settings(a_gateway(url, "slow"), a_gateway(url, "right"))
        catalog = fetched(settings, longest_s=1)
        left.set()

    assert ids(catalog.models) == ["right/a"]
    assert catalog.failed == {"slow": "Gateway 'slow' did not list its models within 1 s."}


def test_gateways_are_asked_at_the_same_time() -> None:
    both = Barrier(2, timeout=60)

    def meet(_: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        both.wait()
        return 200, a_list("m")

    with a_server({"/a/models": meet, "/b/models": meet}) as url:
        catalog = fetched(some_settings(a_gateway(url, "a"), a_gateway(url, "b")))

    assert ids(catalog.models) == ["a/m", "b/m"]


def test_the_list_may_be_elsewhere() -> None:
    with a_server({"/list": lambda _: (200, a_list("m"))}) as url:
        gateway = a_gateway(url, "one", models_url=f"{url}/list")

        assert ids(fetched(some_settings(gateway)).models) == ["one/m"]


def test_a_gateway_with_static_models_is_not_asked() -> None:
    gateway = a_gateway("http://127.0.0.1:1", "own", models=(StaticModel(id="own/model"),))

    assert ids(fetched(some_settings(gateway)).models) == ["own/model"]


def test_the_first_gateway_wins_a_model_that_two_offer() -> None:
    answers: dict[str, Answer] = {
        "/b/models": lambda _: (200, a_list("x/m")),
        "/a/models": lambda _: (200, a_list("x/m", "x/n", "x/n")),
    }

    with a_server(answers) as url:
        catalog = fetched(some_settings(a_gateway(url, "b"), a_gateway(url, "a")))

    assert [(model.id, model.gateway) for model in catalog.models] == [("x/m", "b"), ("x/n", "a")]
    assert catalog.warnings == (
        "Gateway 'a': model 'x/m' is left out: it is already listed by gateway 'b'.",
        "Gateway 'a': model 'x/n' is left out: it is already listed by gateway 'a'.",
    )


def test_overrides_change_only_what_they_state() -> None:
    models = (StaticModel(id="x/m:p", max_output_tokens=5), StaticModel(id="x/m:q"))
    gateway = Gateway(name="zenmux", kind="zenmux", models=models)
    overrides = {
        "x/m": Override(system_role=False, input_modalities=("text", "image")),
        "x/m:q": Override(system_role=True, temperature=False),
    }

    one, two = fetched(some_settings(gateway, overrides=overrides)).models

    assert (one.system_role, one.temperature, one.max_output_tokens) == (False, True, 5)
    assert (two.system_role, two.temperature, two.sees_images) == (True, False, True)


def a_model(model_id: str, *modalities: str) -> Model:
    static = StaticModel(id=model_id, input_modalities=modalities or ("text",))
    return static_models(Gateway(name="zenmux", kind="zenmux", models=(static,)))[0]


MODELS = (
    MINI := a_model("openai/gpt-5-mini:openai"),
    GPT := a_model("openai/gpt-5:openai"),
    AZURE := a_model("openai/gpt-5:azure"),
    COPY := a_model("mirror/gpt-5"),
    SONNET := a_model("anthropic/claude-sonnet-4.5:amazon-bedrock"),
    NOVA := a_model("amazon/nova:amazon-bedrock"),
)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (" OpenAI/GPT-5:Azure", [AZURE]),
        ("openai/gpt-5", [GPT, AZURE]),
        ("openai", [MINI, GPT, AZURE]),
        ("gpt-5", [GPT, AZURE, COPY]),
        ("gpt-5:openai", [GPT]),
        ("gpt", [MINI, GPT, AZURE, COPY]),
        ("*:A*", [AZURE, SONNET, NOVA]),
        ("openai/gpt-?", [GPT, AZURE]),
        ("*/gpt-5", [GPT, AZURE, COPY]),
        ("gpt-*", []),
        ("[o]penai*", []),
        ("", []),
    ],
)
def test_a_pattern_means_the_first_way_that_matches(pattern: str, expected: list[Model]) -> None:
    taken = select(MODELS, Selection(models=(pattern,)), text_only=False)
    left = select(MODELS, Selection(exclude_models=(pattern,)), text_only=False)

    assert list(taken.models) == expected
    assert list(left.models) == [model for model in MODELS if model not in expected]
    assert len(taken.warnings) == len(left.warnings) == (0 if expected else 1)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("Azure", [AZURE]),
        ("bedrock", [SONNET, NOVA]),
        ("a*", [AZURE, SONNET, NOVA]),
        ("anthropic", []),
    ],
)
def test_a_provider_is_excluded_by_its_slug(pattern: str, expected: list[Model]) -> None:
    selected = select(MODELS, Selection(exclude_providers=(pattern,)), text_only=False)

    assert list(selected.models) == [model for model in MODELS if model not in expected]
    assert len(selected.warnings) == (0 if expected else 1)


def test_inclusions_and_exclusions_add_up() -> None:
    excluded = {"exclude_models": ("gpt-5-mini", "nova"), "exclude_providers": ("azure",)}
    selection = Selection(models=("openai", "claude-sonnet-4.5"), **excluded)

    assert select(MODELS, selection, text_only=False) == ((GPT, SONNET), ())


def test_a_pattern_without_a_match_is_named_with_what_it_may_have_meant() -> None:
    selection = Selection(models=("gpt5-mini", "qqqq"), exclude_providers=("azur3",))

    models, (mini, unlike, provider) = select(MODELS, selection, text_only=False)

    assert models == ()
    assert mini == "No model matches 'gpt5-mini'; closest: openai/gpt-5-mini:openai."
    assert unlike == "No model matches 'qqqq'."
    assert provider == "No provider matches 'azur3'; closest: azure."


def test_at_most_three_models_are_proposed() -> None:
    models = [a_model(f"vendor/model-{number}") for number in range(9)]

    (warning,) = select(models, Selection(models=("vendor/modle-1",)), text_only=False).warnings

    assert warning.count("vendor/model-") == 3


def test_only_a_text_only_run_drops_models_that_can_not_read() -> None:
    models = (a_model("a/whisper", "audio"), a_model("a/vision", "image", "text"))

    assert select(models, Selection(), text_only=True) == (models[1:], ())
    assert select(models, Selection(), text_only=False) == (models, ())

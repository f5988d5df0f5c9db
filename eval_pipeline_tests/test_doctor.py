"""`evals doctor` as people and programs see it; no secret is ever in what it says."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest

from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.project import ROOT, call
from eval_pipeline_tests.terminal import in_terminal

KEY = "sk-planted-0123456789"
SPELLED = 'sk-"planted"/0123456789'
"""One that JSON and addresses write in other ways."""
TOPICS = [
    "installation",
    "settings",
    "gateways",
    "models",
    "suites",
    "disk",
    "results",
    "locks",
    "Dagster",
]


class Echo:
    """A gateway that says the key that it was sent, wherever it can."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.status, self.listed = 401, False
        echo = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                key = self.headers["authorization"].removeprefix("Bearer ")
                echo.asked.append(key)
                self.send_response(echo.status)
                self.end_headers()
                self.wfile.write(json.dumps(echo.answer(key)).encode())

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, key: str) -> object:
        if not self.listed:
            return {"error": f"{key} is wrong", key: [f"\x1b[31m{key}"]}
        return {"data": [{"id": "x/a"}, {"id": key}, {"id": f"x/{key}"}, {"id": 7, "name": key}]}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which nothing is wrong."""
    folder = tmp_path_factory.mktemp("healthy")
    settings_in(folder, budget={"usd_per_run": 1.0})
    (folder / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    return folder


def with_echo(folder: Path, echo: Echo, key: str = KEY, **changes: Any) -> Path:
    shop = {"name": "shop", "kind": "openai", "base_url": echo.url, "api_key_variable": "SHOP_KEY"}
    settings_in(folder, gateways=[shop], **changes)
    (folder / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    (folder / ".env").write_text(f"SHOP_KEY='{key}'\n")
    (folder / ".env").chmod(0o600)
    return folder


def test_in_a_pipe_every_finding_is_a_line_and_all_is_well(healthy: Path) -> None:
    done = call(healthy, "evals doctor")

    assert done.returncode == 0, done.stdout
    *lines, last = done.stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    assert list(dict.fromkeys(line.split()[1].rstrip(":") for line in lines)) == TOPICS
    assert "ok       suites: sample: 3 questions." in lines
    assert last == f"{len(lines)} looked at: 0 wrong, 0 to be warned of. An evaluation can begin."
    assert done.stderr == ""


def test_json_has_the_same_findings_and_nothing_else(healthy: Path) -> None:
    done = call(healthy, "evals doctor --json")

    document = json.loads(done.stdout)
    assert document["ok"] is True
    assert list(dict.fromkeys(one["topic"] for one in document["checks"])) == TOPICS
    assert {tuple(one) for one in document["checks"]} == {
        ("topic", "name", "state", "found", "advice")
    }


def test_a_terminal_of_80_columns_shows_marks_and_what_to_do(tmp_path: Path) -> None:
    settings_in(tmp_path, judge={"model": "demo/" + "very-long-name-" * 6})

    with in_terminal(tmp_path, "evals doctor") as terminal:
        ended = terminal.end()
        lines = terminal.everything.splitlines()

    assert ended == 1
    judge = next(n for n, line in enumerate(lines) if line.startswith("✗ judge"))
    assert lines[judge + 2].strip().endswith("name-.")
    assert lines[judge + 3].strip().startswith("→ Name a model that is listed:")
    assert any(line.startswith("✓ sample") for line in lines)
    assert any(line.startswith("! budget") for line in lines)


@pytest.mark.parametrize("form", ["", " --json"])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("key", [KEY, SPELLED])
def test_a_key_is_never_told_not_even_if_the_gateway_tells_it(
    tmp_path: Path, echo: Echo, form: str, listed: bool, key: str
) -> None:
    project = with_echo(tmp_path, echo, key, selection={"exclude_models": [f"y/{key}"]})
    echo.listed, echo.status = listed, 200 if listed else 401

    done = call(project, f"evals doctor{form}")

    assert echo.asked == [key]
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "SHOP_KEY is set." in said
    assert "[SHOP_KEY]" in said
    for spelling in (key, json.dumps(key)[1:-1], quote(key, safe=""), "0123456789"):
        assert spelling not in said
    assert "\x1b" not in said


def test_offline_nobody_is_asked(tmp_path: Path, echo: Echo) -> None:
    project = with_echo(tmp_path, echo)

    done = call(project, "evals doctor --offline")

    assert echo.asked == []
    assert done.returncode == 0, done.stdout
    assert "ok       gateways: key of shop: SHOP_KEY is set." in done.stdout
    assert "models:" not in done.stdout


def test_keys_that_others_can_read_are_warned_of_which_is_no_failure(
    tmp_path: Path, echo: Echo
) -> None:
    project = with_echo(tmp_path, echo)
    (project / ".env").chmod(0o644)

    done = call(project, "evals doctor --offline")

    assert done.returncode == 0
    assert "warning  settings: .env: Other users of this machine can read it." in done.stdout
    assert "To do: chmod 600 .env" in done.stdout


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file"),
        ("suites = [", "can not be read as TOML"),
        ("suites = 1", "suites: "),
    ],
)
def test_settings_that_can_not_be_read_are_told_and_the_rest_is_left(
    tmp_path: Path, content: str | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "eval_pipeline.toml").write_text(content)

    done = call(tmp_path, "evals doctor --json")

    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert document["ok"] is False
    assert [one["topic"] for one in document["checks"]] == ["installation"] * 2 + ["settings"]
    assert words in document["checks"][-1]["found"]
    assert "Traceback" not in done.stderr

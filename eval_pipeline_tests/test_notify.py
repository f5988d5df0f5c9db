"""The message about a failed run, and how it is posted: to a real server on loopback."""

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import SecretStr

from eval_pipeline.defs import notifications
from eval_pipeline.defs.notifications import Failed, NotifyError, message, post
from eval_pipeline.results.runs import Ended
from eval_pipeline_tests.builders import NOON

SECRET = "T0000/B0000/planted-0123456789"


class Webhook:
    """A server that keeps what is posted, and answers as it is told: the last answer stays."""

    def __init__(self, address: str, statuses: tuple[int, ...]) -> None:
        self.address = address
        self.posts: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._statuses = list(statuses)

    @property
    def secret(self) -> SecretStr:
        return SecretStr(f"{self.address}/services/{SECRET}")

    def status(self) -> int:
        return self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]


@contextmanager
def a_webhook(*statuses: int, silent_s: float = 0, drips: bool = False) -> Iterator[Webhook]:
    """Listens on loopback until the end; a redirect leads back to the same server."""

    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            webhook.posts.append(json.loads(body))
            webhook.paths.append(self.path)
            ended.wait(silent_s)
            if drips:
                self._drip()
            else:
                self._answer()

        def _answer(self) -> None:
            self.send_response(webhook.status())
            self.send_header("Location", f"{webhook.address}/elsewhere/{SECRET}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _drip(self) -> None:
            """A header that does not end."""
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
            with suppress(OSError):
                while not ended.wait(0.02):
                    self.wfile.write(b"x")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    webhook = Webhook(f"http://127.0.0.1:{server.server_port}", statuses or (200,))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield webhook
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "WAIT_S", 0.01)


def a_failure(**changes: object) -> Failed:
    values = {
        "what": "evaluate",
        "models": "`demo/strong`",
        "reason": "predictions: the key was refused",
        "ended": (),
        "link": "http://127.0.0.1:3000/runs/abc",
    }
    return Failed.model_validate({**values, **changes})


def an_ending(**changes: object) -> Ended:
    values = {"model": "demo/strong", "planned": 4, "predicted": "ok 3, timeout 1", "judged": ""}
    return Ended.model_validate({**values, "cost_usd": 0.25, "costs_unknown": 0, **changes})


def as_it_is(text: str) -> str:
    return text


def text_of(failed: Failed, redact: Callable[[str], str] = as_it_is) -> str:
    return message(failed, redact)["text"]


def test_the_message_tells_what_failed_why_how_far_and_where_to_look() -> None:
    standing = an_ending(judged="ok 2, judge_unparsable 1")

    text = text_of(a_failure(ended=(standing,)))

    assert text.splitlines() == [
        ":x: *evaluate failed* for `demo/strong`",
        "Why: `predictions: the key was refused`",
        "`demo/strong`: ok 3, timeout 1 (of 4); judged: ok 2, judge_unparsable 1",
        "Cost so far: 0.2500 USD",
        "<http://127.0.0.1:3000/runs/abc|Open the run in Dagster>",
    ]


def test_without_counts_there_is_still_a_message() -> None:
    text = text_of(a_failure(models=None, what="refresh_catalog"))

    assert text.splitlines() == [
        ":x: *refresh_catalog failed*",
        "Why: `predictions: the key was refused`",
        "<http://127.0.0.1:3000/runs/abc|Open the run in Dagster>",
    ]


def test_of_what_is_no_news_it_is_told_when_it_was() -> None:
    text = text_of(a_failure(at=NOON))

    assert text.splitlines()[0] == (
        ":x: *evaluate failed* for `demo/strong` at 2025-01-01 12:00 UTC"
    )


def test_of_many_models_the_first_are_shown_and_all_are_paid_for() -> None:
    many = tuple(an_ending(model=f"a/m{number}", costs_unknown=number) for number in range(12))

    lines = text_of(a_failure(ended=many)).splitlines()

    assert [line for line in lines if line.startswith("`a/")][-1].startswith("`a/m9`")
    assert "… and 2 more models" in lines
    assert "Cost so far: at least 3.0000 USD" in lines


@pytest.mark.parametrize(
    ("hostile", "expected"),
    [
        ("<!here> <!channel> <@U1>", "&lt;!here&gt; &lt;!channel&gt; &lt;@\u200bU1&gt;"),
        ("@channel @everyone", "@\u200bchannel @\u200beveryone"),
        ("<https://bad.example|your key>", "&lt;https://bad.example|your key&gt;"),
        ("&lt;!here&gt;", "&amp;lt;!here&amp;gt;"),
        ("` <!here> `", "' &lt;!here&gt; '"),
        ("one\r\n*two*\u2028\tthree", "one *two* three"),
        ("\x1b[31mred\x00\u202e\ud800", "[31mred"),
        ("x" * 501, "x" * 499 + "…"),
        ("<" * 500, "&lt;" * 500),
        ("", ""),
    ],
)
def test_a_servers_words_are_shown_and_do_nothing(hostile: str, expected: str) -> None:
    text = text_of(a_failure(reason=hostile))

    assert text.splitlines()[1] == f"Why: `{expected}`"
    assert len(text.splitlines()) == 3


def test_a_models_name_does_nothing_either() -> None:
    text = text_of(a_failure(ended=(an_ending(model="a/<!here>`\n"),)))

    assert "\n`a/&lt;!here&gt;'`: ok 3" in text


def test_a_key_is_cut_out_before_the_words_are_cut() -> None:
    reason = "x" * 495 + SECRET

    text = text_of(a_failure(reason=reason), lambda words: words.replace(SECRET, "[KEY]"))

    assert SECRET[:4] not in text
    assert "[KEY]" in text


def test_a_message_is_posted_once_as_json(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    with a_webhook() as webhook:
        post(webhook.secret, {"text": "it failed"})

    assert webhook.posts == [{"text": "it failed"}]
    assert webhook.paths == [f"/services/{SECRET}"]
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("statuses", "said", "posts"),
    [
        ((404,), "status 404", 1),
        ((400,), "status 400", 1),
        ((302,), "status 302", 1),
        ((307,), "status 307", 1),
        ((500,), "status 500", 2),
        ((429,), "status 429", 2),
        ((503, 403), "status 403", 2),
    ],
)
def test_what_is_not_taken_is_told_without_the_address(
    statuses: tuple[int, ...], said: str, posts: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    with a_webhook(*statuses) as webhook, pytest.raises(NotifyError) as caught:
        post(webhook.secret, {"text": "it failed"})

    assert str(caught.value) == f"The webhook did not take the message: {said}."
    assert webhook.paths == [f"/services/{SECRET}"] * posts
    assert SECRET not in caplog.text
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_second_attempt_may_do_better() -> None:
    with a_webhook(502, 200) as webhook:
        post(webhook.secret, {"text": "it failed"})

    assert len(webhook.posts) == 2


@pytest.mark.parametrize("how", [{"silent_s": 30}, {"drips": True}])
def test_a_webhook_that_does_not_come_to_an_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    monkeypatch.setattr(notifications, "LIMIT_S", 0.1)

    with a_webhook(**how) as webhook, pytest.raises(NotifyError) as caught:
        post(webhook.secret, {"text": "it failed"})

    assert str(caught.value) == "The webhook did not take the message: no answer within 0.1 s."
    assert len(webhook.posts) == 2


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:{port}", "connection refused"),
        ("http://127.0.0.1:{port}:1", "EVALS_WEBHOOK_URL is no address"),
        ("ftp://127.0.0.1:{port}", "EVALS_WEBHOOK_URL is no address"),
        ("http://hooks..test:{port}", "EVALS_WEBHOOK_URL is no address"),
    ],
)
def test_nobody_there_is_told_without_the_address(
    address: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening
        nowhere = address.format(port=taken.getsockname()[1])

        with pytest.raises(NotifyError) as caught:
            post(SecretStr(f"{nowhere}/{SECRET}"), {"text": "it failed"})

    assert str(caught.value) == f"The webhook did not take the message: {said}."
    assert SECRET not in caplog.text
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_server_without_a_certificate_is_no_secure_connection() -> None:
    with a_webhook() as webhook, pytest.raises(NotifyError, match="no secure connection"):
        post(SecretStr(webhook.address.replace("http:", "https:")), {"text": "it failed"})

    assert webhook.posts == []


def test_what_others_log_meanwhile_stays(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    with a_webhook(silent_s=0.3) as webhook:
        posting = threading.Thread(target=post, args=(webhook.secret, {"text": "it failed"}))
        posting.start()
        while not webhook.posts:
            posting.join(0.01)
        logging.getLogger("httpx").info("somebody else's request")
        posting.join()

    assert [record.getMessage() for record in caplog.records] == ["somebody else's request"]
    assert logging.getLogger("httpx").filters == []

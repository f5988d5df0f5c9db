"""What a transport that repeats requests must and must not do."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from retrying import RetryTransport

NOW = datetime(2025, 3, 9, 12, 0, 0, tzinfo=UTC)
URL = "https://api.example.test/things"


class Body(httpx.SyncByteStream):
    """The body of a reply, whose closing is written down."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name = name
        self._log = log

    def __iter__(self) -> Iterator[bytes]:
        yield self._name.encode()

    def close(self) -> None:
        self._log.append(f"close {self._name}")


class Server(httpx.BaseTransport):
    """Gives the planned outcomes, one after the other, and writes down what happens."""

    def __init__(self, *outcomes: int | tuple[int, str] | Exception) -> None:
        self.outcomes = list(outcomes)
        self.bodies: list[bytes] = []
        self.waits: list[float] = []
        self.log: list[str] = []
        self.closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)
        self.bodies.append(b"".join(request.stream))
        name = f"reply {len(self.bodies)}"
        self.log.append(name)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        status, retry_after = outcome if isinstance(outcome, tuple) else (outcome, None)
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        return httpx.Response(status, headers=headers, stream=Body(name, self.log))

    def close(self) -> None:
        self.closed = True

    def sleep(self, seconds: float) -> None:
        self.log.append("sleep")
        self.waits.append(seconds)

    def send(self, method: str, *, attempts: int = 4, **options: Any) -> int:
        transport = RetryTransport(self, attempts=attempts, sleep=self.sleep, now=lambda: NOW)
        with httpx.Client(transport=transport) as client:
            return client.request(method, URL, **options).status_code


@pytest.mark.parametrize("status", [200, 301, 400, 404, 500, 501])
def test_other_replies_are_returned_at_once(status: int) -> None:
    server = Server(status)
    assert server.send("GET") == status
    assert server.waits == []


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_passing_troubles_are_waited_out_with_doubling_waits(status: int) -> None:
    server = Server(status, status, status, 200)
    assert server.send("GET") == 200
    assert server.waits == [0.5, 1.0, 2.0]


def test_the_last_reply_is_returned_as_it_is() -> None:
    server = Server(503, (429, "7"), (503, "9"))
    transport = RetryTransport(server, attempts=3, sleep=server.sleep, now=lambda: NOW)
    with httpx.Client(transport=transport) as client:
        reply = client.get(URL)
    assert (reply.status_code, reply.text) == (503, "reply 3")
    assert server.waits == [0.5, 7.0]


def test_the_last_exception_is_raised_as_it_is() -> None:
    errors = [httpx.ReadTimeout("first"), httpx.ReadError("second")]
    server = Server(*errors)
    with pytest.raises(httpx.ReadError) as caught:
        server.send("GET", attempts=2)
    assert caught.value is errors[1]
    assert server.waits == [0.5]


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE"])
def test_safe_methods_are_repeated_after_any_failure(method: str) -> None:
    server = Server(httpx.ReadTimeout("slow"), 502, httpx.RemoteProtocolError("cut"), 204)
    assert server.send(method) == 204
    assert len(server.bodies) == 4


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_unsafe_requests_are_not_repeated_once_they_may_have_arrived(method: str) -> None:
    server = Server(503)
    assert server.send(method, content=b"pay") == 503
    server = Server(httpx.ReadTimeout("slow"))
    with pytest.raises(httpx.ReadTimeout):
        server.send(method, content=b"pay")
    assert len(server.bodies) == 1
    assert server.waits == []


def test_unsafe_requests_with_an_idempotency_key_are_repeated() -> None:
    server = Server(httpx.WriteError("cut"), 503, 201)
    assert server.send("POST", content=b"pay", headers={"idempotency-key": "k1"}) == 201
    assert server.bodies == [b"pay"] * 3


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ConnectTimeout("slow")])
def test_unsafe_requests_that_were_never_sent_are_repeated(error: Exception) -> None:
    server = Server(error, 201)
    assert server.send("POST", content=b"pay") == 201
    assert server.waits == [0.5]


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("0", 0.0),
        ("17", 17.0),
        ("60", 60.0),
        ("Sun, 09 Mar 2025 12:00:42 GMT", 42.0),
        ("Sun, 09 Mar 2025 11:59:00 GMT", 0.0),
        ("soon", 0.5),
        ("-5", 0.5),
        ("1.5", 0.5),
        ("", 0.5),
    ],
)
def test_retry_after_says_how_long_to_wait(retry_after: str, wait: float) -> None:
    server = Server((503, retry_after), 200)
    assert server.send("GET") == 200
    assert server.waits == [wait]


def test_own_waits_go_on_doubling_after_a_wait_that_was_asked_for() -> None:
    server = Server(503, (503, "30"), httpx.ReadError("cut"), 200)
    assert server.send("GET") == 200
    assert server.waits == [0.5, 30.0, 2.0]


@pytest.mark.parametrize("retry_after", ["61", "3600", "Sun, 09 Mar 2025 12:01:01 GMT"])
def test_nobody_waits_longer_than_a_minute(retry_after: str) -> None:
    server = Server((429, retry_after))
    assert server.send("GET") == 429
    assert server.waits == []


def test_a_reply_that_is_not_returned_is_closed_before_the_wait() -> None:
    server = Server(503, 502, 200)
    assert server.send("GET") == 200
    assert server.log == [
        *("reply 1", "close reply 1", "sleep"),
        *("reply 2", "close reply 2", "sleep"),
        *("reply 3", "close reply 3"),
    ]


def test_the_reply_that_is_returned_can_still_be_streamed() -> None:
    server = Server(503, 200)
    transport = RetryTransport(server, attempts=2, sleep=server.sleep, now=lambda: NOW)
    with httpx.Client(transport=transport) as client, client.stream("GET", URL) as reply:
        assert "close reply 2" not in server.log
        assert b"".join(reply.iter_bytes()) == b"reply 2"


def test_a_body_from_a_generator_is_sent_whole_every_time() -> None:
    def body() -> Iterator[bytes]:
        yield b"first "
        yield b"second"

    server = Server(503, httpx.WriteTimeout("slow"), 200)
    assert server.send("PUT", content=body()) == 200
    assert server.bodies == [b"first second"] * 3


def test_closing_it_closes_the_inner_transport() -> None:
    server = Server(200)
    server.send("GET")
    assert server.closed

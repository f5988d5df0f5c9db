"""What becomes of a reply on the wire, over real HTTP: whole replies, streams, and all the rest."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from eval_pipeline.gateways import client
from eval_pipeline.gateways.chat import ChatReply
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.records.outcome import Outcome
from eval_pipeline_tests.builders import a_question
from eval_pipeline_tests.wire import (
    END,
    KEY,
    PARTIAL,
    STREAM,
    a_request,
    complete,
    delta,
    error_of,
    http,
    reply_to,
    scripted,
    whole,
)


def test_streaming_and_not_streaming_give_the_same_reply() -> None:
    with DemoGateway([a_question()]) as gateway:
        streamed = complete(gateway.base_url, a_request(stream=True))
        at_once = complete(gateway.base_url, a_request(stream=False))

    def alike(reply: ChatReply) -> ChatReply:
        return reply._replace(latency_s=0.0, first_token_s=None, generation_id=None)

    assert alike(streamed) == alike(at_once)
    assert streamed.text.startswith("Explanation: Simulated reply:")
    assert streamed.outcome is Outcome.OK
    assert streamed.usage.output_tokens


def test_a_request_goes_to_the_address_of_its_dialect_with_the_key() -> None:
    with scripted(whole({"content": "Hello."})) as server:
        complete(server.base_url, a_request(stream=False))

    assert server.body == {"model": "demo/strong", "messages": list(a_request().messages)}
    assert (server.path, server.key) == ("/v1/chat/completions", f"Bearer {KEY}")


TEXT = "a\u2028b é"
SAID = delta({"content": TEXT})


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(SAID + END, id="as ever"),
        pytest.param(SAID.decode().replace("\\u2028", "\u2028").encode() + END, id="unescaped"),
        pytest.param((SAID + END).replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(b": wait\n\n" + SAID + b": wait\n\n" + END, id="comments"),
        pytest.param(b"event: message\nid: 7\nretry: 10\n" + SAID + END, id="other fields"),
        pytest.param((SAID + END).replace(b"data: ", b"data:"), id="no space after the colon"),
        pytest.param(SAID + delta({}, "stop"), id="no DONE"),
        pytest.param(delta({"content": TEXT}, "stop"), id="all at once"),
        pytest.param(b"data: {}\n\n" + SAID + END, id="nothing"),
    ],
)
def test_a_stream_may_be_written_in_many_ways(events: bytes) -> None:
    reply = reply_to(http(events, STREAM))

    assert (reply.text, reply.outcome) == (TEXT, Outcome.OK)


class Pieces:
    """On a real socket pieces join as they like; here every one arrives on its own."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._left = iter(pieces)

    async def readany(self) -> bytes:
        return next(self._left, b"")


def events_in(pieces: list[bytes]) -> list[Any]:
    found: list[Any] = []
    content: Any = Pieces(pieces)
    collected: Any = SimpleNamespace(add_event=found.append, finished=False)
    asyncio.run(client._collect(content, collected))
    return found


def test_a_stream_may_arrive_in_any_pieces() -> None:
    first = '{"choices":[{"delta":{"content":"é\u2028😀"}}]}'.encode()
    sent = b"data: " + first + b"\r\n\r\ndata: {}\n\ndata: [DONE]\n\n"
    halves = [[sent[:at], sent[at:]] for at in range(1, len(sent))]
    letters = [sent[at : at + 1] for at in range(len(sent))]

    read = [events_in(pieces) for pieces in [*halves, letters]]

    assert read == [[json.loads(first), {}]] * len(read)


@pytest.mark.parametrize(
    "sends",
    [
        pytest.param(whole({"content": PARTIAL * 100}), id="whole"),
        pytest.param(http(delta({"content": PARTIAL}) * 20 + END, STREAM), id="stream"),
        pytest.param(http(b"data: " + b"x" * 2000, STREAM), id="a line without an end"),
        pytest.param(http(b"x" * 2000, status=500), id="error"),
    ],
)
def test_a_reply_without_bounds_is_given_up(sends: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LARGEST_REPLY", 1000)

    error = error_of(sends)

    assert (error.outcome, error.transient) == (Outcome.INVALID_REPLY, False)
    assert PARTIAL not in str(error)


@pytest.mark.parametrize("headers", ["content-length: 9999\r\n", ""])
def test_a_reply_that_was_told_to_its_end_counts_however_the_connection_ends(headers: str) -> None:
    reply = reply_to(http(delta({"content": "42"}) + END, STREAM, headers=headers))

    assert (reply.text, reply.finish_reason) == ("42", "stop")

"""What becomes of a reply on the wire, over real HTTP: whole replies, streams, and all the rest."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from pydantic import JsonValue, SecretStr

from eval_pipeline.providers import openai_compatible
from eval_pipeline.providers.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.providers.demo.server import DemoGateway
from eval_pipeline.providers.openai_compatible import OpenAICompatible, http_client
from eval_pipeline.records import Outcome, Usage
from eval_pipeline_tests.builders import a_question

KEY = "sk-live-0123456789"
PARTIAL = "half an answer"
STREAM = "text/event-stream; charset=utf-8"


def a_request(**changes: object) -> ChatRequest:
    messages = ({"role": "user", "content": a_question().question},)
    return ChatRequest.model_validate({"model": "demo/strong", "messages": messages, **changes})


def redact(text: str) -> str:
    return text.replace(KEY, "[KEY]")


def complete(base_url: str, request: ChatRequest, *, timeout_s: float = 20) -> ChatReply:
    async def run() -> ChatReply:
        async with http_client(base_url, SecretStr(KEY)) as client:
            return await OpenAICompatible(client, timeout_s, redact).complete(request)

    return asyncio.run(run())


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Scripted)
        server.path, server.key = self.path, self.headers.get("authorization", "")
        server.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.wfile.write(server.sends)

    def log_message(self, *_: object) -> None:
        pass


class Scripted(ThreadingHTTPServer):
    """Sends the same bytes to everyone, then closes; remembers the last thing it was asked."""

    def __init__(self, sends: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sends, self.path, self.key = sends, "", ""
        self.body: dict[str, JsonValue] = {}

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


@contextmanager
def scripted(sends: bytes) -> Iterator[Scripted]:
    with Scripted(sends) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def http(
    body: bytes | JsonValue, kind: str = "application/json", status: int = 200, headers: str = ""
) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\nconnection: close\r\n{headers}\r\n"
    return head.encode() + data


def whole(message: dict[str, JsonValue], finish: str | None = "stop", **more: JsonValue) -> bytes:
    return http({"choices": [{"message": message, "finish_reason": finish}], **more})


def delta(message: dict[str, JsonValue], finish: str | None = None, **more: JsonValue) -> bytes:
    chunk = {"choices": [{"delta": message, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


END = delta({}, "stop") + b"data: [DONE]\n\n"


def reply_to(sends: bytes) -> ChatReply:
    with scripted(sends) as server:
        return complete(server.base_url, a_request())


def error_of(sends: bytes) -> ProviderError:
    with scripted(sends) as server, pytest.raises(ProviderError) as caught:
        complete(server.base_url, a_request())
    return caught.value


def test_streaming_and_not_streaming_give_the_same_reply() -> None:
    with DemoGateway([a_question()]) as gateway:
        streamed = complete(gateway.base_url, a_request(stream=True))
        at_once = complete(gateway.base_url, a_request(stream=False))

    differs = {"latency_s", "first_token_s", "generation_id"}
    assert streamed.model_dump(exclude=differs) == at_once.model_dump(exclude=differs)
    assert streamed.text.startswith("Explanation: Simulated reply:")
    assert streamed.outcome is Outcome.OK
    assert streamed.usage.output_tokens


def test_only_what_was_asked_for_is_sent() -> None:
    extra = {"reasoning": {"effort": "low"}}
    more = a_request(temperature=0.5, max_tokens=7, json_schema={"name": "verdict"}, extra=extra)

    with scripted(whole({"content": "Hello."})) as server:
        complete(server.base_url, a_request(stream=False))
        plain, path, key = server.body, server.path, server.key
        complete(server.base_url, more)
        full = server.body

    assert plain == {"model": "demo/strong", "messages": list(a_request().messages)}
    assert (path, key) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert {name: value for name, value in full.items() if name not in plain} == {
        "temperature": 0.5,
        "max_tokens": 7,
        "response_format": {"type": "json_schema", "json_schema": {"name": "verdict"}},
        "reasoning": {"effort": "low"},
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("streamed", [True, False])
def test_all_that_a_gateway_tells_is_kept(streamed: bool) -> None:
    usage: JsonValue = {
        "prompt_tokens": 10,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 15},
        "cost": 0.00125,
    }
    about = {"id": "gen-1", "provider": "Some Host", "model": "maker/model-2"}
    said: dict[str, JsonValue] = {"content": "Hello."}

    stream = http(delta(said) + delta({}, "stop", usage=usage, **about), STREAM)
    reply = reply_to(stream if streamed else whole(said, "stop", usage=usage, **about))

    assert (reply.text, reply.finish_reason) == ("Hello.", "stop")
    assert reply.generation_id == "gen-1"
    assert (reply.served_by, reply.model_reported) == ("Some Host", "maker/model-2")
    assert reply.usage == Usage(
        input_tokens=10,
        output_tokens=20,
        cached_tokens=4,
        reasoning_tokens=15,
        cost_usd=0.00125,
        cost_estimated=False,
    )


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"reasoning_content": "Hm."}, "Hm."),
        ({"reasoning": "Hm."}, "Hm."),
        ({"reasoning": "Hm.", "reasoning_content": "Hm."}, "Hm."),
        ({"reasoning": {"text": "Hm."}}, None),
    ],
)
def test_reasoning_is_kept_once_and_apart_from_the_answer(
    fields: dict[str, JsonValue], reasoning: str | None
) -> None:
    sends = (
        whole({"content": "42", **fields}),
        http(delta(fields) + delta({"content": "42"}) + END, STREAM),
    )

    replies = [reply_to(each) for each in sends]

    assert [(reply.text, reply.reasoning) for reply in replies] == [("42", reasoning)] * 2


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


async def reply_in(pieces: list[bytes]) -> ChatReply:
    """On a real socket pieces join as they like; here every one arrives on its own."""

    async def content() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    def handle(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": STREAM}, content=content())

    transport = httpx.MockTransport(handle)
    async with httpx.AsyncClient(transport=transport, base_url="http://host/v1") as client:
        return await OpenAICompatible(client, 20, redact).complete(a_request())


def test_a_stream_may_arrive_in_any_pieces() -> None:
    events = 'data: {"choices":[{"delta":{"content":"é\u2028😀"}}]}\r\n\r\n'.encode() + END
    halves = [[events[:at], events[at:]] for at in range(1, len(events))]
    letters = [events[at : at + 1] for at in range(len(events))]

    replies = [asyncio.run(reply_in(pieces)) for pieces in [*halves, letters]]

    assert {(reply.text, reply.finish_reason) for reply in replies} == {("é\u2028😀", "stop")}


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
    monkeypatch.setattr(openai_compatible, "LARGEST_REPLY", 1000)

    error = error_of(sends)

    assert (error.outcome, error.transient) == (Outcome.INVALID_REPLY, False)
    assert PARTIAL not in str(error)


@pytest.mark.parametrize(
    ("value", "tokens", "cost"),
    [
        (12, 12, 12.0),
        (0, 0, 0.0),
        (-1, None, None),
        (2**40, None, None),
        (10**400, None, None),
        (1.5, None, 1.5),
        ("12", None, None),
        (True, None, None),
        (None, None, None),
        ({"total": 1}, None, None),
        (float("nan"), None, None),
        (float("inf"), None, None),
        (float("-inf"), None, None),
    ],
)
def test_usage_that_makes_no_sense_is_unknown(
    value: JsonValue, tokens: int | None, cost: float | None
) -> None:
    usage: JsonValue = {
        "prompt_tokens": value,
        "completion_tokens": value,
        "prompt_tokens_details": {"cached_tokens": value},
        "completion_tokens_details": {"reasoning_tokens": value},
        "cost": value,
    }

    reply = reply_to(whole({"content": "42"}, usage=usage))

    assert reply.text == "42"
    assert reply.usage == Usage(
        input_tokens=tokens,
        output_tokens=tokens,
        cached_tokens=tokens,
        reasoning_tokens=tokens,
        cost_usd=cost,
        cost_estimated=cost is None,
    )

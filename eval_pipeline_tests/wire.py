"""A server that sends whatever bytes it is told to, and how it is asked."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.client import HttpProvider, open_session
from eval_pipeline.gateways.pool import DIALECTS
from eval_pipeline.records.model import DialectName
from eval_pipeline_tests.builders import a_question

KEY = "sk-live-0123456789"
PARTIAL = "half an answer"
STREAM = "text/event-stream; charset=utf-8"


def a_request(**changes: Any) -> ChatRequest:
    messages: tuple[dict[str, JsonValue], ...] = (
        {"role": "user", "content": a_question().question},
    )
    return replace(ChatRequest(model="demo/strong", messages=messages), **changes)


def redact(text: str) -> str:
    return text.replace(KEY, "[KEY]")


@asynccontextmanager
async def provider_at(
    base_url: str,
    *,
    timeout_s: float = 20,
    redact: Callable[[str], str] = redact,
    dialect: DialectName = "chat_completions",
) -> AsyncIterator[HttpProvider]:
    async with open_session() as session:
        spoken = DIALECTS[dialect]
        yield HttpProvider(session, base_url, spoken, spoken.headers(KEY), timeout_s, redact)


def complete(
    base_url: str,
    request: ChatRequest,
    *,
    timeout_s: float = 20,
    redact: Callable[[str], str] = redact,
) -> ChatReply:
    async def run() -> ChatReply:
        async with provider_at(base_url, timeout_s=timeout_s, redact=redact) as provider:
            return await provider.complete(request)

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


def reply_to(sends: bytes, redact: Callable[[str], str] = redact) -> ChatReply:
    with scripted(sends) as server:
        return complete(server.base_url, a_request(), redact=redact)


def error_of(sends: bytes) -> ProviderError:
    with scripted(sends) as server, pytest.raises(ProviderError) as caught:
        complete(server.base_url, a_request())
    return caught.value

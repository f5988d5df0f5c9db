"""The httpx client for any API of the OpenAI chat dialect, streaming and not."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import httpx
from httpx_aiohttp import HttpxAiohttpClient
from pydantic import JsonValue, SecretStr

from eval_pipeline.providers.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.providers.limits import parse_retry_after
from eval_pipeline.providers.replies import (
    Collected,
    error_message,
    error_status,
    parsed_json,
)
from eval_pipeline.records import Outcome, now, whole_characters

LARGEST_REPLY = 32 * 1024 * 1024
LONGEST_MESSAGE = 500
CONNECT_TIMEOUT_S = 30.0

_BY_STATUS = {
    401: Outcome.AUTH,
    402: Outcome.NO_CREDIT,
    403: Outcome.FORBIDDEN,
    404: Outcome.UNKNOWN_MODEL,
    408: Outcome.TIMEOUT,
    429: Outcome.RATE_LIMITED,
}
_TRANSIENT = {Outcome.TIMEOUT, Outcome.RATE_LIMITED, Outcome.SERVER_ERROR}


def http_client(base_url: str, key: SecretStr | None) -> httpx.AsyncClient:
    """A pooled client for one gateway; how many requests run at once is the caller's business."""
    headers = {"user-agent": "eval-pipeline"}
    if key is not None:
        headers["authorization"] = f"Bearer {key.get_secret_value()}"
    return HttpxAiohttpClient(
        base_url=base_url,
        headers=headers,
        timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
        limits=httpx.Limits(max_connections=0),  # 0 is unlimited for aiohttp
    )


@dataclass(frozen=True)
class OpenAICompatible:
    """Asks one gateway; `redact` cuts the pipeline's keys out of everything a server says."""

    client: httpx.AsyncClient
    timeout_s: float
    redact: Callable[[str], str]

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One attempt: a whole reply, or a ProviderError."""
        try:
            async with asyncio.timeout(self.timeout_s):
                collected = await self._exchange(request)
        except TimeoutError:
            raise ProviderError(
                Outcome.TIMEOUT, f"No whole reply within {self.timeout_s:g} s.", transient=True
            ) from None
        except (httpx.HTTPError, aiohttp.ClientError) as error:
            raise self._connection_error(error) from None
        return collected.reply(self.redact)

    async def _exchange(self, request: ChatRequest) -> Collected:
        collected = Collected(started=time.monotonic())
        async with self.client.stream("POST", "chat/completions", json=_body(request)) as response:
            if response.status_code != httpx.codes.OK:
                raise self._refusal(response, await _read(response))
            if "text/event-stream" in response.headers.get("content-type", "").lower():
                async for data in _events(response):
                    collected.add_chunk(self._parse(data))
                if not collected.finished:
                    raise ProviderError(
                        Outcome.CUT_STREAM, "The stream broke off before its end.", transient=True
                    )
            else:
                collected.add_whole(self._parse(await _read(response)))
        return collected

    def _parse(self, data: bytes) -> dict[str, Any]:
        parsed = parsed_json(data)
        if not isinstance(parsed, dict):
            raise ProviderError(
                Outcome.INVALID_REPLY,
                "The server sent something that is not a JSON object.",
                transient=True,
            )
        if parsed.get("error"):
            raise self._error(error_status(parsed["error"]), data, None)
        return parsed

    def _refusal(self, response: httpx.Response, body: bytes) -> ProviderError:
        retry_after = parse_retry_after(response.headers.get("retry-after"), now())
        return self._error(response.status_code, body, retry_after)

    def _error(self, status: int, body: bytes, retry_after: float | None) -> ProviderError:
        message, code = error_message(body)
        outcome = _BY_STATUS.get(
            status,
            Outcome.SERVER_ERROR if status >= 500 else Outcome.BAD_REQUEST,  # noqa: PLR2004
        )
        if code == "insufficient_quota":
            outcome = Outcome.NO_CREDIT
        elif code in ("content_filter", "content_policy_violation", "moderation"):
            outcome = Outcome.CONTENT_FILTER
        return ProviderError(
            outcome,
            f"HTTP {status}: {self._quote(message)}",
            transient=outcome in _TRANSIENT,
            retry_after=retry_after,
        )

    def _connection_error(self, error: Exception) -> ProviderError:
        cause = error.__cause__ or error
        timed_out = isinstance(cause, TimeoutError | httpx.TimeoutException)
        cut = isinstance(cause, aiohttp.ClientPayloadError)
        outcome = (
            Outcome.TIMEOUT
            if timed_out
            else Outcome.CUT_STREAM
            if cut
            else Outcome.CONNECTION_ERROR
        )
        return ProviderError(
            outcome, f"{type(cause).__name__}: {self._quote(str(error))}", transient=True
        )

    def _quote(self, text: str) -> str:
        """A server's words on one line; secrets go first, so that none is cut in two and missed."""
        whole = self.redact(whole_characters(text))
        words = "".join(letter if letter.isprintable() else " " for letter in whole)
        line = " ".join(words.split())
        return line if len(line) <= LONGEST_MESSAGE else line[:LONGEST_MESSAGE] + " …"


def _body(request: ChatRequest) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = {"model": request.model, "messages": list(request.messages)}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.json_schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": request.json_schema}
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body | request.extra


async def _read(response: httpx.Response) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > LARGEST_REPLY:
            raise ProviderError(Outcome.INVALID_REPLY, "The reply is larger than 32 MiB.")
    return bytes(data)


async def _events(response: httpx.Response) -> AsyncIterator[bytes]:
    """The data of each server-sent event. Lines end at \\n only: a reply may hold other breaks."""
    rest, size = b"", 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > LARGEST_REPLY:
            raise ProviderError(Outcome.INVALID_REPLY, "The reply is larger than 32 MiB.")
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            data = line.removeprefix(b"data:").strip()
            if line.startswith(b"data:") and data != b"[DONE]":
                yield data

"""The httpx client for any API of the OpenAI chat dialect, streaming and not."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import httpx
from httpx_aiohttp import HttpxAiohttpClient
from pydantic import JsonValue, SecretStr

from eval_pipeline.providers.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.providers.limits import parse_retry_after
from eval_pipeline.records import Outcome, Usage, now

LARGEST_REPLY = 32 * 1024 * 1024
LONGEST_MESSAGE = 500
CONNECT_TIMEOUT_S = 30.0

_BY_STATUS = {
    401: Outcome.AUTH,
    402: Outcome.NO_CREDIT,
    403: Outcome.AUTH,
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

    async def _exchange(self, request: ChatRequest) -> "_Collected":
        collected = _Collected(started=time.monotonic())
        async with self.client.stream("POST", "chat/completions", json=_body(request)) as response:
            if response.status_code != httpx.codes.OK:
                raise self._refusal(response, await _read(response))
            if "text/event-stream" in response.headers.get("content-type", ""):
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
        try:
            parsed = json.loads(data)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise ProviderError(
                Outcome.INVALID_REPLY,
                "The server sent something that is not a JSON object.",
                transient=True,
            )
        if parsed.get("error"):
            raise self._error(_error_status(parsed["error"]), data, None)
        return parsed

    def _refusal(self, response: httpx.Response, body: bytes) -> ProviderError:
        retry_after = parse_retry_after(response.headers.get("retry-after"), now())
        return self._error(response.status_code, body, retry_after)

    def _error(self, status: int, body: bytes, retry_after: float | None) -> ProviderError:
        message, code = _error_message(body)
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
        words = "".join(letter if letter.isprintable() else " " for letter in self.redact(text))
        line = " ".join(words.split())
        return line if len(line) <= LONGEST_MESSAGE else line[:LONGEST_MESSAGE] + " …"


@dataclass
class _Collected:
    """The parts of a reply as they arrive."""

    started: float
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    head: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None
    first_token: float | None = None

    @property
    def finished(self) -> bool:
        """A stream has ended well only if the server said why it ended."""
        return self.finish_reason is not None

    def add_chunk(self, chunk: dict[str, Any]) -> None:
        self._add(chunk, "delta")

    def add_whole(self, reply: dict[str, Any]) -> None:
        self._add(reply, "message")
        if not isinstance(reply.get("choices"), list) or not reply["choices"]:
            raise ProviderError(Outcome.INVALID_REPLY, "The reply has no choices.", transient=True)

    def _add(self, part: dict[str, Any], name: str) -> None:
        for about in ("id", "model", "provider"):
            if about not in self.head and part.get(about):
                self.head[about] = part[about]
        if isinstance(part.get("usage"), dict):
            self.usage = part["usage"]
        choices = part.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return
        message = choices[0].get(name)
        if isinstance(message, dict):
            self._add_message(message)
        if isinstance(choices[0].get("finish_reason"), str):
            self.finish_reason = choices[0]["finish_reason"]

    def _add_message(self, message: dict[str, Any]) -> None:
        for target, names in (
            (self.text, ("content",)),
            (self.reasoning, ("reasoning_content", "reasoning")),
            (self.refusal, ("refusal",)),
        ):
            for name in names:
                if isinstance(message.get(name), str) and message[name]:
                    target.append(message[name])
                    self.first_token = self.first_token or time.monotonic()
                    break

    def reply(self, redact: Callable[[str], str]) -> ChatReply:
        def text(value: object) -> str | None:
            return redact(value) if isinstance(value, str) and value else None

        return ChatReply(
            text=redact("".join(self.text)),
            reasoning=text("".join(self.reasoning)),
            refusal=text("".join(self.refusal)),
            finish_reason=text(self.finish_reason),
            usage=_usage(self.usage),
            generation_id=text(self.head.get("id")),
            served_by=text(self.head.get("provider")),
            model_reported=text(self.head.get("model")),
            latency_s=time.monotonic() - self.started,
            first_token_s=self.first_token - self.started if self.first_token else None,
        )


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


def _usage(usage: dict[str, Any]) -> Usage:
    def number(source: object, name: str) -> int | None:
        value = source.get(name) if isinstance(source, dict) else None
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        return value if 0 <= value < 2**53 else None

    cost = usage.get("cost")
    known = (
        isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < float("inf")
    )
    return Usage(
        input_tokens=number(usage, "prompt_tokens"),
        output_tokens=number(usage, "completion_tokens"),
        reasoning_tokens=number(usage.get("completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=number(usage.get("prompt_tokens_details"), "cached_tokens"),
        cost_usd=float(cost) if known and cost is not None else None,
        cost_estimated=not known,
    )


def _error_status(error: object) -> int:
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500  # noqa: PLR2004


def _error_message(body: bytes) -> tuple[str, str | None]:
    """The server's own words, and its error code if it gives one in words."""
    text, code = body.decode("utf-8", "replace"), None
    try:
        error = json.loads(text).get("error")
    except (ValueError, AttributeError):
        error = None
    if isinstance(error, dict):
        code = error.get("code") if isinstance(error.get("code"), str) else error.get("type")
        text = str(error.get("message") or text)
    elif isinstance(error, str):
        text = error
    return text, code if isinstance(code, str) else None

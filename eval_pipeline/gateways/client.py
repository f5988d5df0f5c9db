"""A client of one gateway: it sends requests within a deadline and reads replies as they arrive."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.request import getproxies

import aiohttp
import httpx
import orjson
from aiohttp.http_exceptions import ContentEncodingError
from yarl import URL

from eval_pipeline.gateways.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.dialects.base import Dialect, ReplyBuilder
from eval_pipeline.gateways.dialects.errors import provider_error
from eval_pipeline.gateways.limits import parse_retry_after
from eval_pipeline.records.base import now, whole_characters
from eval_pipeline.records.outcome import Outcome

LARGEST_REPLY = 32 * 1024 * 1024
LONGEST_MESSAGE = 500
CONNECT_TIMEOUT_S = 30.0
KEEP_ALIVE_S = 60.0
LONGEST_GOODBYE_S = 1.0

_DONE = b"[DONE]"
_TOO_LARGE = "The reply is larger than 32 MiB."


def open_session(*, secure: bool = False) -> aiohttp.ClientSession:
    """Pooled connections; how many requests run at once is the caller's business.

    aiohttp itself and not behind httpx, whose layer costs twice as much as all the rest.
    """
    connector = aiohttp.TCPConnector(
        limit=0,
        keepalive_timeout=KEEP_ALIVE_S,
        ttl_dns_cache=300,
        ssl=httpx.create_ssl_context() if secure else True,
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        # Looking for a proxy costs time with every request, so only where there is one.
        trust_env=bool(getproxies()),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


@dataclass(frozen=True)
class HttpProvider:
    """Asks one gateway in one dialect; `redact` cuts the pipeline's keys out of what it says."""

    session: aiohttp.ClientSession
    address: str
    dialect: Dialect
    headers: Mapping[str, str] = field(repr=False)
    timeout_s: float
    redact: Callable[[str], str]

    @cached_property
    def _url(self) -> URL:
        return URL(f"{self.address}/{self.dialect.path}")

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return a whole reply or raise a ProviderError, after one attempt."""
        collected = self.dialect.collect(time.monotonic(), self._quote)
        try:
            async with asyncio.timeout(self.timeout_s):
                await self._exchange(request, collected)
        except (aiohttp.ClientError, OSError) as error:
            # A complete reply is paid for, however the connection ended.
            if not collected.finished:
                raise self._connection_error(error) from None
        return collected.reply(self.redact)

    async def _exchange(self, request: ChatRequest, collected: ReplyBuilder) -> None:
        body = orjson.dumps(self.dialect.body(request))
        # A redirect is not followed: it would carry the key and the question elsewhere.
        async with self.session.post(
            self._url, data=body, headers=self.headers, allow_redirects=False
        ) as response:
            if response.status != httpx.codes.OK:
                body, retry_after = await _read(response), response.headers.get("retry-after")
                wait = parse_retry_after(retry_after, now())
                raise provider_error(response.status, body, retry_after=wait, quote=self._quote)
            if "text/event-stream" not in response.headers.get("content-type", "").lower():
                collected.add_whole(_parsed(await _read(response)))
                return
            await _collect(response.content, collected)
        if not collected.finished:
            raise ProviderError(
                Outcome.CUT_STREAM, "The stream broke off before its end.", transient=True
            )

    def _connection_error(self, error: Exception) -> ProviderError:
        outcome, said = Outcome.CONNECTION_ERROR, f"{type(error).__name__}: {error}"
        if isinstance(error, aiohttp.ClientError):
            if isinstance(error, TimeoutError):
                outcome = Outcome.TIMEOUT
            elif isinstance(error.__cause__, ContentEncodingError):
                outcome = Outcome.INVALID_REPLY
            elif isinstance(error, aiohttp.ClientPayloadError):
                outcome = Outcome.CUT_STREAM
        elif isinstance(error, TimeoutError):
            outcome, said = Outcome.TIMEOUT, f"No whole reply within {self.timeout_s:g} s."
        return ProviderError(outcome, self._quote(said), transient=True)

    def _quote(self, text: str) -> str:
        """Return a server's words on one line; redact first, so that no cut secret is missed."""
        whole = self.redact(whole_characters(text))[: 10 * LONGEST_MESSAGE]
        words = "".join(letter if letter.isprintable() else " " for letter in whole)
        line = " ".join(words.split())
        return line if len(line) <= LONGEST_MESSAGE else line[:LONGEST_MESSAGE] + " …"


def _parsed(data: bytes) -> dict[str, Any]:
    parsed = None
    try:
        parsed = orjson.loads(data)
    except ValueError:
        # Half a character is valid here: its other half may come with the next event.
        with suppress(ValueError, RecursionError):
            parsed = json.loads(data)
    if not isinstance(parsed, dict):
        raise ProviderError(
            Outcome.INVALID_REPLY,
            "The server sent something that is not a JSON object.",
            transient=True,
        )
    return parsed


async def _collect(content: aiohttp.StreamReader, collected: ReplyBuilder) -> None:
    """Read server-sent events. Lines end at \\n only: a reply may hold other breaks."""
    rest, size, done = b"", 0, False
    while chunk := await content.readany():
        size += len(chunk)
        if size > LARGEST_REPLY:
            raise ProviderError(Outcome.INVALID_REPLY, _TOO_LARGE)
        *lines, rest = (rest + chunk).split(b"\n")
        found = [line[5:].strip() for line in lines if line.startswith(b"data:")]
        for data in found:
            if data and data != _DONE:
                collected.add_event(_parsed(data))
        done = done or _DONE in found
        if done and collected.finished and not content.at_eof():
            # The reply is complete; a connection that ends as well can be used again.
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_GOODBYE_S):
                    while await content.readany():
                        pass
            return


async def _read(response: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > LARGEST_REPLY:
            raise ProviderError(Outcome.INVALID_REPLY, _TOO_LARGE)
    return bytes(data)

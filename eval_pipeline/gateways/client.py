"""A client of one gateway: requests within a deadline, and replies read as they arrive."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
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


class Deadline:
    """Gives everyone the same number of seconds, each from their own beginning.

    `asyncio.timeout` does the same, but its timers cost a tenth of all that a request costs.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # In the order of their ends, because all have the same time.
        self._inside: dict[_Stay, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def limit(self) -> "_Stay":
        """For a `with`: a task that stays inside too long is cancelled, with a TimeoutError."""
        return _Stay(self)

    def enter(self, stay: "_Stay", loop: asyncio.AbstractEventLoop) -> None:
        """Its time begins."""
        self._inside[stay] = loop.time() + self.seconds
        if self._timer is None:
            self._timer = loop.call_later(self.seconds, self._check, loop)

    def leave(self, stay: "_Stay") -> None:
        """It was in time, or has been told that it was not."""
        self._inside.pop(stay, None)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        for stay, end in tuple(self._inside.items()):
            if end > loop.time():
                self._timer = loop.call_at(end, self._check, loop)
                return
            del self._inside[stay]
            stay.cancel()


class _Stay:
    """One task's time inside."""

    __slots__ = ("_deadline", "_late", "_task")

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._late = False

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("Only a task can have a deadline.")
        self._task = task
        self._deadline.enter(self, loop)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deadline.leave(self)
        # Cancelled by somebody else as well: that one has the last word.
        if self._late and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def cancel(self) -> None:
        """It is late."""
        self._late = True
        self._task.cancel()


LARGEST_REPLY = 32 * 1024 * 1024
LONGEST_MESSAGE = 500
CONNECT_TIMEOUT_S = 30.0
KEEP_ALIVE_S = 60.0
LONGEST_GOODBYE_S = 1.0
_OK = 200
_DONE = b"[DONE]"


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
    deadline: Deadline
    redact: Callable[[str], str]

    @cached_property
    def _url(self) -> URL:
        return URL(f"{self.address}/{self.dialect.path}")

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One attempt: a whole reply, or a ProviderError."""
        collected = self.dialect.collect(time.monotonic(), self._quote)
        try:
            with self.deadline.limit():
                await self._exchange(request, collected)
        except (aiohttp.ClientError, OSError) as error:
            # A reply that was told to its end is paid for, however the connection ended.
            if not collected.finished:
                raise self._connection_error(error) from None
        return collected.reply(self.redact)

    async def _exchange(self, request: ChatRequest, collected: ReplyBuilder) -> None:
        body = orjson.dumps(self.dialect.body(request))
        # A redirect is not followed: it would carry the key and the question elsewhere.
        async with self.session.post(
            self._url, data=body, headers=self.headers, allow_redirects=False
        ) as response:
            if response.status != _OK:
                raise self._refusal(response, await _read(response))
            if "text/event-stream" not in response.headers.get("content-type", "").lower():
                collected.add_whole(_parsed(await _read(response)))
                return
            await _collect(response.content, collected)
        if not collected.finished:
            raise ProviderError(
                Outcome.CUT_STREAM, "The stream broke off before its end.", transient=True
            )

    def _refusal(self, response: aiohttp.ClientResponse, body: bytes) -> ProviderError:
        retry_after = parse_retry_after(response.headers.get("retry-after"), now())
        return provider_error(response.status, body, retry_after=retry_after, quote=self._quote)

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
            outcome, said = Outcome.TIMEOUT, f"No whole reply within {self.deadline.seconds:g} s."
        return ProviderError(outcome, self._quote(said), transient=True)

    def _quote(self, text: str) -> str:
        """A server's words on one line; secrets go first, so that none is cut in two and missed."""
        whole = self.redact(whole_characters(text))[: 10 * LONGEST_MESSAGE]
        words = "".join(letter if letter.isprintable() else " " for letter in whole)
        line = " ".join(words.split())
        return line if len(line) <= LONGEST_MESSAGE else line[:LONGEST_MESSAGE] + " …"


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        parsed = orjson.loads(data)
    except ValueError:
        parsed = _parsed_slowly(data)
    if not isinstance(parsed, dict):
        raise ProviderError(
            Outcome.INVALID_REPLY,
            "The server sent something that is not a JSON object.",
            transient=True,
        )
    return parsed


def _parsed_slowly(data: bytes) -> object:
    """Takes half a character too: a stream may send its other half with the next event."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


async def _collect(content: aiohttp.StreamReader, collected: ReplyBuilder) -> None:
    events = Events()
    while chunk := await content.readany():
        for data in events.feed(chunk):
            collected.add_event(_parsed(data))
        if events.done and collected.finished and not content.at_eof():
            # It is told to its end; a connection that ends as well can be used again.
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
            raise ProviderError(Outcome.INVALID_REPLY, "The reply is larger than 32 MiB.")
    return bytes(data)


class Events:
    """The data of server-sent events. Lines end at \\n only: a reply may hold other breaks."""

    def __init__(self) -> None:
        self.done = False
        self._rest = b""
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """What is complete with this piece of the stream."""
        self._size += len(chunk)
        if self._size > LARGEST_REPLY:
            raise ProviderError(Outcome.INVALID_REPLY, "The reply is larger than 32 MiB.")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = [line[5:].strip() for line in lines if line.startswith(b"data:")]
        if _DONE in found:
            self.done = True
        return [data for data in found if data and data != _DONE]

"""The load server: SIMULATED models that answer at once or after a while, as cheaply as possible.

It is no judge of requests: it looks for the model's name and for a mark such as [[q000001]] in the
body, counts them, and sends bytes that were made beforehand.
"""

import argparse
import asyncio
import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import uvloop

from bench.replies import Replies, json_response, model_list, response

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_MODEL = re.compile(rb'"model" *: *"([^"\\]+)"')
_MARK = re.compile(rb"\[\[([\w.-]+)\]\]")
_STREAM = re.compile(rb'"stream" *: *true')
_END_OF_HEAD = b"\r\n\r\n"


def model_names(count: int) -> list[str]:
    """The models of a server that has so many, without the judge."""
    return [f"bench/m{number:02}" for number in range(1, count + 1)]


@dataclass
class ModelLog:
    """What one model was asked, and when."""

    counts: dict[bytes, int] = field(default_factory=dict)
    first_at: float = 0.0
    last_at: float = 0.0
    open: int = 0
    most_at_once: int = 0
    replies: int = 0

    def begin(self, mark: bytes) -> None:
        self.counts[mark] = self.counts.get(mark, 0) + 1
        self.first_at = self.first_at or time.time()
        self.open += 1
        self.most_at_once = max(self.most_at_once, self.open)

    def end(self, *, sent: bool) -> None:
        self.open -= 1
        if sent:
            self.replies += 1
            self.last_at = time.time()

    def as_json(self) -> dict[str, object]:
        counts = {mark.decode(): count for mark, count in self.counts.items()}
        return {
            "counts": counts,
            "first_at": self.first_at,
            "last_at": self.last_at,
            "most_at_once": self.most_at_once,
            "replies": self.replies,
        }


@dataclass(frozen=True)
class Behaviour:
    """How the server answers."""

    latency_s: float = 0.0
    models: tuple[str, ...] = ("bench/m01",)
    slow: Mapping[str, float] = field(default_factory=dict)
    failing: Mapping[str, int] = field(default_factory=dict)


class Book:
    """Everything the server knows: how to answer, and what it was asked."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.total = 0
        self.logs: dict[str, ModelLog] = {}
        self._replies: dict[str, Replies] = {}
        self.model_list = json_response(model_list(behaviour.models))

    def answer(self, body: bytes) -> tuple[float, tuple[bytes, ...], ModelLog]:
        """After how many seconds to send what."""
        found, marked = _MODEL.search(body), _MARK.search(body)
        model = found[1].decode() if found else "unknown"
        mark = marked[1] if marked else b"unmarked"
        self.total += 1
        log = self.logs.setdefault(model, ModelLog())
        log.begin(mark)
        delay = self.behaviour.slow.get(model, self.behaviour.latency_s)
        return delay, self._reply(model, mark, body), log

    def _reply(self, model: str, mark: bytes, body: bytes) -> tuple[bytes, ...]:
        replies = self._replies.get(model)
        if replies is None:
            replies = self._replies[model] = Replies(model, self.behaviour.failing.get(model))
        if replies.failure:
            return (replies.failure,)
        return replies.stream(mark) if _STREAM.search(body) else replies.whole(mark)

    def look_up(self, path: bytes) -> bytes:
        """What a GET is answered with."""
        if path == b"/v1/models":
            return self.model_list
        if path == b"/total":
            return json_response(self.total)
        if path == b"/counts":
            return json_response({model: log.as_json() for model, log in self.logs.items()})
        return response(b"404 Not Found", b"{}")


class Connection(asyncio.Protocol):
    """One client's connection, kept alive."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        while (end := received.find(_END_OF_HEAD)) >= 0:
            length = _LENGTH.search(received, 0, end)
            whole = end + len(_END_OF_HEAD) + (int(length[1]) if length else 0)
            if len(received) < whole:
                break
            self._handle(received[:end], received[end + len(_END_OF_HEAD) : whole])
            received = received[whole:]
        self._received = received

    def _handle(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET "):
            self._send((self._book.look_up(head.split(b" ", 2)[1]),), None)
            return
        delay, reply, log = self._book.answer(body)
        if delay:
            self._loop.call_later(delay, self._send, reply, log)
        else:
            self._send(reply, log)

    def _send(self, pieces: tuple[bytes, ...], log: ModelLog | None) -> None:
        """One piece after the other, as tokens come: none waits to be sent with the next."""
        transport = self._transport
        sent = transport is not None and not transport.is_closing()
        if transport is not None and sent:
            transport.write(pieces[0])
            if len(pieces) > 1:
                self._loop.call_soon(self._send, pieces[1:], log)
                return
        if log:
            log.end(sent=sent)


async def serve(behaviour: Behaviour, port: int, *, until_stdin_ends: bool) -> None:
    """Says its address on standard output and serves until it is told to end."""
    loop, book, ended = asyncio.get_running_loop(), Book(behaviour), asyncio.Event()
    server = await loop.create_server(lambda: Connection(book), "127.0.0.1", port, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    if until_stdin_ends:
        # So that it never outlives whoever started it, however that one ends.
        threading.Thread(target=_wait_for_the_end, args=(loop, ended), daemon=True).start()
    await ended.wait()


def _wait_for_the_end(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    sys.stdin.buffer.read()
    loop.call_soon_threadsafe(ended.set)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until a reply")
    parser.add_argument("--models", type=int, default=1, help="how many are listed")
    parser.add_argument("--slow", action="append", default=[], metavar="MODEL=SECONDS")
    parser.add_argument("--failing", action="append", default=[], metavar="MODEL=STATUS")
    parser.add_argument("--until-stdin-ends", action="store_true")
    return parser.parse_args(words)


def behaviour_of(given: argparse.Namespace) -> Behaviour:
    """The arguments as a record."""
    slow = dict(pair.split("=", 1) for pair in given.slow)
    failing = dict(pair.split("=", 1) for pair in given.failing)
    return Behaviour(
        latency_s=given.latency,
        models=tuple(model_names(given.models)),
        slow={model: float(seconds) for model, seconds in slow.items()},
        failing={model: int(status) for model, status in failing.items()},
    )


if __name__ == "__main__":
    _given = _arguments(None)
    uvloop.run(serve(behaviour_of(_given), _given.port, until_stdin_ends=_given.until_stdin_ends))

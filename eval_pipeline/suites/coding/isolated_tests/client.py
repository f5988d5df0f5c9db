"""The tests' side of the line: requests go out, replies find whoever waits for them."""

import asyncio
import itertools
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from eval_pipeline.suites.coding.isolated_tests import values
from eval_pipeline.suites.coding.isolated_tests.wire import Nonsense


class AnswerGone(BaseException):
    """The process of the answer has ended or can not be understood any more."""


class Line(Protocol):
    """What carries words to the answer's process and back."""

    def send(self, word: object) -> None: ...

    def receive(self) -> Any:
        """The next word from there; EOFError says why there will be none."""
        ...


class Codec(Protocol):
    """What makes words of values and values of words."""

    def encode(self, value: Any) -> Any: ...

    def decode(self, data: Any) -> Any: ...

    def learn(self, classes: Sequence[Mapping[str, Any]]) -> None: ...

    def decode_error(self, data: Any) -> BaseException: ...


@dataclass(frozen=True)
class Asked:
    """One request: what to do, on what, with what."""

    do: str
    on: Any = None
    name: str = ""
    args: Sequence[Any] = ()
    named: Mapping[str, Any] | None = None


class Connection:
    """Requests by any thread or task; one thread of its own reads what comes back."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._sending = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Any]] = {}
        self._gone: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loops = 0

    def start(self) -> None:
        """Begins to read."""
        threading.Thread(target=self._read, name="replies", daemon=True).start()

    def ask(self, asked: Asked, codec: Codec) -> Any:
        """Does it there and waits for what came of it."""
        reply = self._send(asked, codec, wait=False)[1].result()
        return self._result(reply, asked, codec)

    async def ask_and_await(self, asked: Asked, codec: Codec) -> Any:
        """Does it there and awaits what came of it; is cancelled there where it is cancelled."""
        number, future = self._send(asked, codec, wait=True)
        reply = asyncio.wrap_future(future)
        while not reply.done():
            try:
                await asyncio.shield(reply)
            except asyncio.CancelledError:
                if reply.cancelled() or self._gone is not None:
                    raise
                self._say({"do": "cancel", "id": number, "loop": self._loop_number()})
        return self._result(reply.result(), asked, codec)

    def _send(self, asked: Asked, codec: Codec, *, wait: bool) -> tuple[int, Future[Any]]:
        if self._gone is not None:
            raise AnswerGone(self._gone)
        number, future = next(self._numbers), Future[Any]()
        words = {
            "id": number,
            "do": asked.do,
            "on": codec.encode(asked.on),
            "name": asked.name,
            "args": codec.encode(list(asked.args)),
            "named": codec.encode(dict(asked.named or {})),
            "loop": self._loop_number(),
            "wait": wait,
        }
        self._waiting[number] = future
        self._say(words)
        return number, future

    def _say(self, words: object) -> None:
        try:
            with self._sending:
                self._line.send(words)
        except OSError as error:
            self._end(f"the line to the answer's process broke: {error}")
        if self._gone is not None:
            self._end(self._gone)

    def _loop_number(self) -> int | None:
        """Which event loop runs here: there will be one there for as long as this one runs."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._loops if self._loop and self._loop.is_running() else None
        if loop is not self._loop:
            self._loop, self._loops = loop, self._loops + 1
        return self._loops

    def _result(self, reply: Any, asked: Asked, codec: Codec) -> Any:
        try:
            return self._read_reply(reply, asked, codec)
        except (Nonsense, LookupError, AttributeError, TypeError) as error:
            if getattr(error, "__evals_raised__", False):
                raise
            self._end(f"the answer's process spoke nonsense: {error}")
            raise AnswerGone(self._gone) from None

    def _read_reply(self, reply: Any, asked: Asked, codec: Codec) -> Any:
        codec.learn(reply["classes"])
        if "changed" in reply:
            args, named = map(codec.decode, reply["changed"])
            values.write_back(list(asked.args), args)
            values.write_back(dict(asked.named or {}), named)
        if "interface" in reply:
            return reply["interface"]
        if "value" in reply:
            return codec.decode(reply["value"])
        if "cancelled" in reply:
            raise asyncio.CancelledError
        error = codec.decode_error(reply["raised"])
        raise _marked(error)

    def _read(self) -> None:
        try:
            while True:
                reply = self._line.receive()
                if future := self._waiting.pop(reply["id"], None):
                    future.set_result(reply)
        except EOFError as end:
            self._end(str(end) or "the answer's process has ended")
        except (Nonsense, LookupError, TypeError) as error:
            self._end(f"the answer's process spoke nonsense: {error}")

    def _end(self, reason: str) -> None:
        self._gone = self._gone or reason
        while self._waiting:
            _, future = self._waiting.popitem()
            if not future.done():
                future.set_exception(AnswerGone(self._gone))


def _marked(error: BaseException) -> BaseException:
    """So that what an answer raised is told from what goes wrong in understanding it."""
    error.__dict__["__evals_raised__"] = True
    return error

"""The tests' side of the line, and likenesses of an answer's classes and functions over there."""

import asyncio
import itertools
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, ClassVar

from eval_pipeline.suites.coding.isolated_tests.values import (
    OF_STRANGERS,
    OPERATIONS,
    Codec,
    write_back,
)
from eval_pipeline.suites.coding.isolated_tests.wire import Frames, Nonsense

HANDLE = "__evals_handle__"
# Decided there only between two objects from there: what is compared with plain data is our word.
_COMPARED = ("__eq__", "__lt__", "__le__", "__gt__", "__ge__")
_ASYNCHRONOUS = ("__aenter__", "__aexit__", "__anext__")
_LOCAL = ("__await__", "__hash__")

_Given = tuple[list[Any], dict[str, Any]]


class AnswerGone(BaseException):
    """The process of the answer has ended or can not be understood any more."""


class Far(Codec):
    """Requests to the answer's process by any thread or task; one thread reads the replies."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._sending = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Any]] = {}
        self._gone: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loops = 0
        self._told_classes: dict[int, Mapping[str, Any]] = {}

    def start(self) -> None:
        """Begins to read."""
        threading.Thread(target=self._read, name="replies", daemon=True).start()

    def receive(self) -> Any:
        """The next word of the answer's process; EOFError says why there will be none."""
        kind, word = self._frames.receive_kind()
        if kind == b"G":
            raise EOFError(str(word))
        return word

    def ask(self, do: str, on: Any, name: str = "", /, *args: Any, **named: Any) -> Any:
        """Does something there and waits for what came of it."""
        given = ([*args], named)
        return self._result(self._send(do, on, name, given, wait=False)[1].result(), given)

    async def wait(self, do: str, on: Any, name: str = "", /, *args: Any, **named: Any) -> Any:
        """Does it there and awaits what came of it; is cancelled there where it is cancelled."""
        given = ([*args], named)
        number, future = self._send(do, on, name, given, wait=True)
        reply = asyncio.wrap_future(future)
        while not reply.done():
            try:
                await asyncio.shield(reply)
            except asyncio.CancelledError:
                if reply.cancelled() or self._gone is not None:
                    raise
                self._say({"do": "cancel", "id": number, "loop": self._loop_number()})
        return self._result(reply.result(), given)

    def calling(self, do: str, on: Any, name: str, *, asynchronous: bool) -> Callable[..., Any]:
        """A function that does it, or a coroutine function."""
        return partial(self.wait if asynchronous else self.ask, do, on, name)

    def _send(
        self, do: str, on: Any, name: str, given: _Given, *, wait: bool
    ) -> tuple[int, Future[Any]]:
        if self._gone is not None:
            raise AnswerGone(self._gone)
        number, future = next(self._numbers), Future[Any]()
        words = {"id": number, "do": do, "on": self.encode(on), "name": name}
        words |= {"given": self.encode(given), "loop": self._loop_number(), "wait": wait}
        self._waiting[number] = future
        self._say(words)
        return number, future

    def _say(self, words: object) -> None:
        try:
            with self._sending:
                self._frames.send(words, b"A")
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

    def _result(self, reply: Any, given: _Given) -> Any:
        """Return the value that the other process returned, or raise the error that it raised."""
        try:
            self._told_classes |= {int(words["number"]): words for words in reply["classes"]}
            if "changed" in reply:
                for original, changed in zip(given, self.decode(reply["changed"]), strict=True):
                    write_back(original, changed)
            if "interface" in reply:
                return reply["interface"]
            if "value" in reply:
                return self.decode(reply["value"])
            cancelled = "cancelled" in reply
            raised = asyncio.CancelledError() if cancelled else self.decode_error(reply["raised"])
        except (Nonsense, LookupError, AttributeError, TypeError, ValueError) as error:
            self._end(f"the answer's process spoke nonsense: {error}")
            raise AnswerGone(self._gone) from None
        raise raised

    def _read(self) -> None:
        try:
            while True:
                reply = self.receive()
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


class _Remote:
    """Anything there, whose attributes are asked for when they are needed."""

    _far: Far

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._far.ask("get", self, name)


class FarFunction(_Remote):
    """A function there, or anything that is called and is no class."""

    def __init__(self, far: Far, target: list[Any], *, asynchronous: bool, name: str) -> None:
        self.__evals_target__ = target
        self._far = far
        self._call = far.calling("call", self, "", asynchronous=asynchronous)
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._call(*args, **named)


class FarType(_Remote, type):
    """The class of likenesses of classes: calling one makes an object there."""

    __evals_place__: list[str] | None

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if cls.__evals_place__ is None:
            raise TypeError(f"{cls.__name__} is not among the names that tests may use.")
        return cls._far.ask("call", cls, "", *args, **named)


class FarObject(_Remote):
    """An object there."""

    _methods: ClassVar[Mapping[str, bool]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in self._methods and not name.startswith("__"):
            return self._far.calling("method", self, name, asynchronous=self._methods[name])
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._far.ask("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._far.ask("delete", self, name)

    def __copy__(self) -> Any:
        return self._far.ask("operate", self, "__copy__")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self._far.ask("operate", self, "__deepcopy__")


def make_class(
    far: Far, words: Mapping[str, Any], parents: tuple[type, ...], place: list[str] | None
) -> FarType:
    """A likeness of a class, which can what the class can."""
    allowed = frozenset(OPERATIONS) if place or parents else OF_STRANGERS
    operations = words["operations"]
    names = allowed.intersection(operations).difference(_LOCAL)
    body: dict[str, Any] = {name: _operation(far, name) for name in names}
    if "__await__" in operations:
        body["__await__"] = lambda self: far.wait("await", self).__await__()
    if "__eq__" in body:
        body["__hash__"] = _operation(far, "__hash__") if "__hash__" in operations else None
    inherited = {k: v for parent in parents for k, v in getattr(parent, "_methods", {}).items()}
    body |= {
        "_far": far,
        "_methods": inherited | {str(k): bool(v) for k, v in words["methods"].items()},
        "__evals_place__": place,
        "__module__": str(words["module"]),
    }
    return FarType(str(words["name"]), parents or (FarObject,), body)


def _operation(far: Far, name: str) -> Callable[..., Any]:
    if name in _ASYNCHRONOUS:

        async def operate_and_await(self: FarObject, *args: Any) -> Any:
            return await far.wait("operate", self, name, *args)

        return operate_and_await
    if name == "__call__":
        return lambda self, *args, **named: far.ask("call", self, "", *args, **named)
    if name in _COMPARED:
        return _comparison(far, name)
    return lambda self, *args: far.ask("operate", self, name, *args)


def _comparison(far: Far, name: str) -> Callable[..., Any]:
    def compare(self: FarObject, other: Any) -> Any:
        if not isinstance(other, FarObject):
            return NotImplemented
        found = far.ask("operate", self, name, other)
        if found is NotImplemented:
            return found
        if name == "__eq__" and found:
            other = far.ask("operate", self, name, "nothing that an answer makes equals this")
            if other is not NotImplemented and other:
                raise AssertionError("Its == holds for anything, so it says nothing.")
        return bool(found)

    return compare

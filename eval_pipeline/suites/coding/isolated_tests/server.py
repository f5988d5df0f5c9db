"""Runs in the answer's sandbox: imports its modules and does with them what tests ask for."""

import asyncio
import copy
import enum
import functools
import importlib
import inspect
import json
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from eval_pipeline.suites.coding.isolated_tests.values import (
    ENUM_BASES,
    OPERATIONS,
    Codec,
    as_parent,
    known_place,
)
from eval_pipeline.suites.coding.isolated_tests.wire import Frames, Nonsense, channel_of

_FUNCTIONS = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    functools.partial,
)
_COPIES: dict[str, Callable[..., Any]] = {"__copy__": copy.copy, "__deepcopy__": copy.deepcopy}


class Objects(Codec):
    """All objects that the other side holds on to, and the names by which it found the first."""

    def __init__(self, interface: Mapping[str, Sequence[str]]) -> None:
        self._kept: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._classes: dict[type, int] = {}
        self._new_classes: list[dict[str, Any]] = []
        self._named: dict[tuple[str, str], Any] = {}
        self._places: dict[int, list[str]] = {}
        for module, names in interface.items():
            for name in names:
                found = getattr(importlib.import_module(module), name)
                self._named[module, name] = found
                if callable(found):
                    self._places.setdefault(id(found), [module, name])

    def place(self, value: Any) -> list[str] | None:
        return self._places.get(id(value))

    def named(self, module: str, name: str) -> Any:
        return self._named[module, name]

    def new_classes(self) -> list[dict[str, Any]]:
        """Descriptions that the other side has not been told yet."""
        told, self._new_classes = self._new_classes, []
        return told

    def interface(self) -> dict[str, dict[str, Any]]:
        """All names of the interface with what they are."""
        told: dict[str, dict[str, Any]] = {}
        for (module, name), found in self._named.items():
            told.setdefault(module, {})[name] = self._told(found)
        return told

    def _told(self, found: Any) -> dict[str, Any]:
        if not isinstance(found, type):
            if callable(found):
                return {"kind": "function", "async": inspect.iscoroutinefunction(found)}
            return {"kind": "constant", "value": self.encode(found)}
        words = self._description(found) | {"kind": "class"}
        if issubclass(found, BaseException):
            return words | {"kind": "exception", "above": self._error_place(found.__mro__[1:])}
        if issubclass(found, enum.Enum):
            members = {name: self.encode(one.value) for name, one in found.__members__.items()}
            base = next(name for name, base in ENUM_BASES.items() if issubclass(found, base))
            return words | {"kind": "enum", "members": members, "base": base}
        if issubclass(found, tuple) and hasattr(found, "_fields"):
            defaults = getattr(found, "_field_defaults", {})
            fields = {"fields": list(found._fields), "defaults": self.encode(dict(defaults))}
            return words | {"kind": "namedtuple"} | fields
        return words

    def _description(self, kind: type) -> dict[str, Any]:
        """Describe a class in plain words; parents in the interface are named by where they are."""
        return {
            "name": kind.__name__,
            "module": kind.__module__,
            "place": self.place(kind),
            "parents": [place for parent in kind.__mro__[1:] if (place := self.place(parent))],
            "operations": [name for name in OPERATIONS if _has(kind, name)],
            "methods": {
                name: inspect.iscoroutinefunction(getattr(kind, name, None))
                for name in dir(kind)
                if not name.startswith("__") and _is_method(kind, name)
            },
        }

    def _encode_own(self, value: Any, depth: int) -> Any:
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            parts = self._encode_all(value, depth)
            return ["namedtuple", type(value).__name__, list(value._fields), *parts]
        if not any(map(self.place, type(value).__mro__)):
            parent = as_parent(value)
            if parent is not value:
                return self.encode(parent, depth)
        number = self._number(value)
        if inspect.iscoroutine(value):
            return ["awaitable", number]
        if isinstance(value, _FUNCTIONS):
            return ["function", number, inspect.iscoroutinefunction(value)]
        return ["object", number, self._class_number(type(value))]

    def _number(self, value: Any) -> int:
        """Kept for good, so that no other object ever gets its number."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._kept)
            self._kept.append(value)
        return self._numbers[id(value)]

    def _class_number(self, kind: type) -> int:
        if kind not in self._classes:
            number = self._classes[kind] = len(self._classes)
            self._new_classes.append(self._description(kind) | {"number": number})
        return self._classes[kind]

    def encode_error(self, error: BaseException) -> dict[str, Any]:
        """An exception for the other side, to be raised there as what it is."""
        return super().encode_error(error) | {"number": self._number(error)}

    def _encode_error_class(self, kind: type[BaseException]) -> Any:
        return self._error_place(kind.__mro__)

    def _error_place(self, parents: Sequence[type]) -> list[Any]:
        """The class itself if both sides know it, else its name and the nearest that they know."""
        known = (kind for kind in parents if self.place(kind) or known_place(kind))
        nearest = next(known, Exception)
        words = self._encode_known(nearest, 0)
        return words if nearest is parents[0] else ["like", parents[0].__name__, words]

    def _decode_own(self, data: list[Any], depth: int) -> Any:
        match data:
            case ["object", int(number), *_]:
                return self._kept[number]
        raise LookupError(data[0])


def _has(kind: type, name: str) -> bool:
    if name in ("__str__", "__repr__", "__format__"):
        return True
    found = getattr(kind, name, None)
    return found is not None and found is not getattr(object, name, None)


def _is_method(kind: type, name: str) -> bool:
    found = inspect.getattr_static(kind, name, None)
    return inspect.isfunction(found) or isinstance(found, classmethod | staticmethod)


Request = dict[str, Any]


class Server:
    """Answers one request after the other, or many at once where an event loop runs."""

    def __init__(self, frames: Frames, objects: Objects) -> None:
        self._frames, self._objects = frames, objects
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def serve(self) -> None:
        """Until the other side has gone; an event loop here lasts as long as the one there."""
        request = self._frames.receive()
        while True:
            if request["loop"] is None:
                self._answer(request)
                request = self._frames.receive()
            else:
                request = asyncio.run(self._serve_loop(request))

    async def _serve_loop(self, first: Request) -> Request:
        """All requests of one event loop; gives the first that is not of it."""
        loop, number = asyncio.get_running_loop(), first["loop"]
        after: asyncio.Future[Request] = loop.create_future()
        self._take(first)

        def read(*, more: bool = True) -> None:
            try:
                if more:
                    self._frames.read_more()
                while not after.done() and (request := self._frames.buffered()):
                    self._take(request) if request["loop"] == number else after.set_result(request)
            except (EOFError, Nonsense):
                leave()

        read(more=False)
        loop.add_reader(self._frames.fileno(), read)
        try:
            return await after
        finally:
            loop.remove_reader(self._frames.fileno())

    def _take(self, request: Request) -> None:
        """Begins with a request, or cancels one that was begun."""
        if request["do"] != "cancel":
            self._tasks[request["id"]] = asyncio.create_task(self._answer_in_loop(request))
        elif task := self._tasks.get(request["id"]):
            # Not at once: what is cancelled before it has begun would never be answered.
            asyncio.get_running_loop().call_soon(task.cancel)

    def _answer(self, request: Request) -> None:
        with self._reported(request):
            self._returned(request, self._done(request))

    async def _answer_in_loop(self, request: Request) -> None:
        with self._reported(request):
            result = self._done(request)
            self._returned(request, await result if request["wait"] else result)
        del self._tasks[request["id"]]

    @contextmanager
    def _reported(self, request: Request) -> Iterator[None]:
        """Sends whatever an answer raises as the result."""
        try:
            yield
        except asyncio.CancelledError:
            self._send(request, {"cancelled": True})
        except BaseException as error:  # noqa: BLE001  (it is code of an answer)
            self._send(request, {"raised": self._objects.encode_error(error)})

    def _done(self, request: Request) -> Any:
        target = self._objects.decode(request["on"])
        arguments, named = request["objects"] = self._objects.decode(request["given"])
        name = request["name"]
        done: Mapping[str, Callable[[], Any]] = {
            "describe": self._objects.interface,
            "call": lambda: target(*arguments, **named),
            "method": lambda: getattr(target, name)(*arguments, **named),
            "get": lambda: getattr(target, name),
            "set": lambda: setattr(target, name, *arguments),
            "delete": lambda: delattr(target, name),
            "operate": lambda: (_COPIES.get(name) or getattr(type(target), name))(
                target, *arguments
            ),
            "await": lambda: target,
        }
        return done[request["do"]]()

    def _returned(self, request: Request, result: Any) -> None:
        described = request["do"] == "describe"
        words = {"interface": result} if described else {"value": self._objects.encode(result)}
        self._send(request, words)

    def _send(self, request: Request, words: dict[str, Any]) -> None:
        words |= {"id": request["id"], "classes": self._objects.new_classes()}
        if objects := request.pop("objects", None):
            now = self._objects.encode(objects)
            if now != request["given"]:
                words["changed"] = now
        self._frames.send(words)


def leave() -> None:
    """At once, whatever threads or handlers an answer has left behind."""
    sys.stdout.flush()
    os._exit(0)


def main(interface: Mapping[str, Sequence[str]]) -> None:
    """Imports the modules and serves; that they can not be imported is the first answer."""
    frames = Frames(channel_of(os.environ))
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        server = Server(frames, Objects(interface))
    except BaseException as error:
        frames.send({"broken": f"{type(error).__name__}: {error}"})
        raise
    frames.send({"ready": True})
    try:
        server.serve()
    except (EOFError, OSError):
        leave()


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    del sys.argv[1:]
    main(asked)

"""Likenesses of an answer's classes and functions: whatever is done to one is done over there."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from eval_pipeline.suites.coding.isolated_tests.client import Asked, Codec, Connection
from eval_pipeline.suites.coding.isolated_tests.values import OF_STRANGERS, OPERATIONS

HANDLE = "__evals_handle__"
# Decided there only between two objects from there: what is compared with plain data is our word.
_COMPARED = ("__eq__", "__lt__", "__le__", "__gt__", "__ge__")
_ASYNCHRONOUS = ("__aenter__", "__aexit__", "__anext__")
_LOCAL = ("__await__", "__hash__")


class Far:
    """The way to the answer's process; there is one for all likenesses."""

    def __init__(self, connection: Connection, codec: Codec) -> None:
        self._connection, self._codec = connection, codec

    def ask(self, do: str, on: Any, name: str = "", *args: Any, **named: Any) -> Any:
        """Does something there."""
        return self._connection.ask(Asked(do, on, name, args, named), self._codec)

    async def wait(self, do: str, on: Any, name: str = "", *args: Any, **named: Any) -> Any:
        """Does something there and awaits its result."""
        return await self._connection.ask_and_await(Asked(do, on, name, args, named), self._codec)

    def calling(self, do: str, on: Any, name: str, *, asynchronous: bool) -> Callable[..., Any]:
        """A function that does it, or a coroutine function."""

        def call(*args: Any, **named: Any) -> Any:
            return self._connection.ask(Asked(do, on, name, args, named), self._codec)

        async def call_and_await(*args: Any, **named: Any) -> Any:
            asked = Asked(do, on, name, args, named)
            return await self._connection.ask_and_await(asked, self._codec)

        return call_and_await if asynchronous else call


class FarFunction:
    """A function there, or anything that is called and is no class."""

    def __init__(self, far: Far, target: list[Any], *, asynchronous: bool, name: str) -> None:
        self.__evals_target__ = target
        self._far = far
        self._call = far.calling("call", self, "", asynchronous=asynchronous)
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._call(*args, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._far.ask("get", self, name)


class FarType(type):
    """The class of likenesses of classes: calling one makes an object there."""

    _far: ClassVar[Far]
    __evals_place__: list[str] | None

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if cls.__evals_place__ is None:
            raise TypeError(f"{cls.__name__} is not among the names that tests may use.")
        return cls._far.calling("call", cls, "", asynchronous=False)(*args, **named)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls._far.ask("get", cls, name)


class FarObject:
    """An object there."""

    _far: ClassVar[Far]
    _methods: ClassVar[Mapping[str, bool]] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._methods:
            return self._far.calling("method", self, name, asynchronous=self._methods[name])
        return self._far.ask("get", self, name)

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
    names = allowed.intersection(words["operations"]).difference(_LOCAL)
    body: dict[str, Any] = {name: _operation(far, name) for name in names}
    if "__await__" in words["operations"]:
        body["__await__"] = lambda self: far.wait("await", self).__await__()
    if "__eq__" in body:
        body["__hash__"] = _operation(far, "__hash__") if _hashable(words) else None
    inherited = {k: v for parent in parents for k, v in getattr(parent, "_methods", {}).items()}
    body |= {
        "_far": far,
        "_methods": inherited | {str(k): bool(v) for k, v in words["methods"].items()},
        "__evals_place__": place,
        "__module__": str(words["module"]),
    }
    return FarType(str(words["name"]), parents or (FarObject,), body)


def make_object(kind: FarType, number: int, class_number: int) -> FarObject:
    """A likeness of one object."""
    made: FarObject = object.__new__(cast(type[Any], kind))
    made.__dict__[HANDLE] = ["object", number, class_number]
    return made


def _hashable(words: Mapping[str, Any]) -> bool:
    return "__hash__" in words["operations"]


def _operation(far: Far, name: str) -> Callable[..., Any]:
    if name in _ASYNCHRONOUS:

        async def operate_and_await(self: FarObject, *args: Any) -> Any:
            return await far.wait("operate", self, name, *_handed_over(args))

        return operate_and_await
    if name == "__call__":
        return lambda self, *args, **named: far.calling("call", self, "", asynchronous=False)(
            *args, **named
        )
    return _compared(far, name) if name in _COMPARED else _operated(far, name)


def _operated(far: Far, name: str) -> Callable[..., Any]:
    def operate(self: FarObject, *args: Any) -> Any:
        return far.ask("operate", self, name, *_handed_over(args))

    return operate


def _compared(far: Far, name: str) -> Callable[..., Any]:
    def compare(self: FarObject, other: Any) -> Any:
        if not isinstance(other, FarObject):
            return NotImplemented
        found = far.ask("operate", self, name, other)
        if found is NotImplemented:
            return found
        if name == "__eq__" and found and _equals_anything(far, self):
            raise AssertionError("Its == holds for anything, so it says nothing.")
        return bool(found)

    return compare


def _equals_anything(far: Far, one: FarObject) -> bool:
    found = far.ask("operate", one, "__eq__", "nothing that an answer makes equals this")
    return found is not NotImplemented and bool(found)


def _handed_over(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tracebacks stay here."""
    return tuple(None if type(one).__name__ == "traceback" else one for one in args)


async def awaiting(far: Far, number: int) -> Any:
    """A coroutine there, as one here."""
    return await far.wait("await", _Numbered(number))


class _Numbered(FarObject):
    def __init__(self, number: int) -> None:
        self.__dict__[HANDLE] = ["object", number]

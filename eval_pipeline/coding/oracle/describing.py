"""What a class of an answer can do, in words from which another process makes a likeness of it."""

import enum
import inspect
from collections.abc import Callable
from typing import Any

Place = Callable[[type], list[str] | None]
_BINARY = "add sub mul truediv floordiv mod divmod pow matmul lshift rshift and or xor"
_SINGLE = (
    "len iter next reversed contains getitem setitem delitem enter exit call bool int float index "
    "complex abs neg pos invert round trunc floor ceil eq lt le gt ge hash str repr format bytes "
    "await aenter aexit aiter anext fspath"
)
OPERATIONS = (
    *(f"__{name}__" for name in _SINGLE.split()),
    *(f"__{side}{name}__" for name in _BINARY.split() for side in ("", "r", "i")),
)
"""All that may be asked of an object with an operator or by a builtin function."""
_TELLING = "contains int float index complex abs neg pos invert round trunc floor ceil bytes fspath"
OF_STRANGERS = frozenset(OPERATIONS) - {
    *(f"__{name}__" for name in _TELLING.split()),
    *(f"__{side}{name}__" for name in _BINARY.split() for side in ("", "r", "i")),
}
"""What is asked of objects that nobody has agreed on: nothing by which they could pass for numbers
or for collections that hold whatever they are asked for."""


def describe(kind: type, place: Place) -> dict[str, Any]:
    """A class in plain words; its interface parents are named by where they are."""
    parents = [found for parent in kind.__mro__[1:] if (found := place(parent))]
    return {
        "name": kind.__name__,
        "module": kind.__module__,
        "place": place(kind),
        "parents": parents,
        "operations": [name for name in OPERATIONS if _has(kind, name)],
        "methods": {
            name: _is_async(kind, name)
            for name in dir(kind)
            if not name.startswith("__") and _is_method(kind, name)
        },
    }


def enum_base(kind: type[enum.Enum]) -> str:
    """Which sort of enumeration it is."""
    for base in (enum.StrEnum, enum.IntFlag, enum.Flag, enum.IntEnum):
        if issubclass(kind, base):
            return base.__name__
    return next((plain.__name__ for plain in (str, int) if issubclass(kind, plain)), "Enum")


def _has(kind: type, name: str) -> bool:
    if name in ("__str__", "__repr__", "__format__"):
        return True
    found = getattr(kind, name, None)
    return found is not None and found is not getattr(object, name, None)


def _is_method(kind: type, name: str) -> bool:
    found = inspect.getattr_static(kind, name, None)
    return inspect.isfunction(found) or isinstance(found, classmethod | staticmethod)


def _is_async(kind: type, name: str) -> bool:
    return inspect.iscoroutinefunction(getattr(kind, name, None))

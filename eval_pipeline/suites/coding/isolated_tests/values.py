"""Plain values and exceptions as JSON and back: the same types, order and digits, nothing live."""

import builtins
import enum
import importlib
import inspect
import math
import types
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from eval_pipeline.suites.coding.isolated_tests.wire import Nonsense

Other = Callable[[Any, int], Any]
MAX_DEPTH = 150
_SAFE = 2**53
_TYPES = (bool, int, float, str, bytes, list, tuple, dict, set, frozenset, complex, object)
_NAMED_TYPES = {kind.__name__: kind for kind in (*_TYPES, date, datetime, Decimal, types.NoneType)}


def _zone(zone: tzinfo | None) -> list[Any] | None:
    if zone is None:
        return None
    if isinstance(zone, ZoneInfo) and zone.key:
        return ["zone", zone.key]
    offset = zone.utcoffset(None)
    return None if offset is None else ["offset", offset // timedelta(microseconds=1)]


def _read_zone(data: list[Any] | None) -> tzinfo | None:
    if data is None:
        return None
    kind, value = data
    return ZoneInfo(value) if kind == "zone" else timezone(timedelta(microseconds=value))


def _moment(value: datetime | time) -> list[Any]:
    zone = _zone(value.tzinfo)
    if zone is None and isinstance(value, datetime) and value.tzinfo is not None:
        zone = ["offset", (value.utcoffset() or timedelta()) // timedelta(microseconds=1)]
    return [value.replace(tzinfo=None).isoformat(), value.fold, zone]


def _read_moment(
    kind: type[datetime] | type[time], text: str, fold: int, zone: list[Any] | None
) -> datetime | time:
    return kind.fromisoformat(text).replace(fold=fold, tzinfo=_read_zone(zone))


# By type: its tag, what is written of a value, and how that is read again.
_ATOMS: dict[type, tuple[str, Callable[[Any], list[Any]], Callable[..., Any]]] = {
    bytes: ("bytes", lambda value: [value.hex()], bytes.fromhex),
    bytearray: ("bytearray", lambda value: [value.hex()], bytearray.fromhex),
    complex: (
        "complex",
        lambda value: [repr(value.real), repr(value.imag)],
        lambda real, imaginary: complex(float(real), float(imaginary)),
    ),
    datetime: ("datetime", _moment, partial(_read_moment, datetime)),
    date: ("date", lambda value: [value.isoformat()], date.fromisoformat),
    time: ("time", _moment, partial(_read_moment, time)),
    timedelta: (
        "timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        timedelta,
    ),
    timezone: ("timezone", lambda value: [_zone(value)], _read_zone),
    ZoneInfo: ("zone", lambda value: [value.key], ZoneInfo),
    Decimal: ("decimal", lambda value: [str(value)], Decimal),
    UUID: ("uuid", lambda value: [value.hex], UUID),
    PurePosixPath: ("purepath", lambda value: [str(value)], PurePosixPath),
    type(Path()): ("path", lambda value: [str(value)], Path),
    types.NotImplementedType: ("notimplemented", lambda _: [], lambda: NotImplemented),
    types.EllipsisType: ("ellipsis", lambda _: [], lambda: ...),
}
_BUNCHES: dict[type, tuple[str, Callable[[Any], Iterable[Any]], Callable[[list[Any]], Any]]] = {
    list: ("list", list, list),
    tuple: ("tuple", list, tuple),
    set: ("set", list, set),
    frozenset: ("frozenset", list, frozenset),
    dict: ("dict", lambda value: [part for pair in value.items() for part in pair], lambda parts: (
        dict(zip(parts[::2], parts[1::2], strict=True))
    )),
    deque: ("deque", lambda value: [value.maxlen, *value], lambda parts: (
        deque(parts[1:], parts[0])
    )),
    range: ("range", lambda value: [value.start, value.stop, value.step], lambda parts: (
        range(*parts)
    )),
    slice: ("slice", lambda value: [value.start, value.stop, value.step], lambda parts: (
        slice(*parts)
    )),
    Fraction: ("fraction", lambda value: [value.numerator, value.denominator], lambda parts: (
        Fraction(*parts)
    )),
}  # fmt: skip
_ATOM_READERS = {tag: read for tag, _, read in _ATOMS.values()}
_BUNCH_READERS = {tag: read for tag, _, read in _BUNCHES.values()}
_PARENTS: tuple[type, ...] = (str, int, float, *_BUNCHES, *_ATOMS)


def encode(value: Any, other: Other, depth: int = 0) -> Any:
    """The value as JSON; what is not plain is left to `other`."""
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_SAFE < value < _SAFE else ["int", hex(value)]
    if kind is float:
        return value if math.isfinite(value) else ["float", repr(value)]
    if depth > MAX_DEPTH:
        raise TypeError("A value is nested too deeply to be handed over.")
    if kind in _ATOMS:
        tag, write, _ = _ATOMS[kind]
        return [tag, *write(value)]
    if kind in _BUNCHES:
        tag, take, _ = _BUNCHES[kind]
        return [tag, *(encode(part, other, depth + 1) for part in take(value))]
    if kind is type and value in _NAMED_TYPES.values():
        return ["type", value.__name__]
    return other(value, depth)


def as_parent(value: Any) -> Any:
    """The plain value that an object of a class of its own is, such as a Counter; else itself."""
    for parent in _PARENTS:
        if isinstance(value, parent):
            return _of_parent(value, parent)
    if isinstance(value, types.MappingProxyType):
        return dict(value)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()  # one number, which compares with others like any of Python's
    return PurePosixPath(value) if isinstance(value, PurePath) else value


def _of_parent(value: Any, parent: type) -> Any:
    if parent is str:
        return "".join(str.__iter__(value))
    if parent in _ATOMS:
        _, write, read = _ATOMS[parent]
        return read(*write(value))
    if parent in _BUNCHES:
        _, take, gather = _BUNCHES[parent]
        return gather(list(take(value)))
    return parent(value)


def decode(data: Any, other: Other, depth: int = 0) -> Any:
    """The value of such JSON; Nonsense if it is none."""
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if depth > MAX_DEPTH + 1 or not isinstance(data, list) or not data:
        raise Nonsense("A value is not as was agreed.")
    try:
        return _read(data, other, depth)
    except (TypeError, ValueError, ArithmeticError, LookupError, OSError) as error:
        raise Nonsense(f"A value can not be read: {error}") from None


def _read(data: list[Any], other: Other, depth: int) -> Any:
    tag, *parts = data
    if tag in _BUNCH_READERS:
        return _BUNCH_READERS[tag]([decode(part, other, depth + 1) for part in parts])
    if tag in _ATOM_READERS:
        return _ATOM_READERS[tag](*parts)
    if tag == "int":
        return int(parts[0], 16)
    if tag == "float":
        return float(parts[0])
    return _NAMED_TYPES[parts[0]] if tag == "type" else other(data, depth)


def write_back(original: Any, changed: Any) -> None:
    """Makes lists, dicts and sets that were given away what the other side made of them."""
    if type(original) is not type(changed):
        return
    if isinstance(original, list | tuple):
        merged = [_merged(*pair) for pair in zip(original, changed, strict=False)]
        if isinstance(original, list):
            original[:] = [*merged, *changed[len(original) :]]
    elif isinstance(original, dict):
        kept = {key: _merged(original.get(key), new) for key, new in changed.items()}
        original.clear()
        original.update(kept)
    elif isinstance(original, set):
        original.clear()
        original.update(changed)
    elif isinstance(original, deque | bytearray):
        original.clear()
        original.extend(changed)


def _merged(original: Any, changed: Any) -> Any:
    """The original, changed in place, where both are containers of one kind."""
    if isinstance(original, list | dict | set | deque | bytearray | tuple):
        write_back(original, changed)
        return original if type(original) is type(changed) and original == changed else changed
    return changed


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
            name: inspect.iscoroutinefunction(getattr(kind, name, None))
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


# Beside the builtin ones, what the standard library raises that tests may ask for by its class.
_ELSEWHERE = {
    "asyncio": ("CancelledError", "InvalidStateError", "QueueEmpty", "QueueFull"),
    "binascii": ("Error",),
    "concurrent.futures": ("BrokenExecutor",),
    "csv": ("Error",),
    "dataclasses": ("FrozenInstanceError",),
    "decimal": ("DecimalException", "InvalidOperation", "DivisionByZero", "Inexact", "Overflow"),
    "graphlib": ("CycleError",),
    "json": ("JSONDecodeError",),
    "queue": ("Empty", "Full"),
    "re": ("error",),
    "sqlite3": ("Error", "IntegrityError", "OperationalError", "ProgrammingError"),
    "struct": ("error",),
    "tomllib": ("TOMLDecodeError",),
    "zoneinfo": ("ZoneInfoNotFoundError",),
}
# Raised among tests these would end the tests instead of one test.
_NEVER = (KeyboardInterrupt, GeneratorExit)
_CAUSES = 4


def known_place(kind: type) -> list[str] | None:
    """Where both sides find a class of exceptions that is nobody's own."""
    if kind in _NEVER or not issubclass(kind, BaseException):
        return None
    if getattr(builtins, kind.__name__, None) is kind:
        return ["builtins", kind.__name__]
    for module, names in _ELSEWHERE.items():
        for name in names:
            if kind.__name__ == name and getattr(importlib.import_module(module), name) is kind:
                return [module, name]
    return None


def known_class(module: str, name: str) -> type[BaseException]:
    """The class at such a place; Nonsense if there is none."""
    if module == "builtins" or name in _ELSEWHERE.get(module, ()):
        kind = getattr(importlib.import_module(module), name, None)
        if isinstance(kind, type) and issubclass(kind, BaseException) and kind not in _NEVER:
            return kind
    raise Nonsense(f"{module}.{name} is no exception that is known.")


def encode_error(
    error: BaseException, encode: Callable[[Any], Any], place: Callable[[type], list[Any]]
) -> dict[str, Any]:
    """All of an exception that is plain, and of what caused it."""
    errors = [error]
    while (cause := errors[-1].__cause__) is not None and len(errors) <= _CAUSES:
        errors.append(cause)
    words, *causes = (
        {
            "class": place(type(one)),
            "args": [_or_text(argument, encode) for argument in one.args],
            "text": _text(one),
            "notes": [str(note) for note in getattr(one, "__notes__", ())],
            "attributes": _attributes(one, encode),
        }
        for one in errors
    )
    return words | {"causes": causes}


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  (it is code of an answer)
        return type(error).__name__


def _or_text(value: Any, encode: Callable[[Any], Any]) -> Any:
    try:
        return encode(value)
    except Exception:  # noqa: BLE001  (it is code of an answer)
        return f"<{type(value).__name__}>"


def _attributes(error: BaseException, encode: Callable[[Any], Any]) -> dict[str, Any]:
    """What can be read of it, whether it is stored on it, computed, or the same for its class."""
    own = (kind for kind in type(error).__mro__ if known_place(kind) is None)
    names = dict.fromkeys([*vars(error), *(name for kind in own for name in vars(kind))])
    found: dict[str, Any] = {}
    for name in names:
        with suppress(Exception):  # it is code of an answer
            value = getattr(error, name)
            if not name.startswith("__") and (name in vars(error) or not callable(value)):
                found[name] = _or_text(value, encode)
    return found


def decode_error(
    data: dict[str, Any], decode: Callable[[Any], Any], find: Callable[[Any], type[BaseException]]
) -> BaseException:
    """The exception of such words, never raised before."""
    error = _made(find(data["class"]), [decode(argument) for argument in data["args"]])
    for name, value in data["attributes"].items():
        setattr(error, str(name), decode(value))
    for note in data["notes"]:
        error.add_note(str(note))
    if hasattr(error, "__evals_text__"):
        error.__evals_text__ = str(data["text"])
    latest = error
    for cause in data.get("causes", [])[:_CAUSES]:
        latest.__cause__ = decode_error(cause, decode, find)
        latest = latest.__cause__
    return error


def _made(kind: type[BaseException], arguments: list[Any]) -> BaseException:
    """Whatever arguments its constructor wants, those are the ones it had in the end."""
    try:
        error = kind(*arguments)
    except Exception:  # noqa: BLE001  (its constructor may want others)
        error = kind.__new__(kind)
    with suppress(TypeError, ValueError):
        error.args = tuple(arguments)
    return error

"""Plain values and exceptions as JSON and back: the same types, order and digits, nothing live."""

import enum
import importlib
import math
import types
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from eval_pipeline.suites.coding.isolated_tests.wire import Nonsense

ENUM_BASES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (enum.StrEnum, enum.IntFlag, enum.Flag, enum.IntEnum, str, int, enum.Enum)
}
MAX_DEPTH = 150
_SAFE = 2**53
_MICROSECOND = timedelta(microseconds=1)
_TYPES = (bool, int, float, str, bytes, list, tuple, dict, set, frozenset, complex, object)
_NAMED_TYPES = {kind.__name__: kind for kind in (*_TYPES, date, datetime, Decimal, types.NoneType)}


def _moment(value: datetime | time) -> list[Any]:
    zone = value.tzinfo
    if isinstance(zone, ZoneInfo) and zone.key:
        return [value.replace(tzinfo=None).isoformat(), value.fold, zone.key]
    return [value.isoformat(), value.fold, None]


def _read_moment(
    kind: type[datetime] | type[time], text: str, fold: int, zone: str | None
) -> datetime | time:
    moment = kind.fromisoformat(text).replace(fold=fold)
    return moment if zone is None else moment.replace(tzinfo=ZoneInfo(zone))


def _text(value: Any) -> list[Any]:
    return [str(value)]


def _span(value: Any) -> list[Any]:
    return [value.start, value.stop, value.step]


_Kinds = dict[type, tuple[Callable[[Any], list[Any]], Callable[..., Any]]]
# By type: the parts of a value, and how they are one again. These may have parts of any type …
_BUNCHES: _Kinds = {
    list: (list, lambda *parts: [*parts]),
    tuple: (list, lambda *parts: parts),
    set: (list, lambda *parts: {*parts}),
    frozenset: (list, lambda *parts: frozenset(parts)),
    dict: (
        lambda value: [part for pair in value.items() for part in pair],
        lambda *parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    ),
    deque: (lambda value: [value.maxlen, *value], lambda most, *parts: deque(parts, most)),
    range: (_span, range),
    slice: (_span, slice),
    Fraction: (lambda value: [value.numerator, value.denominator], Fraction),
}
# … and those of these are plain.
_ATOMS: _Kinds = {
    bytes: (lambda value: [value.hex()], bytes.fromhex),
    bytearray: (lambda value: [value.hex()], bytearray.fromhex),
    complex: (_text, complex),
    datetime: (_moment, partial(_read_moment, datetime)),
    date: (lambda value: [value.isoformat()], date.fromisoformat),
    time: (_moment, partial(_read_moment, time)),
    timedelta: (lambda value: [value.days, value.seconds, value.microseconds], timedelta),
    timezone: (
        lambda value: [value.utcoffset(None) // _MICROSECOND],
        lambda offset: timezone(offset * _MICROSECOND),
    ),
    ZoneInfo: (_text, ZoneInfo),
    Decimal: (_text, Decimal),
    UUID: (_text, UUID),
    PurePosixPath: (_text, PurePosixPath),
    type(Path()): (_text, Path),
    types.NotImplementedType: (lambda _: [], lambda: NotImplemented),
    types.EllipsisType: (lambda _: [], lambda: ...),
}
_KINDS = _BUNCHES | _ATOMS
_BUNCH_READERS = {kind.__name__: read for kind, (_, read) in _BUNCHES.items()}
_ATOM_READERS = {kind.__name__: read for kind, (_, read) in _ATOMS.items()} | {
    "int": lambda digits: int(digits, 16),
    "float": float,
    "type": _NAMED_TYPES.__getitem__,
}


def as_parent(value: Any) -> Any:
    """The plain value that an object of a class of its own is, such as a Counter; else itself."""
    if isinstance(value, str):
        return "".join(str.__iter__(value))
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    for parent, (write, read) in _KINDS.items():
        if isinstance(value, parent):
            return read(*write(value))
    if isinstance(value, types.MappingProxyType):
        return dict(value)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return value.item()  # one number, which compares with others like any of Python's
    return PurePosixPath(value) if isinstance(value, PurePath) else value


def write_back(original: Any, changed: Any) -> None:
    """Makes lists, dicts and sets that were given away what the other side made of them."""
    if type(original) is not type(changed):
        return
    if isinstance(original, list | tuple):
        changed = [*map(_merged, original, changed), *changed[len(original) :]]
    elif isinstance(original, dict):
        changed = {key: _merged(original.get(key), new) for key, new in changed.items()}
    if isinstance(original, dict | set):
        original.clear()
        original.update(changed)
    elif isinstance(original, list | deque | bytearray):
        original.clear()
        original.extend(changed)


def _merged(original: Any, changed: Any) -> Any:
    """The original, changed in place, where both are containers of one kind."""
    if isinstance(original, list | dict | set | deque | bytearray | tuple):
        write_back(original, changed)
        return original if type(original) is type(changed) and original == changed else changed
    return changed


_ARITHMETIC = "add sub mul truediv floordiv mod divmod pow matmul lshift rshift and or xor"
_TELLING = "contains int float index complex abs neg pos invert round trunc floor ceil bytes fspath"
_OTHERS = (
    "len iter next reversed getitem setitem delitem enter exit call bool eq lt le gt ge hash str "
    "repr format await aenter aexit aiter anext"
)
OF_STRANGERS = frozenset(f"__{name}__" for name in _OTHERS.split())
"""Operations allowed on objects of unknown classes: none by which they could pass for numbers or
for collections that claim to contain any value."""
OPERATIONS = (
    *OF_STRANGERS,
    *(f"__{name}__" for name in _TELLING.split()),
    *(f"__{side}{name}__" for name in _ARITHMETIC.split() for side in ("", "r", "i")),
)
"""All that may be asked of an object with an operator or by a builtin function."""

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
    if kind not in _NEVER and issubclass(kind, BaseException):
        name = kind.__name__
        for module, names in {"builtins": (name,), **_ELSEWHERE}.items():
            if name in names and getattr(importlib.import_module(module), name, None) is kind:
                return [module, name]
    return None


def known_class(module: str, name: str) -> type[BaseException]:
    """The class at such a place; Nonsense if there is none."""
    if module == "builtins" or name in _ELSEWHERE.get(module, ()):
        kind = getattr(importlib.import_module(module), name, None)
        if isinstance(kind, type) and issubclass(kind, BaseException) and kind not in _NEVER:
            return kind
    raise Nonsense(f"{module}.{name} is no exception that is known.")


class Codec:
    """Values as JSON and back; each side adds what only it knows."""

    def place(self, value: Any) -> list[str] | None:
        """Return the module and the name by which both sides know a value, if there are any."""
        raise NotImplementedError

    def named(self, module: str, name: str) -> Any:
        """Return the object of that name in the interface."""
        raise NotImplementedError

    def _encode_own(self, value: Any, depth: int) -> Any:
        """Encode a value that is neither plain nor known to both sides."""
        raise NotImplementedError

    def _decode_own(self, data: list[Any], depth: int) -> Any:
        raise NotImplementedError

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Return a value as JSON for the other side; raise TypeError if it cannot be sent."""
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -_SAFE < value < _SAFE else ["int", hex(value)]
        if kind is float:
            return value if math.isfinite(value) else ["float", repr(value)]
        if depth > MAX_DEPTH:
            raise TypeError("A value is nested too deeply to be handed over.")
        if kind in _KINDS:
            return [kind.__name__, *self._encode_all(_KINDS[kind][0](value), depth)]
        if kind is type and value in _NAMED_TYPES.values():
            return ["type", value.__name__]
        return self._encode_known(value, depth)

    def _encode_all(self, parts: Iterable[Any], depth: int) -> list[Any]:
        return [self.encode(part, depth + 1) for part in parts]

    def _encode_known(self, value: Any, depth: int) -> Any:
        if place := self.place(value):
            return ["ref", *place]
        if isinstance(value, type) and (known := known_place(value)):
            return ["error", *known]
        if isinstance(value, BaseException):
            return ["exception", self.encode_error(value)]
        if place := self.place(type(value)):
            if isinstance(value, enum.Enum):
                return ["member", *place, value.name]
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return ["tuple_of", *place, *self._encode_all(value, depth)]
        return self._encode_own(value, depth)

    def decode(self, data: Any, depth: int = 0) -> Any:
        """Return the value that the other side encoded; raise Nonsense if it is invalid."""
        if data is None or isinstance(data, bool | int | float | str):
            return data
        if depth > MAX_DEPTH + 1 or not isinstance(data, list) or not data:
            raise Nonsense("A value is not as was agreed.")
        try:
            return self._decode(data, depth)
        except (TypeError, ValueError, ArithmeticError, LookupError, OSError) as error:
            raise Nonsense(f"A value cannot be read: {error}") from None

    def _decode(self, data: list[Any], depth: int) -> Any:
        tag, *parts = data
        if tag in _BUNCH_READERS:
            return _BUNCH_READERS[tag](*self._decode_all(parts, depth))
        return (
            _ATOM_READERS[tag](*parts) if tag in _ATOM_READERS else self._decode_known(data, depth)
        )

    def _decode_all(self, parts: list[Any], depth: int) -> list[Any]:
        return [self.decode(part, depth + 1) for part in parts]

    def _decode_known(self, data: list[Any], depth: int) -> Any:
        match data:
            case ["ref", str(module), str(name)]:
                return self.named(module, name)
            case ["error", str(module), str(name)]:
                return known_class(module, name)
            case ["member", str(module), str(name), str(member)]:
                return self.named(module, name)[member]
            case ["tuple_of", str(module), str(name), *parts]:
                return self.named(module, name)._make(self._decode_all(parts, depth))
            case ["exception", dict(words)]:
                return self.decode_error(words)
        return self._decode_own(data, depth)

    def encode_error(self, error: BaseException) -> dict[str, Any]:
        """Return all that is plain of an exception, and of what caused it."""
        errors = [error]
        while (cause := errors[-1].__cause__) is not None and len(errors) <= _CAUSES:
            errors.append(cause)
        words, *causes = map(self._error_words, errors)
        return words | {"causes": causes}

    def _error_words(self, error: BaseException) -> dict[str, Any]:
        return {
            "class": self._encode_error_class(type(error)),
            "args": [self._or_text(argument) for argument in error.args],
            "text": _text_of(error),
            "notes": [str(note) for note in getattr(error, "__notes__", ())],
            "attributes": self._attributes(error),
        }

    def _encode_error_class(self, kind: type[BaseException]) -> Any:
        return self.encode(kind)

    def _or_text(self, value: Any) -> Any:
        try:
            return self.encode(value)
        except Exception:  # noqa: BLE001  (it is code of an answer)
            return f"<{type(value).__name__}>"

    def _attributes(self, error: BaseException) -> dict[str, Any]:
        """Return the attributes of an error that can be read: stored, computed, or of its class."""
        own = (kind for kind in type(error).__mro__ if known_place(kind) is None)
        names = dict.fromkeys([*vars(error), *(name for kind in own for name in vars(kind))])
        found: dict[str, Any] = {}
        for name in names:
            with suppress(Exception):  # it is code of an answer
                value = getattr(error, name)
                if not name.startswith("__") and (name in vars(error) or not callable(value)):
                    found[name] = self._or_text(value)
        return found

    def decode_error(self, words: dict[str, Any]) -> BaseException:
        """Make the exception that such words describe, without raising it."""
        errors = [*map(self._decode_one_error, [words, *words["causes"][:_CAUSES]])]
        for error, cause in pairwise(errors):
            error.__cause__ = cause
        return errors[0]

    def _decode_one_error(self, words: dict[str, Any]) -> BaseException:
        arguments = [self.decode(argument) for argument in words["args"]]
        error = _made(self._decode_error_class(words["class"]), arguments)
        for name, value in words["attributes"].items():
            setattr(error, str(name), self.decode(value))
        for note in words["notes"]:
            error.add_note(str(note))
        if hasattr(error, "__evals_text__"):
            error.__evals_text__ = str(words["text"])
        return error

    def _decode_error_class(self, data: Any) -> type[BaseException]:
        kind = self.decode(data)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            return kind
        raise Nonsense("An exception is of no class that is known.")


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  (it is code of an answer)
        return type(error).__name__


def _made(kind: type[BaseException], arguments: list[Any]) -> BaseException:
    """Whatever arguments its constructor wants, those are the ones it had in the end."""
    try:
        error = kind(*arguments)
    except Exception:  # noqa: BLE001  (its constructor may want others)
        error = kind.__new__(kind)
    with suppress(TypeError, ValueError):
        error.args = tuple(arguments)
    return error

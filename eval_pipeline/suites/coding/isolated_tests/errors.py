"""Exceptions as plain values: which class, which arguments, what they say."""

import builtins
import importlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from eval_pipeline.suites.coding.isolated_tests.wire import Nonsense

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
    """All of an exception that is plain."""
    cause = error.__cause__
    causes: list[dict[str, Any]] = []
    while cause is not None and len(causes) < _CAUSES:
        causes.append(_one_error(cause, encode, place))
        cause = cause.__cause__
    return _one_error(error, encode, place) | {"causes": causes}


def _one_error(
    error: BaseException, encode: Callable[[Any], Any], place: Callable[[type], list[Any]]
) -> dict[str, Any]:
    return {
        "class": place(type(error)),
        "args": [_or_text(argument, encode) for argument in error.args],
        "text": _text(error),
        "notes": [str(note) for note in getattr(error, "__notes__", ())],
        "attributes": _attributes(error, encode),
    }


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

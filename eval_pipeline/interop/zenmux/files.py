"""JSON files of somebody else's, read within limits: an object, or a sentence why there is none."""

import json
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

import orjson

MOST_BYTES = 200 * 10**6
"""Of one file: a model's answers to thousands of questions are a tenth of it."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Entry = dict[str, Any]
"""An object as it stands in a file: nothing about it is certain."""


class Problem(NamedTuple):
    """What could not be taken from a file, and why."""

    file: str
    problem: str


class UnreadableError(Exception):
    """The file is left out; the message says why."""


def read_object(path: Path) -> Entry:
    """The one JSON object in the file."""
    parsed = _parsed(_content(path))
    if not isinstance(parsed, dict):
        raise UnreadableError("It is no JSON object.")
    return parsed


def _content(path: Path) -> bytes:
    if path.is_symlink():
        raise UnreadableError("It is a link, and links are not followed.")
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        raise _not_read(error) from None
    try:
        _check(os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _not_read(error) from None
    finally:
        os.close(descriptor)


def _check(found: os.stat_result) -> None:
    """Before anything is read: a pipe would have us wait for ever."""
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableError("It is no regular file.")
    if found.st_size > MOST_BYTES:
        size, most = f"{found.st_size / 1e6:,.0f} MB", f"{MOST_BYTES / 1e6:,.0f} MB"
        raise UnreadableError(f"It has {size}; up to {most} are read.")


def _not_read(error: OSError) -> UnreadableError:
    return UnreadableError(f"It can not be read ({error.strerror}).")


def _parsed(content: bytes) -> object:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    # Python itself writes what JSON does not know: NaN, and halves of characters.
    try:
        return json.loads(content)
    except RecursionError:
        raise UnreadableError("It is nested too deeply.") from None
    except ValueError as error:
        raise UnreadableError(f"It is damaged: {str(error)[:200]}.") from None


def object_in(entry: Entry, *names: str) -> Entry:
    """What is found by these names, one within the other; empty where there is no object."""
    for name in names:
        found = entry.get(name)
        if not isinstance(found, dict):
            return {}
        entry = found
    return entry


def text_in(entry: Entry, name: str) -> str | None:
    """The text of that name, if it is one and not empty."""
    found = entry.get(name)
    return found if isinstance(found, str) and found else None


def number_in(entry: Entry, name: str, most: float) -> float | None:
    """The number of that name, if it is one from 0 to `most`."""
    found = entry.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return found if 0 <= found <= most else None


def count_in(entry: Entry, name: str, most: int = 10**12) -> int | None:
    """The whole number of that name, if it is one from 0 to `most`."""
    found = number_in(entry, name, most)
    return int(found) if found is not None and found == int(found) else None

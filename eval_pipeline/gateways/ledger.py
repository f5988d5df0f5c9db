"""What all processes together may ask for per minute: the moments that are taken, in a file."""

import fcntl
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.gateways.limits import LATEST_TIMER_S, Wanted
from eval_pipeline.journal.disk import explained

FURTHEST_CLOCKS_S = 60.0
"""Clocks of machines that share a file are no further apart: what is, was set back since."""
LONGEST_NAME = 200
MOST_BYTES = 4096


@dataclass(frozen=True)
class Book:
    """Of each limit, the first moment that nobody has taken."""

    free_from: Mapping[str, float] = field(default_factory=dict)
    written_at: float = 0.0

    def take(self, wanted: Mapping[str, Wanted], now: float) -> "tuple[Book, dict[str, float]]":
        """The book with that taken too, one after the other, and from when on each may be used."""
        set_back = self.written_at - now
        shift = -set_back if set_back > FURTHEST_CLOCKS_S else 0.0
        begins = {
            # What a timer was late by is not lost.
            name: max(self._free_from(name) + shift + one.owed_s, now - LATEST_TIMER_S)
            for name, one in wanted.items()
        }
        ends = {name: begins[name] + one.seconds for name, one in wanted.items()}
        kept = {name: moment + shift for name, moment in self.free_from.items()}
        return Book({**kept, **ends}, now), begins

    def _free_from(self, name: str) -> float:
        return self.free_from.get(name, -math.inf)


class Ledger:
    """A book for all who share the file, or without one for this process alone.

    Nothing is given back: a moment that was taken by who is gone just passes.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._book = Book()

    def take(self, wanted: Mapping[str, Wanted]) -> dict[str, float] | None:
        """In how many seconds each may be used; None if somebody else is just writing."""
        if self.path is None:
            now = time.monotonic()
            self._book, begins = self._book.take(wanted, now)
            return {name: moment - now for name, moment in begins.items()}
        with explained(self.path), self._alone(self.path) as file:
            if file is None:
                return None
            now = time.time()
            book, begins = _read(file).take(wanted, now)
            _write(file, book)
        return {name: moment - now for name, moment in begins.items()}

    @contextmanager
    def _alone(self, path: Path) -> Iterator[int | None]:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            locked = None
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = file
            yield locked
        finally:
            os.close(file)


def ledger_file(data: Path, *names: str) -> Path:
    """Where the book of a gateway, or of one of its models, is kept."""
    name = quote("-".join(names), safe="")
    short = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}-{fingerprint(name)}"
    return data / "limits" / f"{short}.json"


def _read(file: int) -> Book:
    """What stands there; what nobody could have written counts as nothing."""
    try:
        found = json.loads(os.pread(file, MOST_BYTES, 0) or b"{}")
        moments = {str(name): float(moment) for name, moment in found.pop("free_from", {}).items()}
        book = Book(moments, float(found.get("written_at", 0.0)))
    except (ValueError, TypeError, AttributeError):
        return Book()
    return book if all(map(math.isfinite, (*moments.values(), book.written_at))) else Book()


def _write(file: int, book: Book) -> None:
    text = json.dumps({"free_from": dict(book.free_from), "written_at": book.written_at})
    os.pwrite(file, text.encode(), 0)
    os.ftruncate(file, len(text))

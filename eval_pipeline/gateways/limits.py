"""Rate limits: of one process, and shared by all processes through a file."""

import fcntl
import json
import math
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal.files import translate_os_errors

SMALLEST_BURST = 10
BURST_SHARE = 0.5
FASTEST_GROWTH = 0.1
LATEST_TIMER_S = 0.05
LONGEST_SHARE_S = 1.0
"""So much of a limit is taken in advance at most; with a process that is killed, it is lost."""
ROUNDING_S = 1e-9


class Wanted(NamedTuple):
    """How long a limit is used up by what is wanted, and by what earlier requests took besides."""

    seconds: float
    owed_s: float = 0.0


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter, bounded in attempts and in time.

    To be turned away (429) is no failure, so that may happen more often than failures may.
    """

    attempts: int
    first_wait_s: float
    longest_wait_s: float
    total_s: float
    attempts_when_limited: int = 20

    def wait_after(
        self,
        attempt: int,
        *,
        transient: bool,
        retry_after: float | None,
        jitter: float,
        elapsed_s: float,
        limited: bool = False,
    ) -> float | None:
        """Seconds to wait after the failed `attempt` of its kind (1, 2, …), or None to give up."""
        most = max(self.attempts, self.attempts_when_limited) if limited else self.attempts
        if attempt >= most or not transient:
            return None
        wait = jitter * min(self.longest_wait_s, self.first_wait_s * 2.0 ** min(attempt - 1, 60))
        if retry_after is not None:
            # The server's word counts, a little spread out so that not all come back at once.
            wait = max(wait, retry_after + wait * 0.1)
        return wait if elapsed_s + wait < self.total_s else None


class Window:
    """How many requests may run at once: halved when most are turned away, then grown again."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._width = float(most)
        self._full = max(2 * SMALLEST_BURST, most)
        self._cut_at = float("-inf")
        # What became of the last round of requests since the cut.
        self._turned_away: deque[bool] = deque()
        self._bad = 0

    @property
    def width(self) -> int:
        return int(self._width)

    def answered(self, started: float) -> None:
        """A request that began then was let through: a tenth more per round while all are."""
        if not self._bad and self._width == self.most and len(self._turned_away) >= self._full:
            return  # one more in a round that went well tells nothing new
        self._note(started, turned_away=False)
        grown = 1.0 if self._bad else max(1.0, FASTEST_GROWTH * self._width)
        self._width = min(float(self.most), self._width + grown / self._width)

    def turned_away(self, started: float, now: float) -> bool:
        """A request that began then was one too many; says whether they have become a burst."""
        self._note(started, turned_away=True)
        among = len(self._turned_away)
        if among < min(SMALLEST_BURST, self.width) or self._bad < BURST_SHARE * among:
            return False
        self._width = max(1.0, self._width / 2)
        self._cut_at, self._bad = now, 0
        self._turned_away.clear()
        return True

    def _note(self, started: float, *, turned_away: bool) -> None:
        # What began before the last cut tells of the time before it.
        if started < self._cut_at:
            return
        self._turned_away.append(turned_away)
        self._bad += turned_away
        while len(self._turned_away) > max(2 * SMALLEST_BURST, self.width):
            self._bad -= self._turned_away.popleft()


class Share:
    """So much per minute, evenly, out of what all who share the limit may use.

    It is taken in advance: for one request at first, and for more, up to a second's worth, by who
    uses up all of it without a pause. What is not used in its time is lost.
    """

    def __init__(self, per_minute: float) -> None:
        self._per_s = per_minute / 60
        self._next = self._ends = float("-inf")
        self._size = 0.0
        self._owed = self._told = 0.0

    def covers(self, amount: float, now: float) -> bool:
        """Whether so much of it is left."""
        left = self._ends - self._next
        return now <= self._ends + LATEST_TIMER_S and left >= amount / self._per_s - ROUNDING_S

    def wanted(self, amount: float, now: float) -> Wanted:
        """What to take: so much at least."""
        at_once = now <= self._ends
        more = 2 * self._size if at_once else 0.0
        self._size = max(amount, min(more, self._per_s * LONGEST_SHARE_S))
        # What is left is too little for this, and so goes back.
        left_s = self._ends - max(self._next, now) if at_once else 0.0
        self._told = self._owed
        return Wanted(self._size / self._per_s, self._owed / self._per_s - max(0.0, left_s))

    def given(self, wanted: Wanted, begins: float) -> None:
        """It was taken from then on."""
        self._next, self._ends = begins, begins + wanted.seconds
        self._owed -= self._told

    def ready_in(self, now: float) -> float:
        """Seconds until something may be used."""
        return max(0.0, self._next - now)

    def use(self, amount: float, now: float) -> None:
        """Uses up so much; what a timer was late by is not lost."""
        self._next = max(self._next, now - LATEST_TIMER_S) + amount / self._per_s

    def correct(self, amount: float) -> None:
        """So much more (or less) was used than was expected; all others are to know, too."""
        self._owed += amount
        self._next += amount / self._per_s
        self._ends += amount / self._per_s

    def debt(self) -> Wanted | None:
        """What others do not know yet."""
        self._told = self._owed
        return Wanted(0.0, self._owed / self._per_s) if self._owed else None


def parse_retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds from a Retry-After header, which holds a number or a date."""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())


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
        with translate_os_errors(self.path), self._alone(self.path) as file:
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

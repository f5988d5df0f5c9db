"""Rate limits: retries, requests at once, and limits per minute that processes share by a file."""

import fcntl
import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from io import FileIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pydantic import FiniteFloat, ValidationError

from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal.files import translate_os_errors
from eval_pipeline.records.base import Record

SMALLEST_BURST = 10
BURST_SHARE = 0.5
FASTEST_GROWTH = 0.1
LATEST_TIMER_S = 0.05
# The longest part of a limit that is taken in advance; it is lost with a process that is killed.
LONGEST_SHARE_S = 1.0
ROUNDING_S = 1e-9


class Reservation(NamedTuple):
    """The seconds of a limit that are wanted, and those that earlier requests took in excess."""

    seconds: float
    owed_s: float = 0.0


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter; a 429 may happen more often than failures may."""

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
        """Return the seconds to wait after `attempt` (1, 2, …) of its kind, or None to give up."""
        most = max(self.attempts, self.attempts_when_limited) if limited else self.attempts
        if attempt >= most or not transient:
            return None
        wait = jitter * min(self.longest_wait_s, self.first_wait_s * 2.0 ** min(attempt - 1, 60))
        if retry_after is not None:
            # The server's word counts, a little spread out so that not all come back at once.
            wait = max(wait, retry_after + wait * 0.1)
        return wait if elapsed_s + wait < self.total_s else None


class Window:
    """The number of requests that may run at once, which is halved after a burst of 429."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._width = float(most)
        self._cut_at = float("-inf")
        # The last round of requests since the cut: true for each that was turned away.
        self._turned_away: deque[bool] = deque()
        self._bad = 0

    @property
    def width(self) -> int:
        return int(self._width)

    def answered(self, started: float) -> None:
        """Note a success of a request that began then: a tenth more per round while all succeed."""
        self._note(started, turned_away=False)
        grown = 1.0 if self._bad else max(1.0, FASTEST_GROWTH * self._width)
        self._width = min(float(self.most), self._width + grown / self._width)

    def turned_away(self, started: float, now: float) -> bool:
        """Note a 429 of a request that began then; return whether they have become a burst."""
        self._note(started, turned_away=True)
        among = len(self._turned_away)
        if among < min(SMALLEST_BURST, self.width) or self._bad < BURST_SHARE * among:
            return False
        self._width = max(1.0, self._width / 2)
        self._cut_at, self._bad = now, 0
        self._turned_away.clear()
        return True

    def _note(self, started: float, *, turned_away: bool) -> None:
        # A request that began before the last cut says nothing about the time since.
        if started < self._cut_at:
            return
        self._turned_away.append(turned_away)
        self._bad += turned_away
        while len(self._turned_away) > max(2 * SMALLEST_BURST, self.width):
            self._bad -= self._turned_away.popleft()


class Share:
    """One process's part of a limit per minute, reserved in advance and spent evenly.

    It is for one request at first, and for more, up to a second's worth, if all of it is used up
    without a pause. What is not used in its time is lost.
    """

    def __init__(self, per_minute: float) -> None:
        self._per_s = per_minute / 60
        self._next = self._ends = float("-inf")
        self._size = 0.0
        self._owed = self._told = 0.0

    def covers(self, amount: float, now: float) -> bool:
        """Return whether so much of it is left."""
        left = self._ends - self._next
        return now <= self._ends + LATEST_TIMER_S and left >= amount / self._per_s - ROUNDING_S

    def wanted(self, amount: float, now: float) -> Reservation:
        """Return what to reserve: so much at least."""
        at_once = now <= self._ends
        more = 2 * self._size if at_once else 0.0
        self._size = max(amount, min(more, self._per_s * LONGEST_SHARE_S))
        # The rest is too little for this, and so goes back.
        left_s = self._ends - max(self._next, now) if at_once else 0.0
        self._told = self._owed
        return Reservation(self._size / self._per_s, self._owed / self._per_s - max(0.0, left_s))

    def given(self, wanted: Reservation, begins: float) -> None:
        """Note that it was reserved from then on."""
        self._next, self._ends = begins, begins + wanted.seconds
        self._owed -= self._told

    def ready_in(self, now: float) -> float:
        """Return the seconds until something may be used."""
        return max(0.0, self._next - now)

    def use(self, amount: float, now: float) -> None:
        """Use up so much; what a timer was late by is not lost."""
        self._next = max(self._next, now - LATEST_TIMER_S) + amount / self._per_s

    def correct(self, amount: float) -> None:
        """Note that so much more (or less) was used than was expected."""
        self._owed += amount
        self._next += amount / self._per_s
        self._ends += amount / self._per_s

    def debt(self) -> Reservation | None:
        """Return what the other processes do not know yet."""
        self._told = self._owed
        return Reservation(0.0, self._owed / self._per_s) if self._owed else None


def parse_retry_after(text: str | None, now: datetime) -> float | None:
    """Return the seconds of a Retry-After header, which holds a number or a date."""
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


# Clocks of machines that share a file are no further apart; one that is, was set back since.
FURTHEST_CLOCKS_S = 60.0
LONGEST_NAME = 200
MOST_BYTES = 4096


class Reservations(Record):
    """The first moment of each limit that is not reserved."""

    free_from: dict[str, FiniteFloat] = {}
    written_at: FiniteFloat = 0.0

    def take(
        self, wanted: Mapping[str, Reservation], now: float
    ) -> "tuple[Reservations, dict[str, float]]":
        """Add these, one after the other, and return also from when on each may be used."""
        set_back = self.written_at - now
        shift = -set_back if set_back > FURTHEST_CLOCKS_S else 0.0
        begins = {
            # The delay of a late timer is not lost.
            name: max(
                self.free_from.get(name, -math.inf) + shift + one.owed_s, now - LATEST_TIMER_S
            )
            for name, one in wanted.items()
        }
        ends = {name: begins[name] + one.seconds for name, one in wanted.items()}
        kept = {name: moment + shift for name, moment in self.free_from.items()}
        return Reservations(free_from={**kept, **ends}, written_at=now), begins


class SharedRateLimit:
    """The reservations of all processes that share the file; an unused one just passes."""

    def __init__(self, data: Path, *names: str) -> None:
        name = quote("-".join(names), safe="")
        short = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}-{fingerprint(name)}"
        self.path = data / "limits" / f"{short}.json"

    def take(self, wanted: Mapping[str, Reservation]) -> dict[str, float] | None:
        """Return in how many seconds each may be used; None while another process writes."""
        with translate_os_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b", buffering=0) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return None
                now = time.time()
                reserved, begins = _read(file).take(wanted, now)
                file.truncate(0)
                file.write(reserved.model_dump_json().encode())
        return {name: moment - now for name, moment in begins.items()}


def _read(file: FileIO) -> Reservations:
    """Return what the file says; contents that no process could have written count as nothing."""
    file.seek(0)
    try:
        return Reservations.model_validate_json(file.read(MOST_BYTES) or b"{}")
    except ValidationError:
        return Reservations()

"""Answers to readers: made once for all who ask at the same time, and kept for a moment."""

import gzip
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock, Semaphore
from typing import NamedTuple

MOST_KEPT = 64_000_000
AT_ONCE = 2
"""So many are made at a time."""
REST = 3
"""While a run is at work here, nothing is made for so many times as long as the last one took.

The lowest priority would not do: systems share a machine among sessions first, then within each.
"""
WORTH_PACKING = 1_000
PACKING = 5


class Answer(NamedTuple):
    """What is sent: the bytes, also packed, and a name that changes with them."""

    body: bytes
    packed: bytes | None
    media_type: str
    tag: str

    @classmethod
    def of(cls, body: bytes, media_type: str) -> "Answer":
        packed = gzip.compress(body, PACKING, mtime=0) if len(body) > WORTH_PACKING else None
        return cls(body, packed, media_type, f'"{sha256(body).hexdigest()[:32]}"')

    @property
    def size(self) -> int:
        return len(self.body) + len(self.packed or b"")


@dataclass
class _Made:
    """An answer that somebody makes, or has made."""

    answer: "Future[Answer]" = field(default_factory=Future)
    until: float = math.inf


class Kept:
    """Answers by what was asked."""

    def __init__(self, is_busy: Callable[[], bool] = lambda: False) -> None:
        self._is_busy = is_busy
        self._made: OrderedDict[Hashable, _Made] = OrderedDict()
        self._lock, self._turns = Lock(), Semaphore(AT_ONCE)
        self._rested_at = 0.0

    def get(self, asked: Hashable, make: Callable[[], Answer], for_s: float) -> Answer:
        """The answer that is known or being made, or a new one; failures are not kept."""
        with self._lock:
            known = self._made.get(asked)
            own = known is None or known.until < time.monotonic()
            if known is None or own:
                known = self._made[asked] = _Made()
                self._made.move_to_end(asked)
        if own:
            self._make(known, make)
            known.until = time.monotonic() + for_s
            with self._lock:
                self._forget()
        return known.answer.result()

    def _make(self, made: _Made, make: Callable[[], Answer]) -> None:
        with self._turns:
            if self._is_busy():
                time.sleep(max(0.0, self._rested_at - time.monotonic()))
            began = time.process_time()
            try:
                made.answer.set_result(make())
            except BaseException as error:  # noqa: BLE001  (whoever waits for it is told)
                made.answer.set_exception(error)
            self._rested_at = time.monotonic() + REST * (time.process_time() - began)

    def _forget(self) -> None:
        """What is old, failed, or the oldest of what is too much."""
        now, size = time.monotonic(), 0
        for asked, made in reversed(list(self._made.items())):
            if not made.answer.done():
                continue
            failed = made.answer.exception() is not None
            size += 0 if failed else made.answer.result().size
            if failed or made.until < now or size > MOST_KEPT:
                self._made.pop(asked)

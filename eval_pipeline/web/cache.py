"""Responses to readers: made once for all who ask at the same time, and cached for a moment."""

import gzip
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock, Semaphore
from typing import Any, NamedTuple

import orjson
from starlette.datastructures import QueryParams

from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.live import JournalTail
from eval_pipeline.web.routes import Links, Page, View
from eval_pipeline.web.templates import render

MOST_CACHED = 64_000_000
AT_ONCE = 2
"""The number of answers that are made at a time."""
BACKOFF_FACTOR = 3
"""While a run is active here, making an answer is followed by a pause this many times as long.

The lowest priority would not do: systems share a machine among sessions first, then within each.
"""
WORTH_PACKING = 1_000
PACKING = 5
HTML, JSON = "text/html; charset=utf-8", "application/json"
PAGES_CACHED_S, DOCUMENTS_CACHED_S, METRICS_CACHED_S = 10.0, 1.0, 300.0
"""The age an answer may have: reports and the journal change without the results' file."""
JSON_OPTIONS = (
    orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC | orjson.OPT_SERIALIZE_NUMPY
)


class Answer(NamedTuple):
    """The bytes of a response, also packed, and a tag that changes with them."""

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
class _Entry:
    """An answer that is made, or being made."""

    answer: "Future[Answer]" = field(default_factory=Future)
    until: float = math.inf


class ResponseCache:
    """Answers by request."""

    def __init__(self, is_busy: Callable[[], bool] = lambda: False) -> None:
        self._is_busy = is_busy
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock, self._turns = Lock(), Semaphore(AT_ONCE)
        self._rested_at = 0.0

    def get(self, asked: Hashable, make: Callable[[], Answer], for_s: float) -> Answer:
        """Return the cached answer or the one being made, or make it; failures are not cached."""
        with self._lock:
            entry = self._entries.get(asked)
            own = entry is None or entry.until < time.monotonic()
            if entry is None or own:
                entry = self._entries[asked] = _Entry()
                self._entries.move_to_end(asked)
        if own:
            self._make(entry, make)
            entry.until = time.monotonic() + for_s
            with self._lock:
                self._evict()
        return entry.answer.result()

    def _make(self, entry: _Entry, make: Callable[[], Answer]) -> None:
        with self._turns:
            if self._is_busy():
                time.sleep(max(0.0, self._rested_at - time.monotonic()))
            began = time.process_time()
            try:
                entry.answer.set_result(make())
            except BaseException as error:  # noqa: BLE001  (raised for all who wait for it)
                entry.answer.set_exception(error)
            pause = BACKOFF_FACTOR * (time.process_time() - began)
            self._rested_at = time.monotonic() + pause

    def _evict(self) -> None:
        """Remove outdated and failed answers, and the oldest beyond the limit of size."""
        now, size = time.monotonic(), 0
        for asked, entry in reversed(list(self._entries.items())):
            if not entry.answer.done():
                continue
            failed = entry.answer.exception() is not None
            size += 0 if failed else entry.answer.result().size
            if failed or entry.until < now or size > MOST_CACHED:
                self._entries.pop(asked)


class PageRenderer:
    """Makes answers, with a short look into the results each time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.journal = open_journal(settings)
        self.warehouse = Warehouse(settings.database, self.journal)
        self.tail = JournalTail(self.journal)
        self._cache = ResponseCache(self.tail.is_busy)

    @contextmanager
    def look(self, links: Links, asked: QueryParams | None = None) -> Iterator[View]:
        """Open the results read-only, only as long as it takes."""
        with self.warehouse.reading() as db:
            yield View(db, self.settings, self.journal, self.tail, links, asked or QueryParams())

    def page(self, path: str, asked: QueryParams, make: Callable[[View], Page]) -> Answer:
        """Return a page as HTML."""

        def as_html(view: View) -> Answer:
            return Answer.of(render(make(view), view.links).encode(), HTML)

        return self.answer(path, asked, as_html)

    def document(self, path: str, asked: QueryParams, make: Callable[[View], Any]) -> Answer:
        """Return a document as JSON; values that JSON has no type for are text."""

        def as_json(view: View) -> Answer:
            return Answer.of(orjson.dumps(make(view), _plain, JSON_OPTIONS), JSON)

        return self.answer(path, asked, as_json, DOCUMENTS_CACHED_S)

    def answer(
        self,
        path: str,
        asked: QueryParams,
        make: Callable[[View], Answer],
        for_s: float = PAGES_CACHED_S,
    ) -> Answer:
        """Return what `make` makes of the results, or has made of them up to `for_s` ago."""

        def answer() -> Answer:
            with self.look(Links(path), asked) as view:
                return make(view)

        return self._cache.get((path, str(asked), self._state()), answer, for_s)

    def _state(self) -> tuple[int, ...] | None:
        """Return numbers that change when results are published."""
        try:
            found = self.settings.database.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else str(value)

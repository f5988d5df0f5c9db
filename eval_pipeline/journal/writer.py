"""The journal's writer: records go to disk in groups while their producers go on."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

from eval_pipeline.journal.files import JournalError, as_line, sync, translate_os_errors, write_all
from eval_pipeline.records.base import Record

MOST_BYTES_WAITING = 8 * 1024 * 1024
MOST_LINES_WAITING = 2000
FARTHEST_BEHIND_S = 0.1
# Even a cheap fsync for each record would cost more than all the rest.
PAUSE_S = 0.05

log = logging.getLogger(__name__)
R = TypeVar("R", bound=Record)


class _Post(NamedTuple, Generic[R]):
    make: Callable[[], R]
    landed: Callable[[R | None], None]


@dataclass(eq=False)
class _Batch(Generic[R]):
    """Records that share one fsync; `done` holds its error, or None."""

    done: asyncio.Future[BaseException | None]
    since: float
    posts: list[_Post[R]] = field(default_factory=list)
    size: int = 0

    @property
    def is_too_much(self) -> bool:
        return self.size > MOST_BYTES_WAITING or len(self.posts) > MOST_LINES_WAITING


class JournalWriter(Generic[R]):
    """Appends records to one file; after a write that failed it takes no more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._size = 0
        self._waiting: _Batch[R] | None = None
        self._writing: _Batch[R] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._earliest = 0.0
        self._failure: BaseException | None = None
        # A thread of its own: no other work may keep a finished answer from the disk.
        self._thread = ThreadPoolExecutor(1, "journal")

    async def append(self, record: R) -> None:
        """Return when the record is on disk."""
        await _ended(self._put(_Post(lambda: record, lambda _: None)))

    async def post(
        self, make: Callable[[], R], landed: Callable[[R | None], None], *, size: int = 0
    ) -> None:
        """Return at once unless too much is waiting; `landed` gets the record that is on disk.

        It is made shortly before it is written, together with others, which takes half the time.
        A record that cannot be made is logged, and `landed` gets None.
        """
        batch = self._put(_Post(make, landed), size)
        if batch.is_too_much and self._writing is not None and self._writing is not batch:
            await _ended(self._writing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        cancelled = await self._drain()
        self._thread.shutdown(wait=False)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        failure = self._failure
        self._failure = failure or JournalError(f"{self.path}: It is written to its end already.")
        if cancelled is not None:
            raise cancelled
        if failure is not None and error is None:
            raise failure

    def _put(self, post: _Post[R], size: int = 0) -> _Batch[R]:
        if self._failure is not None:
            raise self._failure
        if (batch := self._waiting) is None:
            loop = asyncio.get_running_loop()
            self._waiting = batch = _Batch[R](loop.create_future(), loop.time())
            if self._writing is None:
                self._schedule(batch)
        batch.posts.append(post)
        batch.size += size
        if batch.is_too_much and self._writing is None:
            self._begin()
        return batch

    def _schedule(self, batch: _Batch[R]) -> None:
        begin = min(self._earliest, batch.since + FARTHEST_BEHIND_S)
        self._timer = asyncio.get_running_loop().call_at(begin, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        batch, self._waiting, self._timer = self._waiting, None, None
        if batch is not None:
            self._writing = batch
            records = [_made(post.make) for post in batch.posts]
            lines = [as_line(record) for record in records if record is not None]
            written = batch.done.get_loop().run_in_executor(self._thread, self._write, lines)
            written.add_done_callback(partial(self._end, batch, records))

    def _end(
        self, batch: _Batch[R], records: Sequence[R | None], written: asyncio.Future[None]
    ) -> None:
        self._writing = None
        self._earliest = batch.done.get_loop().time() + PAUSE_S
        self._failure = written.exception()
        if self._failure is None:
            for post, record in zip(batch.posts, records, strict=True):
                try:
                    post.landed(record)
                except Exception as error:  # noqa: BLE001  (the next call or the exit raises it)
                    self._failure = self._failure or error
        batch.done.set_result(self._failure)
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting is None:
            return
        if self._failure is not None:
            self._waiting.done.set_result(self._failure)
            self._waiting = None
        elif self._waiting.is_too_much:
            self._begin()
        else:
            self._schedule(self._waiting)

    async def _drain(self) -> asyncio.CancelledError | None:
        """Wait until everything is on disk, even if this task is cancelled meanwhile."""
        cancelled = None
        while batch := self._writing or self._waiting:
            if self._writing is None:
                self._begin()
            try:
                await asyncio.shield(batch.done)
            except asyncio.CancelledError as error:
                cancelled = error
        return cancelled

    def _write(self, lines: list[bytes]) -> None:
        with translate_os_errors(self.path):
            if self._descriptor is None:
                self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
                sync(self.path.parent)
            data = b"".join(lines)
            try:
                write_all(self._descriptor, data)
                os.fsync(self._descriptor)
            except OSError:
                # Half a record at the end would be taken for one that a crash tore.
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._size)
                raise
            self._size += len(data)


def _made(make: Callable[[], R]) -> R | None:
    try:
        return make()
    except Exception:
        log.exception("A record could not be made.")
        return None


async def _ended(batch: _Batch[R]) -> None:
    """Wait until the batch is on disk, or raise its error."""
    failure = await asyncio.shield(batch.done)
    if failure is not None:
        raise failure

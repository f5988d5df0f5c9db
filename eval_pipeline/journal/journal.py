"""The journal: append-only records in files, from which the warehouse is built."""

import os
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote, unquote

from filelock import FileLock

from eval_pipeline.journal.compaction import (
    compact,
    compact_in_subprocess,
    is_large,
    remove_superseded,
)
from eval_pipeline.journal.files import (
    JSONL,
    FileCompactedError,
    JournalError,
    ReadOnlyError,
    as_line,
    files_below,
    move,
    read_file,
    remove,
    source,
    sync,
    translate_os_errors,
)
from eval_pipeline.journal.locks import SOON_S, acquire, acquire_soon, signed
from eval_pipeline.journal.writer import JournalWriter
from eval_pipeline.records.base import Record, now
from eval_pipeline.records.diagnosis import Diagnosis, Reclassification
from eval_pipeline.records.item import BenchmarkVersion
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Judgement, Label, Prediction, Repeat
from eval_pipeline.records.run import Attempt, Run

FORMAT = 7
"""Raised when an older version of this code could not read what is written."""

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Stream(Generic[R]):
    """One kind of record, kept in one folder of the journal."""

    name: str
    record: type[R]


# Items of either kind: `items.Items` reads them.
ITEMS = Stream("items", Record)
VERSIONS = Stream("versions", BenchmarkVersion)
SIGHTINGS = Stream("sightings", Sighting)
ATTEMPTS = Stream("attempts", Attempt)
RUNS = Stream("runs", Run)
PREDICTIONS = Stream("predictions", Prediction)
JUDGED = Stream("judged", Judgement)
REJUDGED = Stream("rejudged", Repeat)
LABELS = Stream("labels", Label)
DIAGNOSES = Stream("diagnoses", Diagnosis)
RECLASSIFIED = Stream("reclassified", Reclassification)
# In the order in which the warehouse loads them: verdicts refer to predictions.
STREAMS: tuple[Stream[Any], ...] = (
    VERSIONS,
    ITEMS,
    SIGHTINGS,
    ATTEMPTS,
    RUNS,
    PREDICTIONS,
    JUDGED,
    REJUDGED,
    LABELS,
    DIAGNOSES,
    RECLASSIFIED,
)
_OF_A_RUN = (PREDICTIONS, JUDGED, REJUDGED, DIAGNOSES, RECLASSIFIED)


@dataclass(frozen=True)
class Journal:
    """The folder of all journal files, `<stream>/<part>/…/<file>`, each written by one process."""

    root: Path
    read_only: bool = field(default=False, kw_only=True)

    def files(self, stream: Stream[Any], *parts: str) -> list[Path]:
        """Return the stream's files, oldest name first; `parts` narrow it to a model or a run."""
        return files_below(self._folder(stream, *parts))

    def read(self, stream: Stream[R], *parts: str, since: datetime | None = None) -> Iterator[R]:
        """Yield every whole record; with `since`, skip files that have not changed since then."""
        for path in self.files(stream, *parts):
            if since is None or _changed_at(path) >= since.timestamp():
                yield from read_file(path, stream.record)

    def read_newest(self, stream: Stream[R], *parts: str) -> Iterator[R]:
        """Yield every whole record, beginning with the file that was written last."""
        for path in sorted(self.files(stream, *parts), key=_changed_at, reverse=True):
            yield from read_file(path, stream.record)

    def parts(self, stream: Stream[R]) -> list[str]:
        """Return all first parts: for runs, predictions and verdicts, the models."""
        folder = self._folder(stream)
        return sorted(unquote(path.name) for path in folder.iterdir()) if folder.is_dir() else []

    def read_file(self, stream: Stream[R], *parts: str) -> Iterator[R]:
        """Yield the records of one file that was written as a whole; the last part is its name."""
        return read_file(self._file(stream, *parts), stream.record)

    def exists(self, stream: Stream[R], *parts: str) -> bool:
        """Return whether that file exists."""
        return self._file(stream, *parts).is_file()

    def write_whole(self, stream: Stream[R], *parts: str, records: Iterable[R]) -> None:
        """Write one file that exists either with all records or not at all."""
        target = self._file(stream, *parts)
        folder = target.parent
        temporary = folder / f".{target.name}.{_process_name()}"
        with translate_os_errors(folder):
            self._make(folder)
            try:
                with temporary.open("wb") as file:
                    file.writelines(map(as_line, records))
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(target)
                sync(folder)
            finally:
                temporary.unlink(missing_ok=True)

    def writer(self, stream: Stream[R], *parts: str) -> JournalWriter[R]:
        """Return a writer with a file of its own, which no other process ever touches."""
        folder = self._folder(stream, *parts)
        with translate_os_errors(folder):
            self._make(folder)
        remove_superseded(folder)
        return JournalWriter(folder / f"{_process_name()}{JSONL}")

    def compact(self, stream: Stream[Any], model: str, run_id: str) -> None:
        """Compact the run's files to one; only while this process has claimed the model."""
        folder = self._folder(stream, model, run_id)
        if not folder.is_dir():
            return
        with translate_os_errors(folder):
            self._make(folder)
        name = _process_name()
        if is_large(folder):
            compact_in_subprocess(folder, name, stream.name)
        else:
            compact(folder, name, stream.record)

    @asynccontextmanager
    async def claim(self, stream: Stream[R], model: str) -> AsyncIterator[None]:
        """Hold the model's lock for this stage, so that no two processes pay for the same work."""
        with self._lock(stream, model) as (lock, what):
            await acquire(lock, what)
        with signed(lock):
            yield

    @contextmanager
    def claim_soon(self, stream: Stream[R], model: str, within_s: float = SOON_S) -> Iterator[None]:
        """Do the same, but raise a BusyError instead of waiting for longer."""
        with self._lock(stream, model) as (lock, what):
            acquire_soon(lock, what, within_s)
        with signed(lock):
            yield

    @contextmanager
    def _lock(self, stream: Stream[R], model: str) -> Iterator[tuple[FileLock, str]]:
        """Yield the lock of a model's stage, and what it is called in messages."""
        path = self.root / "locks" / f"{stream.name}-{file_name(model)}.lock"
        with translate_os_errors(path.parent):
            self._make(path.parent)
            yield FileLock(path, thread_local=False), f"{stream.name} of {model}"

    def trash_run(self, model: str, run_id: str) -> None:
        """Take a run out of all streams; only while this process has claimed the model.

        Its record goes first: a run without answers would be asked, and paid for, once more.
        """
        files = (self._file(stream, model, run_id) for stream in (RUNS, ATTEMPTS))
        folders = (self._folder(one, model, run_id) for one in _OF_A_RUN)
        target = self._trash / file_name(model) / file_name(run_id)
        with translate_os_errors(target):
            self._make(target)
            for path in (*files, *folders):
                with suppress(FileNotFoundError):
                    # A random suffix: an earlier file of the same name stays as it is.
                    move(path, target / f"{path.parent.parent.name}-{secrets.token_hex(6)}")

    def trashed_runs(self) -> list[tuple[str, str]]:
        """Return model and id of every run in the trash, also after a crash while deleting."""
        targets = [one for one in sorted(self._trash.glob("[!.]*/*")) if any(one.iterdir())]
        return [(unquote(one.parent.name), unquote(one.name)) for one in targets]

    def empty_trash(self) -> None:
        """Delete the trash for good; a half deleted folder no longer has its name."""
        self.refuse_if_read_only()
        with translate_os_errors(self._trash):
            for target in self._trash.glob("[!.]*/*"):
                target.replace(self._trash / f".gone-{secrets.token_hex(6)}")
            for gone in self._trash.glob(".gone-*"):
                remove(gone)

    def snapshot(self, *streams: Stream[Any]) -> list[str]:
        """Return every file of the streams with its size; equal lists hold equal records."""
        # Files of items are rewritten: known faults of tasks may change within a version.
        return [
            f"{path.relative_to(self.root)} {source(path).size}"
            + (f" {_changed_at(path)}" if stream is ITEMS else "")
            for stream in streams or STREAMS
            for path in self.files(stream)
        ]

    @property
    def _trash(self) -> Path:
        return self.root / "aside"

    def _folder(self, stream: Stream[Any], *parts: str) -> Path:
        self._check_format()
        return self.root.joinpath(stream.name, *map(file_name, parts))

    def _file(self, stream: Stream[Any], *parts: str) -> Path:
        return self._folder(stream, *parts[:-1]) / f"{file_name(parts[-1])}{JSONL}"

    def refuse_if_read_only(self) -> None:
        """Raise if writing is not allowed, for callers that check before they begin."""
        if self.read_only:
            raise ReadOnlyError

    def _make(self, folder: Path) -> None:
        """Make a folder durably; everything written, a lock included, is written after this."""
        self.refuse_if_read_only()
        self._check_format()
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            for parent in folder.parents:
                sync(parent)
                if parent == self.root.parent:
                    break
        if self._check_format() != FORMAT:
            marker = self.root / f".format.{_process_name()}"
            marker.write_text(f"{FORMAT}\n")
            marker.replace(self.root / "format")

    def _check_format(self) -> int | None:
        """Return the journal's format, None while it is new; refuse a newer one."""
        text = ""
        with suppress(FileNotFoundError, NotADirectoryError):
            text = (self.root / "format").read_text().strip()
        if text and (not text.isdigit() or int(text) > FORMAT):
            raise JournalError(
                f"{self.root} has journal format {text[:20]!r}, this version reads up to "
                f"{FORMAT}: update eval_pipeline. Nothing was changed."
            )
        return int(text) if text else None


def _changed_at(path: Path) -> float:
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    raise FileCompactedError(path)


def file_name(part: str) -> str:
    """Return a file name for any text; a model id has slashes and colons."""
    return quote(part, safe=":@+") if part.strip(".") else part.replace(".", "%2E")


def _process_name() -> str:
    return f"{now():%Y%m%dT%H%M%S.%f}-{os.getpid()}-{secrets.token_hex(3)}"

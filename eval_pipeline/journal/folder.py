"""Append-only JSON lines of finished work: the truth, from which the warehouse is built."""

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

from eval_pipeline.analysis.records import Diagnosis, Reclassification
from eval_pipeline.journal.compaction import compact, is_large, remove_superseded
from eval_pipeline.journal.discarding import aside, forget, set_aside
from eval_pipeline.journal.disk import (
    GoneError,
    JournalError,
    ReadOnlyError,
    explained,
    sync,
)
from eval_pipeline.journal.lines import JSONL, as_line, files_below, read_file, source
from eval_pipeline.journal.locking import SOON_S, acquire, acquire_soon, sign
from eval_pipeline.journal.writer import JournalWriter
from eval_pipeline.processes import EXPLAINED, GONE, last_words, run_module
from eval_pipeline.record import Record
from eval_pipeline.records import (
    Attempt,
    BenchmarkVersion,
    Judgement,
    Label,
    Prediction,
    Repeat,
    Run,
    Sighting,
    now,
)

FORMAT = 7
"""Raised when an older version of this code could not read what is written."""

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Stream(Generic[R]):
    """One kind of record, kept in one folder of the journal."""

    name: str
    record: type[R]


# Of either kind: what reads them is `items.Items`.
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
# In the order in which the warehouse loads them: verdicts stand on predictions.
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
        """The stream's files, oldest name first; `parts` narrow it to a model or a run."""
        return files_below(self._folder(stream, *parts))

    def read(self, stream: Stream[R], *parts: str, since: datetime | None = None) -> Iterator[R]:
        """Every whole record; with `since`, without files that have not changed since then."""
        for path in self.files(stream, *parts):
            if since is None or _changed_at(path) >= since.timestamp():
                yield from read_file(path, stream.record)

    def read_newest(self, stream: Stream[R], *parts: str) -> Iterator[R]:
        """Every whole record, beginning with the file that was written last."""
        for path in sorted(self.files(stream, *parts), key=_changed_at, reverse=True):
            yield from read_file(path, stream.record)

    def parts(self, stream: Stream[R]) -> list[str]:
        """The first parts there are: for runs, predictions and verdicts, the models."""
        folder = self._folder(stream)
        return sorted(unquote(path.name) for path in folder.iterdir()) if folder.is_dir() else []

    def read_file(self, stream: Stream[R], *parts: str) -> Iterator[R]:
        """The records of one file that was written as a whole; the last part is its name."""
        return read_file(self._file(stream, *parts), stream.record)

    def exists(self, stream: Stream[R], *parts: str) -> bool:
        """Whether that file is there."""
        return self._file(stream, *parts).is_file()

    def write_whole(self, stream: Stream[R], *parts: str, records: Iterable[R]) -> None:
        """Writes one file that is either there with all records or not there at all."""
        target = self._file(stream, *parts)
        folder = target.parent
        temporary = folder / f".{target.name}.{_process_name()}"
        with explained(folder):
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
        """An appender with a file of its own, which no other process ever touches."""
        folder = self._folder(stream, *parts)
        with explained(folder):
            self._make(folder)
        remove_superseded(folder)
        return JournalWriter(folder / f"{_process_name()}{JSONL}")

    def compact(self, stream: Stream[Any], model: str, run_id: str) -> None:
        """Makes one file of the run's many; only while this process has claimed the model."""
        folder = self._folder(stream, model, run_id)
        if not folder.is_dir():
            return
        with explained(folder):
            self._make(folder)
        name = _process_name()
        if is_large(folder):
            _compact_apart(folder, name, stream)
        else:
            compact(folder, name, stream.record)

    @asynccontextmanager
    async def claim(self, stream: Stream[R], model: str) -> AsyncIterator[None]:
        """Holds the model's lock for this stage, so that no two processes pay for the same work."""
        with self._locks():
            lock = self.lock(stream, model)
            await acquire(lock, f"{stream.name} of {model}")
        try:
            sign(lock)
            yield
        finally:
            lock.release()

    @contextmanager
    def claim_soon(self, stream: Stream[R], model: str, within_s: float = SOON_S) -> Iterator[None]:
        """The same for whoever would rather give up than wait: says who is at work."""
        with self._locks():
            lock = self.lock(stream, model)
            acquire_soon(lock, f"{stream.name} of {model}", within_s)
        try:
            sign(lock)
            yield
        finally:
            lock.release()

    def set_run_aside(self, model: str, run_id: str) -> None:
        """Takes a run out of all streams; only while this process has claimed the model.

        Its record goes first: a run without answers would be asked, and paid for, once more.
        """
        files = (self._file(stream, model, run_id) for stream in (RUNS, ATTEMPTS))
        folders = (self._folder(one, model, run_id) for one in _OF_A_RUN)
        target = self._aside / file_name(model) / file_name(run_id)
        with explained(target):
            self._make(target)
            set_aside(target, [*files, *folders])

    def runs_aside(self) -> list[tuple[str, str]]:
        """Model and id of every run that is on its way out, also if who began that was killed."""
        return [(unquote(model), unquote(run_id)) for model, run_id in aside(self._aside)]

    def forget_runs_aside(self) -> None:
        """Deletes for good what has been set aside."""
        self.refuse_if_read_only()
        with explained(self._aside):
            forget(self._aside)

    def snapshot(self, *streams: Stream[Any]) -> list[str]:
        """Every file with its size, of these streams or of all: equal ones hold equal records."""
        return [
            f"{path.relative_to(self.root)} {source(path).size}{self._renewed(stream, path)}"
            for stream in streams or STREAMS
            for path in self.files(stream)
        ]

    @staticmethod
    def _renewed(stream: Stream[Any], path: Path) -> str:
        """When items were written: the known faults of tasks may change within a version."""
        return f" {_changed_at(path)}" if stream is ITEMS else ""

    @property
    def _aside(self) -> Path:
        return self.root / "aside"

    @contextmanager
    def _locks(self) -> Iterator[None]:
        folder = self.root / "locks"
        with explained(folder):
            self._make(folder)
            yield

    def lock(self, stream: Stream[Any], model: str) -> FileLock:
        """The lock that says who on this machine is at work on a model's stage."""
        path = self.root / "locks" / f"{stream.name}-{file_name(model)}.lock"
        return FileLock(path, thread_local=False)

    def _folder(self, stream: Stream[Any], *parts: str) -> Path:
        self._check_format()
        return self.root.joinpath(stream.name, *map(file_name, parts))

    def _file(self, stream: Stream[Any], *parts: str) -> Path:
        return self._folder(stream, *parts[:-1]) / f"{file_name(parts[-1])}{JSONL}"

    def written_format(self) -> str:
        """What its folder says of its format, even if nobody here can read it; empty while new."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return (self.root / "format").read_text().strip()
        return ""

    def refuse_if_read_only(self) -> None:
        """For whoever is going to write: better before anything is done than half way."""
        if self.read_only:
            raise ReadOnlyError

    def _make(self, folder: Path) -> None:
        """Whatever is written, a lock included, is written after this."""
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
        """Which format the journal has; None while it is new."""
        text = self.written_format()
        if text and (not text.isdigit() or int(text) > FORMAT):
            raise JournalError(
                f"{self.root} has journal format {text[:20]!r}, this version reads up to "
                f"{FORMAT}: update eval_pipeline. Nothing was changed."
            )
        return int(text) if text else None


def _changed_at(path: Path) -> float:
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    raise GoneError(path)


def _compact_apart(folder: Path, name: str, stream: Stream[Any]) -> None:
    words = (str(folder.absolute()), name, stream.name)
    done = run_module("eval_pipeline.journal.apart", *words)
    match done.returncode:
        case 0:
            return
        case code if code == GONE:
            raise GoneError(folder)
        case code if code == EXPLAINED:
            raise JournalError(done.stderr.strip())
        case _:
            raise JournalError(f"{folder} could not be compacted ({last_words(done)}).")


def file_name(part: str) -> str:
    """A file name for any text; a model id has slashes and colons."""
    return quote(part, safe=":@+") if part.strip(".") else part.replace(".", "%2E")


def _process_name() -> str:
    return f"{now():%Y%m%dT%H%M%S.%f}-{os.getpid()}-{secrets.token_hex(3)}"

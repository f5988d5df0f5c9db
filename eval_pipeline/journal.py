"""Append-only JSON lines of finished work: the truth, from which the warehouse is built."""

import asyncio
import errno
import logging
import os
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from platform import node
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from urllib.parse import quote, unquote

from filelock import FileLock, Timeout
from pydantic import ValidationError

from eval_pipeline.records import (
    BenchmarkVersion,
    ExamQuestion,
    Judgement,
    Prediction,
    Record,
    Run,
    Sighting,
    now,
)

FORMAT = 1
"""Raised when an older version of this code could not read what is written."""

log = logging.getLogger(__name__)
R = TypeVar("R", bound=Record)


class JournalError(Exception):
    """Finished work can not be kept or read; the message says what to do."""


@dataclass(frozen=True)
class Stream(Generic[R]):
    """One kind of record, kept in one folder of the journal."""

    name: str
    record: type[R]


ITEMS = Stream("items", ExamQuestion)
VERSIONS = Stream("versions", BenchmarkVersion)
SIGHTINGS = Stream("sightings", Sighting)
RUNS = Stream("runs", Run)
PREDICTIONS = Stream("predictions", Prediction)
JUDGED = Stream("judged", Judgement)
# In the order in which the warehouse loads them: verdicts stand on predictions.
STREAMS: tuple[Stream[Any], ...] = (VERSIONS, ITEMS, SIGHTINGS, RUNS, PREDICTIONS, JUDGED)


@dataclass(frozen=True)
class Journal:
    """The folder of all journal files, `<stream>/<part>/…/<file>.jsonl`, each of one process."""

    root: Path

    def files(self, stream: Stream[Any], *parts: str) -> list[Path]:
        """The stream's files, oldest name first; `parts` narrow it to a model or a run."""
        return sorted(self._folder(stream, *parts).rglob("*.jsonl"))

    def read(self, stream: Stream[R], *parts: str) -> Iterator[R]:
        """Every whole record; a last line cut off by a crash is dropped."""
        for path in self.files(stream, *parts):
            yield from _read_file(path, stream.record)

    def parts(self, stream: Stream[R]) -> list[str]:
        """The first parts there are: for runs, predictions and verdicts, the models."""
        folder = self._folder(stream)
        return sorted(unquote(path.name) for path in folder.iterdir()) if folder.is_dir() else []

    def read_file(self, stream: Stream[R], *parts: str) -> Iterator[R]:
        """The records of one file that was written as a whole; the last part is its name."""
        return _read_file(self._file(stream, *parts), stream.record)

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
                    file.writelines(map(_line, records))
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(target)
                _sync_folder(folder)
            finally:
                temporary.unlink(missing_ok=True)

    def writer(self, stream: Stream[R], *parts: str) -> "JournalWriter[R]":
        """An appender with a file of its own, which no other process ever touches."""
        folder = self._folder(stream, *parts)
        with explained(folder):
            self._make(folder)
        return JournalWriter(folder / f"{_process_name()}.jsonl")

    @asynccontextmanager
    async def claim(self, stream: Stream[R], model: str) -> AsyncIterator[None]:
        """Holds the model's lock for this stage, so that no two processes pay for the same work."""
        path = self.root / "locks" / f"{stream.name}-{_safe(model)}.lock"
        with explained(path.parent):
            self._make(path.parent)
            lock = FileLock(path, thread_local=False)
            await _acquire(lock, f"{stream.name} of {model}")
        try:
            with suppress(OSError):  # it is only for telling others who is at work
                owner = f"process {os.getpid()} on {node()} since {now():%H:%M:%S} UTC"
                path.with_suffix(".owner").write_text(owner)
            yield
        finally:
            lock.release()

    def snapshot(self) -> list[str]:
        """Every file with its size: equal snapshots hold equal records."""
        return [
            f"{path.relative_to(self.root)} {path.stat().st_size}"
            for stream in STREAMS
            for path in self.files(stream)
        ]

    def _folder(self, stream: Stream[Any], *parts: str) -> Path:
        self._check_format()
        return self.root.joinpath(stream.name, *map(_safe, parts))

    def _file(self, stream: Stream[R], *parts: str) -> Path:
        return self._folder(stream, *parts[:-1]) / f"{_safe(parts[-1])}.jsonl"

    def _make(self, folder: Path) -> None:
        self._check_format()
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            for parent in folder.parents:
                _sync_folder(parent)
                if parent == self.root.parent:
                    break
        marker = self.root / "format"
        if not marker.exists():
            marker.write_text(f"{FORMAT}\n")

    def _check_format(self) -> None:
        with suppress(FileNotFoundError, NotADirectoryError):
            text = (self.root / "format").read_text().strip()
            if text and (not text.isdigit() or int(text) > FORMAT):
                raise JournalError(
                    f"{self.root} has journal format {text[:20]!r}, this version reads up to "
                    f"{FORMAT}: update eval_pipeline. Nothing was changed."
                )


class JournalWriter(Generic[R]):
    """Appends records to one file; many callers share one fsync."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._size = 0
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._flushing: asyncio.Task[None] | None = None

    async def append(self, record: R) -> None:
        """Returns when the record is on disk."""
        written = asyncio.get_running_loop().create_future()
        self._waiting.append((_line(record), written))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        await written

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._flushing is not None:
            await asyncio.shield(self._flushing)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    async def _flush(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._write, b"".join(line for line, _ in batch))
            except Exception as error:  # noqa: BLE001  (it is raised where it is waited for)
                _settle(batch, error)
            else:
                _settle(batch, None)
        self._flushing = None

    def _write(self, data: bytes) -> None:
        with explained(self.path):
            if self._descriptor is None:
                self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
                _sync_folder(self.path.parent)
            try:
                _write_all(self._descriptor, data)
                os.fsync(self._descriptor)
            except OSError:
                # Half a record must not swallow the next one that does fit.
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._size)
                raise
            self._size += len(data)


def _settle(batch: list[tuple[bytes, asyncio.Future[None]]], error: Exception | None) -> None:
    for _, written in batch:
        if written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)


async def _acquire(lock: FileLock, what: str) -> None:
    announced = False
    while True:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if not announced:
                log.info("Waiting for the %s: %s is at work on it.", what, _owner(lock))
                announced = True
            await asyncio.sleep(0.2)
        else:
            return


def _owner(lock: FileLock) -> str:
    try:
        return Path(lock.lock_file).with_suffix(".owner").read_text()
    except OSError:
        return "another process"


def _read_file(path: Path, record: type[R]) -> Iterator[R]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield record.model_validate_json(line)
            except ValidationError as error:
                problem = error.errors()[0]
                if problem["type"] != "json_invalid":
                    raise JournalError(
                        f"{path}, line {number} is no {record.__name__}: {problem['msg']}. "
                        "Was it written by another version of eval_pipeline? Nothing was changed."
                    ) from None
                log.warning(
                    "%s, line %d was cut off when it was written; it is left out.", path, number
                )


def _line(record: Record) -> bytes:
    return record.model_dump_json().encode() + b"\n"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _safe(part: str) -> str:
    """A file name for any text; a model id has slashes and colons."""
    return quote(part, safe=":@+") if part.strip(".") else part.replace(".", "%2E")


def _process_name() -> str:
    return f"{now():%Y%m%dT%H%M%S.%f}-{os.getpid()}-{secrets.token_hex(3)}"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Says what to do when the disk is full or the folder can not be written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "The disk is full. Make room and materialize again; what is journalled is kept"
        else:
            advice = f"It can not be written ({error.strerror}). Mend that and materialize again"
        raise JournalError(f"{path}: {advice}.") from error

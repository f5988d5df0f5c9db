"""Journal files on disk: JSON lines that grow, Parquet that replaces them, fsync and errors."""

import errno
import json
import logging
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import NamedTuple, TypeVar

import duckdb
from pydantic import ValidationError
from pydantic_core import to_json

from eval_pipeline.connections import cursor
from eval_pipeline.errors import MendableError
from eval_pipeline.records.base import Record

JSONL, PARQUET = ".jsonl", ".parquet"
# The key in a Parquet file's metadata that lists the files it replaces, with their sizes.
REPLACES = "replaces"
TRIES = 3
# The names of files that a process appends to; others are written as a whole.
_APPEND_ONLY = re.compile(r"\d{8}T\d{6}\.\d{6}-\d+-[0-9a-f]{6}\.jsonl")

log = logging.getLogger(__name__)
R = TypeVar("R", bound=Record)


class JournalError(MendableError):
    """Finished work cannot be kept or read; the message says what to do."""

    wrong_use = False


class BusyError(JournalError):
    """Another process holds the lock for longer than the caller wants to wait."""


class ReadOnlyError(JournalError):
    """This process may not write to the journal."""

    wrong_use = True

    def __init__(self) -> None:
        super().__init__(
            "Nothing was changed: these are the results of a deployment that is marked as "
            "production. To write to it, use `evals --production` with a token for it in "
            "EVALS_TOKEN: docs/deployments.md"
        )


class FileCompactedError(JournalError):
    """A file was compacted while it was read; listing the files again is enough."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} was compacted while it was read. Nothing is lost: try again.")


@contextmanager
def translate_os_errors(path: Path) -> Iterator[None]:
    """Raise a JournalError with advice when the disk is full or the path cannot be written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "The disk is full. Make room and materialize again; what is journalled is kept"
        else:
            advice = f"It cannot be written ({error.strerror}). Fix that and materialize again"
        raise JournalError(f"{path}: {advice}.") from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes, in as many steps as the disk takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync(path: Path) -> None:
    """Return when a file's content, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def swap_in(path: Path, content: bytes, *, secret: bool = False) -> None:
    """Replace a file as a whole: readers see the old one or the new one.

    A secret file can be read by its owner only, and is on disk when this returns.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        unfinished.touch(0o600 if secret else 0o666, exist_ok=False)
        unfinished.write_bytes(content)
        if secret:
            sync(unfinished)
        unfinished.replace(path)
        if secret:
            sync(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def move(path: Path, target: Path) -> None:
    """Move a file or folder, and return when both names are on disk."""
    path.replace(target)
    sync(target.parent)
    sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all its content."""
    if path.is_dir():
        rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


class Source(NamedTuple):
    """A file's name and size when its lines went into a Parquet file."""

    name: str
    size: int


def source(path: Path) -> Source:
    """Return the file's name and current size."""
    try:
        return Source(path.name, path.stat().st_size)
    except FileNotFoundError:
        raise FileCompactedError(path) from None


def files_below(folder: Path) -> list[Path]:
    """Return all current files, sorted; files that a Parquet file beside them replaces are not."""
    for _ in range(TRIES):
        with suppress(FileCompactedError):
            return _files_below(folder)
    return _files_below(folder)


def _files_below(folder: Path) -> list[Path]:
    found: list[Path] = []
    # os.walk passes over folders that vanish meanwhile, such as those of a compaction.
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        visible = (Path(place, name) for name in names if not name.startswith("."))
        found += _current_files([path for path in visible if path.suffix in (JSONL, PARQUET)])
    return sorted(found)


def _current_files(beside: list[Path]) -> list[Path]:
    """Return those files of one folder that no Parquet file there replaces."""
    compacted = [path for path in beside if path.suffix == PARQUET]
    if not compacted or len(beside) == 1:
        return beside
    replaced = {one for path in compacted for one in replaced_by(path)}
    return [path for path in beside if not is_replaced(source(path), replaced)]


def is_replaced(one: Source, replaced: Collection[Source]) -> bool:
    """Return whether the file's lines are in one of these; an append-only file may be a prefix."""
    if one in replaced:
        return True
    return _APPEND_ONLY.fullmatch(one.name) is not None and any(
        other.name == one.name and one.size <= other.size for other in replaced
    )


def replaced_by(path: Path) -> list[Source]:
    """Return the files this Parquet file replaces (same folder only)."""
    with low_memory_duckdb(path) as db:
        metadata = f"select value from parquet_kv_metadata({quoted(path)})"
        found = db.sql(f"{metadata} where key = {quoted(REPLACES)}::blob").fetchall()
    listed = (one for (value,) in found for one in json.loads(value))
    return [Source(name, size) for name, size in listed if Path(name).name == name]


def read_file(path: Path, record: type[R]) -> Iterator[R]:
    """Yield every whole record; a last line cut off by a crash is dropped."""
    lines = _compacted_lines(path) if path.suffix == PARQUET else _appended_lines(path)
    for number, line in enumerate(lines, start=1):
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


def as_line(record: Record) -> bytes:
    """Return the record as a line of a journal file."""
    return to_json(record) + b"\n"


@contextmanager
def low_memory_duckdb(path: Path, **settings: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB for one file, in little memory; raise if the file is gone or damaged."""
    try:
        # With one thread the lines keep their order all the same.
        frugal = {"threads": "1", "preserve_insertion_order": "false"}
        with duckdb.connect(config={**frugal, **settings}) if settings else cursor(**frugal) as db:
            yield db
    except duckdb.Error as error:
        if not path.exists():
            raise FileCompactedError(path) from None
        raise JournalError(f"{path}: DuckDB gives up ({error}). Nothing was changed.") from None


def longest_line(path: Path) -> int:
    """Return the length in bytes of the longest line of a JSON lines file."""
    return max(map(len, _appended_lines(path)), default=0)


def quoted(value: object) -> str:
    """Return the value as an SQL string; for a single parameter DuckDB would load pandas."""
    return "'" + str(value).replace("'", "''") + "'"


def _appended_lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except FileNotFoundError:
        raise FileCompactedError(path) from None


def _compacted_lines(path: Path) -> Iterator[bytes]:
    """Yield one row group after the other; DuckDB would hold a whole result in memory."""
    metadata = f"parquet_metadata({quoted(path)}) order by row_group_id"
    table = f"read_parquet({quoted(path)}, file_row_number = true, hive_partitioning = false)"
    start = 0
    with low_memory_duckdb(path) as db:
        for (rows,) in db.sql(f"select row_group_num_rows from {metadata}").fetchall():
            group = f"file_row_number >= {start} and file_row_number < {start + rows}"
            for (line,) in db.sql(f"select line from {table} where {group}").fetchall():
                yield line.encode()
            start += rows

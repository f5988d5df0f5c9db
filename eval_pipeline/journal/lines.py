"""The two kinds of journal files: JSON lines as they come in, and Parquet that holds many."""

import json
import logging
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import duckdb
from pydantic import ValidationError
from pydantic_core import to_json

from eval_pipeline.connections import cursor
from eval_pipeline.journal.disk import GoneError, JournalError
from eval_pipeline.record import Record

JSONL, PARQUET = ".jsonl", ".parquet"
REPLACES = "replaces"
"""In a Parquet file's metadata: the files whose lines it holds, with their sizes."""
TRIES = 3
_GROWING = re.compile(r"\d{8}T\d{6}\.\d{6}-\d+-[0-9a-f]{6}\.jsonl")

log = logging.getLogger(__name__)
R = TypeVar("R", bound=Record)


class Source(NamedTuple):
    """A file as it was when its lines went into a Parquet file."""

    name: str
    size: int


def source(path: Path) -> Source:
    """The file as it is now."""
    try:
        return Source(path.name, path.stat().st_size)
    except FileNotFoundError:
        raise GoneError(path) from None


def files_below(folder: Path) -> list[Path]:
    """All files that count, sorted: what stands in a Parquet file beside it does not."""
    for _ in range(TRIES):
        with suppress(GoneError):
            return _files_below(folder)
    return _files_below(folder)


def _files_below(folder: Path) -> list[Path]:
    found: list[Path] = []
    # It passes over folders that go meanwhile, as those do in which something is compacted.
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        visible = (Path(place, name) for name in names if not name.startswith("."))
        found += in_force([path for path in visible if path.suffix in (JSONL, PARQUET)])
    return sorted(found)


def in_force(beside: list[Path]) -> list[Path]:
    """Those of the files of one folder whose lines do not stand in a Parquet file there."""
    compacted = [path for path in beside if path.suffix == PARQUET]
    if not compacted or len(beside) == 1:
        return beside
    replaced = {one for path in compacted for one in replaced_by(path)}
    return [path for path in beside if not is_replaced(source(path), replaced)]


def is_replaced(one: Source, replaced: Collection[Source]) -> bool:
    """Whether its lines stand in one of these; of a file that grows, as much as there was here."""
    if one in replaced:
        return True
    return grows(one.name) and any(
        other.name == one.name and one.size <= other.size for other in replaced
    )


def grows(name: str) -> bool:
    """Whether a file of this name is appended to by a process; others are written as a whole."""
    return _GROWING.fullmatch(name) is not None


def replaced_by(path: Path) -> list[Source]:
    """Whose lines this Parquet file holds: files beside it, whatever it says."""
    with frugally(path) as db:
        about = f"select value from parquet_kv_metadata({quoted(path)})"
        found = db.sql(f"{about} where key = {quoted(REPLACES)}::blob").fetchall()
    listed = (one for (value,) in found for one in json.loads(value))
    return [Source(name, size) for name, size in listed if Path(name).name == name]


def read_file(path: Path, record: type[R]) -> Iterator[R]:
    """Every whole record; a last line cut off by a crash is dropped."""
    for number, line in enumerate(_lines(path), start=1):
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
    """The record as it stands in a journal file."""
    return to_json(record) + b"\n"


@contextmanager
def frugally(path: Path, **settings: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB for one file, in little memory; says so if the file is gone or spoilt."""
    try:
        # With one thread the lines stay in their order all the same.
        frugal = {"threads": "1", "preserve_insertion_order": "false"}
        with duckdb.connect(config={**frugal, **settings}) if settings else cursor(**frugal) as db:
            yield db
    except duckdb.Error as error:
        if not path.exists():
            raise GoneError(path) from None
        raise JournalError(f"{path}: DuckDB gives up ({error}). Nothing was changed.") from None


def longest_line(path: Path) -> int:
    """Bytes of the longest line of a JSON lines file."""
    return max(map(len, _appended_lines(path)), default=0)


def quoted(value: object) -> str:
    """As a text in SQL; for a single parameter DuckDB would load all of pandas."""
    return "'" + str(value).replace("'", "''") + "'"


def _lines(path: Path) -> Iterator[bytes]:
    return _compacted_lines(path) if path.suffix == PARQUET else _appended_lines(path)


def _appended_lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except FileNotFoundError:
        raise GoneError(path) from None


def _compacted_lines(path: Path) -> Iterator[bytes]:
    """One group of rows after the other; DuckDB would hold the whole of a result in memory."""
    metadata = f"parquet_metadata({quoted(path)}) order by row_group_id"
    table = f"read_parquet({quoted(path)}, file_row_number = true, hive_partitioning = false)"
    start = 0
    with frugally(path) as db:
        for (rows,) in db.sql(f"select row_group_num_rows from {metadata}").fetchall():
            group = f"file_row_number >= {start} and file_row_number < {start + rows}"
            for (line,) in db.sql(f"select line from {table} where {group}").fetchall():
                yield line.encode()
            start += rows

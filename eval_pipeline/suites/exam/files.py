"""A JSONL, CSV or Parquet file -> raw rows, numbered as a person counts them."""

import csv
import glob
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import duckdb

from eval_pipeline.errors import DatasetError

REQUIRED = ("id", "question", "answer", "answer_type", "category")
OPTIONAL = ("image", "rationale", "raw_subject")
COLUMNS = REQUIRED + OPTIONAL

_BOM = b"\xef\xbb\xbf"
_CSV_FIELD_LIMIT = 256 * 1024 * 1024
_PARQUET_SLICE = 50
_ROW_NUMBER = "file_row_number"


class Source(NamedTuple):
    """A file to read, as messages show it; the setting that names it; the column that groups."""

    path: Path
    shown: str
    setting: str
    cluster: str | None = None


class Row(NamedTuple):
    """One raw row; `number` starts at 1 and is the line number in a JSONL file."""

    number: int
    values: Mapping[str, object]


class BadRow(NamedTuple):
    """A row that is there but can not be read, and why; number 0 is the file as a whole."""

    number: int
    reason: str


Rows = Iterator[Row | BadRow]


def read_rows(source: Source) -> Rows:
    """The rows of a file in their order; raises DatasetError if the file as a whole is unusable."""
    reader = _READERS.get(source.path.suffix.lower())
    if reader is None:
        raise DatasetError(
            f"{source.shown}: the file must end in .jsonl, .ndjson, .csv or .parquet, or be the "
            f"folder of a convex-evals checkout's tasks ({source.setting})."
        )
    try:
        yield from reader(source)
    except (FileNotFoundError, NotADirectoryError):
        raise DatasetError(
            f"{source.shown}: there is no such file; correct {source.setting}."
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DatasetError(
            f"{source.shown}: the file can not be read ({reason}); check {source.setting}."
        ) from None


def _read_jsonl(source: Source) -> Rows:
    with source.path.open("rb") as file:
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _json_row(number, line)


def _json_row(number: int, line: bytes) -> Row | BadRow:
    try:
        # Numbers stay the text they were written as: 1.50 is not 1.5 to an exact match.
        values = json.loads(
            line.rstrip(b"\r\n").decode("utf-8"),
            parse_int=str,
            parse_float=str,
            parse_constant=lambda name: None if name == "NaN" else name,
        )
    except UnicodeDecodeError:
        return BadRow(number, f"line {number} is not valid UTF-8")
    except json.JSONDecodeError as error:
        where = f"{error.msg}, column {error.colno}"
        return BadRow(number, f"line {number} is not valid JSON ({where})")
    except RecursionError:
        return BadRow(number, f"line {number} is nested too deeply")
    if not isinstance(values, dict):
        return BadRow(number, f"line {number} is not a JSON object")
    return Row(number, values)


def _read_csv(source: Source) -> Rows:
    # The limit belongs to the whole process, so it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), _CSV_FIELD_LIMIT))
    number = 0
    try:
        with source.path.open(encoding="utf-8-sig", newline="") as file:
            cells = csv.reader(file, strict=True)
            header = next(cells, [])
            _check_columns(source, header)
            for number, row in enumerate(filter(None, cells), start=1):
                if len(row) == len(header):
                    yield Row(number, dict(zip(header, row, strict=True)))
                else:
                    reason = f"it has {len(row)} cells where the header has {len(header)}"
                    yield BadRow(number, reason)
    except UnicodeDecodeError:
        raise DatasetError(
            f"{source.shown}: the file is not valid UTF-8 after row {number}; save it as UTF-8."
        ) from None
    except csv.Error as error:
        raise DatasetError(
            f"{source.shown}: the file can not be parsed as CSV after row {number} ({error})."
        ) from None


def _read_parquet(source: Source) -> Rows:
    # Opened first so that a missing file is told like any other.
    with source.path.open("rb"):
        pass
    options: dict[str, str | bool | int | float | list[str]] = {
        "threads": "1",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    try:
        with duckdb.connect(":memory:", config=options) as connection:
            yield from _parquet_rows(source, connection)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].replace(str(source.path), source.shown)
        raise DatasetError(
            f"{source.shown}: the file can not be parsed as Parquet ({reason})."
        ) from None


def _parquet_rows(source: Source, connection: duckdb.DuckDBPyConnection) -> Rows:
    # As a relation and not as a parameter of a query: for one parameter DuckDB loads pandas.
    pattern = glob.escape(str(source.path))
    everything = connection.read_parquet(pattern, file_row_number=True)
    present = [name for name in everything.columns if name != _ROW_NUMBER]
    _check_columns(source, present)
    columns = [name for name in dict.fromkeys((*COLUMNS, source.cluster)) if name in present]
    # With one thread the rows come in their order; DuckDB holds one of the file's row groups.
    quoted = ['"' + name.replace('"', '""') + '"' for name in (_ROW_NUMBER, *columns)]
    rows = everything.project(", ".join(quoted))
    while some := rows.fetchmany(_PARQUET_SLICE):
        for index, *cells in some:
            yield Row(index + 1, dict(zip(columns, cells, strict=True)))


def _check_columns(source: Source, present: list[str]) -> None:
    missing = [name for name in REQUIRED if name not in present]
    if missing and present:
        raise DatasetError(f"{source.shown}: the file lacks the column(s) {', '.join(missing)}.")
    if source.cluster and source.cluster not in present:
        raise DatasetError(
            f"{source.shown}: the file lacks the column {source.cluster}, which the suite's "
            "`cluster` names."
        )
    for name in (*COLUMNS, *([source.cluster] if source.cluster else [])):
        if present.count(name) > 1:
            raise DatasetError(f"{source.shown}: the column {name} is there more than once.")


_READERS: Mapping[str, Callable[[Source], Rows]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}

"""Rows into files: CSV, JSON and Parquet, written by DuckDB itself, each file whole or not at all.

CSV has lists and structures as JSON. JSON has moments as in ISO 8601, and null for what is no
number. Nothing but names and numbers of rows passes through Python, however much there is.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

import duckdb

from eval_pipeline.errors import MendableError
from eval_pipeline.finding import FoundRun
from eval_pipeline.journal.disk import remove, swap_in, sync
from eval_pipeline.journal.lines import quoted
from eval_pipeline.processes import is_running
from eval_pipeline.queries import SQL, query, query_text
from eval_pipeline.reporting import schema_page

_ISO = "timestampformat '%Y-%m-%dT%H:%M:%S.%f'"
FORMATS: Mapping[str, str] = {
    "csv": "format csv, header true",
    "json": f"format json, array true, {_ISO}",
    "jsonl": f"format json, {_ISO}",
    "parquet": "format parquet, compression zstd",
}
"""What can be written, with what DuckDB is told for it."""
SUFFIXES = {**{f".{name}": name for name in FORMATS}, ".ndjson": "jsonl"}
_NESTED = {"list", "array", "struct", "map", "union"}
_OWN_AFFAIRS = {"published"}
"""About the file itself, not about results."""
_UNFINISHED = ".exporting-"


class ExportError(MendableError):
    """It can not be written there; the message says what to do."""


class Exported(NamedTuple):
    """A file that was written, and how many rows are in it."""

    file: str
    rows: int


def write_rows(db: duckdb.DuckDBPyConnection, sql: str, path: Path, form: str) -> None:
    """Writes the rows of a query to a file that is not there yet."""
    db.execute(f"copy ({_fitting(db, sql, form)}) to {quoted(path)} ({FORMATS[form]})")


def write_result(db: duckdb.DuckDBPyConnection, sql: str, path: Path, form: str) -> None:
    """The same for a file of the user's: it is replaced as a whole, or stays as it was."""
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise ExportError(f"{path} is no file: name one that is, or a new one.")
    if not target.parent.is_dir():
        raise ExportError(f"There is no folder {path.parent}: make it first.")
    unfinished = target.with_name(f".{target.name}.{token_hex(6)}")
    try:
        write_rows(db, sql, unfinished, form)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def export_tables(
    db: duckdb.DuckDBPyConnection,
    folder: Path,
    form: str,
    *,
    runs: Sequence[FoundRun] = (),
    force: bool = False,
) -> list[Exported]:
    """Every table and view as a file, and what their columns mean; with `runs`, theirs only."""
    sources = {name: f"from {name}" for name, _ in _relations(db)}
    if runs:
        sources = dict(_narrowed(db, runs))
    exported = [Exported(f"{name}.{form}", _count(db, sql)) for name, sql in sources.items()]
    with _put_in(folder, force=force) as workshop:
        for (file, _), sql in zip(exported, sources.values(), strict=True):
            write_rows(db, sql, workshop / file, form)
        swap_in(workshop / "schema.md", schema_page().encode())
    return exported


def _fitting(db: duckdb.DuckDBPyConnection, sql: str, form: str) -> str:
    """The query with those columns changed that the format has no form for."""
    rows = f"from (\n{sql}\n)"
    found = db.sql(rows)
    changes = [
        f"{changed} as {name}"
        for name, kind in zip(map(_name, found.columns), found.types, strict=True)
        if (changed := _changed(name, kind.id, form))
    ]
    return f"select * replace ({', '.join(changes)}) {rows}" if changes else rows


def _changed(name: str, kind: str, form: str) -> str | None:
    if form == "csv" and kind in _NESTED:
        return f"to_json({name})"
    if form in ("json", "jsonl") and kind in ("double", "float"):
        return f"if(isfinite({name}), {name}, null)"
    return None


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _count(db: duckdb.DuckDBPyConnection, sql: str) -> int:
    (rows,) = db.sql(f"select count(*) from (\n{sql}\n)").fetchall()[0]
    return int(rows)


def _relations(db: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, set[str]]]:
    """Every table and view that is about results, with its columns."""
    described = query(db, "schema").project('relation, "column"').fetchall()
    for name, rows in groupby(described, key=lambda row: row[0]):
        if name not in _OWN_AFFAIRS:
            yield name, {column for _, column in rows}


def _narrowed(db: duckdb.DuckDBPyConnection, runs: Sequence[FoundRun]) -> Iterable[tuple[str, str]]:
    """How to find the rows of these runs in each table that has any."""
    relations = list(_relations(db))
    keys = {"run_ids": [run.run_id for run in runs], "models": [run.model for run in runs]}
    db.execute(
        "create temp table chosen as from runs where (run_id, model) in "
        "(select (unnest($run_ids), unnest($models)))",
        keys,
    )
    for name, columns in relations:
        if (SQL / "exports" / f"{name}.sql").exists():
            yield name, query_text(f"exports/{name}")
        elif columns >= {"run_ids", "model"}:
            same = f"{name}.model = chosen.model and list_contains(run_ids, chosen.run_id)"
            yield name, f"select {name}.* from {name} semi join chosen on {same}"
        elif columns >= {"run_id", "model"}:
            yield name, f"from {name} semi join chosen using (run_id, model)"


@contextmanager
def _put_in(folder: Path, *, force: bool) -> Iterator[Path]:
    """A folder to write to, whose files move into the wanted one when all of them are whole."""
    folder.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(folder)
    if not force and any(not is_unfinished(path) for path in folder.iterdir()):
        raise ExportError(
            f"{folder} is not empty: name a new folder, or replace files in it with --force."
        )
    workshop = folder / f"{_UNFINISHED}{os.getpid()}"
    workshop.mkdir()
    try:
        yield workshop
        for path in sorted(workshop.iterdir()):
            sync(path)
            path.replace(folder / path.name)
        sync(folder)
    finally:
        remove(workshop)


def is_unfinished(path: Path) -> bool:
    """Whether it is what an export works in."""
    return path.name.startswith(_UNFINISHED)


def _remove_leftovers(folder: Path) -> None:
    for left in filter(is_unfinished, folder.iterdir()):
        process = left.name.removeprefix(_UNFINISHED)
        if not (process.isdigit() and is_running(int(process))):
            remove(left)

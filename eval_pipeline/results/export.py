"""Rows into files: CSV, JSON and Parquet, written by DuckDB itself, each file whole or not at all.

CSV has lists and structures as JSON. JSON has moments as in ISO 8601, and null for what is no
number. Nothing but names and numbers of rows passes through Python, however much there is.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE
from typing import NamedTuple

import duckdb

from eval_pipeline.errors import MendableError
from eval_pipeline.journal.files import quoted, remove, swap_in, sync
from eval_pipeline.processes import is_running
from eval_pipeline.results.queries import SQL, query, query_text
from eval_pipeline.results.runs import FoundRun
from eval_pipeline.results.schema import schema_page
from eval_pipeline.results.user_query import working

_ISO = "timestampformat '%Y-%m-%dT%H:%M:%S.%f'"
FORMATS: Mapping[str, str] = {
    "csv": "format csv, header true",
    "json": f"format json, array true, {_ISO}",
    "jsonl": f"format json, {_ISO}",
    "parquet": "format parquet, compression zstd",
}
"""The formats, with DuckDB's options for each."""
SUFFIXES = {**{f".{name}": name for name in FORMATS}, ".ndjson": "jsonl"}
_NESTED = {"list", "array", "struct", "map", "union"}
SCHEMA = "schema.md"
_OWN_AFFAIRS = {"published"}
"""About the file itself, not about results."""
_UNFINISHED = ".exporting-"
_NO_FILES = (Path("/dev"), Path("/proc"))
MOST_LINKS, AT_ONCE = 40, 64 * 1024


class ExportError(MendableError):
    """Raised where nothing can be written; the message says what to do."""


class Exported(NamedTuple):
    """A file that was written, and how many rows are in it."""

    file: str
    rows: int


def write_rows(db: duckdb.DuckDBPyConnection, sql: str, path: Path, form: str) -> None:
    """Writes the rows of a query straight to a file, or to what is open under that name."""
    options = f"{FORMATS[form]}, use_tmp_file false"
    db.execute(f"copy ({_fitting(db, sql, form)}) to {quoted(path)} ({options})")


def opened(descriptor: int) -> Path:
    """The name by which DuckDB can write to a file, or a pipe, that is open already."""
    return Path(f"/dev/fd/{descriptor}")


def stream_rows(
    db: duckdb.DuckDBPyConnection, sql: str, form: str, send: Callable[[bytes], None]
) -> None:
    """Send the rows while they arrive, until the receiver stops."""
    outlet, inlet = os.pipe()

    def write() -> None:
        try:
            write_rows(db, sql, opened(inlet), form)
        finally:
            os.close(inlet)

    with working(db, write) as result:
        try:
            while data := os.read(outlet, AT_ONCE):
                send(data)
        finally:
            os.close(outlet)  # whoever still writes is told so
        result()


def write_result(db: duckdb.DuckDBPyConnection, sql: str, path: Path, form: str) -> None:
    """Write the rows to a user's file, which is replaced as a whole or stays as it was."""
    with replacing(path) as unfinished:
        write_rows(db, sql, unfinished, form)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """An empty file to write to, which becomes the user's when all of it is written."""
    target = _target(path)
    _remove_unfinished(target)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    mode = 0o600 if target.exists() else 0o666  # what others may read is known at the end
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        yield unfinished
        _replace(target, unfinished)
    finally:
        unfinished.unlink(missing_ok=True)


def _target(path: Path) -> Path:
    """The file that is meant; never what only leads to something open, such as /dev/fd/1."""
    target = path
    for _ in range(MOST_LINKS):
        target = target.parent.resolve() / target.name
        if any(target.is_relative_to(place) for place in _NO_FILES):
            break
        if not target.is_symlink():
            if target.exists() and not target.is_file():
                break
            if not target.parent.is_dir():
                raise ExportError(f"There is no folder {path.parent}: make it first.")
            return target
        target = target.parent / target.readlink()
    raise ExportError(f"{path} is no file: name one that is, or a new one.")


def _replace(target: Path, new: Path) -> None:
    """Replace the file and keep its permissions."""
    if target.is_file():
        new.chmod(S_IMODE(target.stat().st_mode))
    new.replace(target)


def _remove_unfinished(target: Path) -> None:
    """Remove what killed processes left beside the file."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.(\d+)\.unfinished")
    for path in target.parent.iterdir():
        left = ours.fullmatch(path.name)
        if left and (int(left[1]) == os.getpid() or not is_running(int(left[1]))):
            remove(path)


def export_tables(
    db: duckdb.DuckDBPyConnection,
    folder: Path,
    form: str,
    *,
    runs: Sequence[FoundRun] = (),
    force: bool = False,
) -> list[Exported]:
    """Every table and view as a file, and what their columns mean; with `runs`, theirs only."""
    relations = _relations(db)
    sources = {name: f"from {name}" for name in relations}
    if runs:
        sources = dict(_narrowed(db, relations, runs))
    exported = [Exported(f"{name}.{form}", _count(db, sql)) for name, sql in sources.items()]
    names = [*(file for file, _ in exported), SCHEMA]
    with _put_in(folder, names, force=force) as workshop:
        for (file, _), sql in zip(exported, sources.values(), strict=True):
            write_rows(db, sql, workshop / file, form)
        swap_in(workshop / SCHEMA, schema_page().encode())
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


def _relations(db: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """Return every table and view that is about results, with its columns."""
    described = query(db, "summaries/schema").aggregate('relation, list("column")', "relation")
    found = described.order("relation").fetchall()
    return {name: set(columns) for name, columns in found if name not in _OWN_AFFAIRS}


def _narrowed(
    db: duckdb.DuckDBPyConnection, relations: Mapping[str, set[str]], runs: Sequence[FoundRun]
) -> Iterator[tuple[str, str]]:
    """Yield each table that has rows of these runs, with the query for them."""
    keys = {"run_ids": [run.run_id for run in runs], "models": [run.model for run in runs]}
    db.execute(
        "create temp table chosen as from runs where (run_id, model) in "
        "(select (unnest($run_ids), unnest($models)))",
        keys,
    )
    for name, columns in relations.items():
        if (SQL / "exports" / f"{name}.sql").exists():
            yield name, query_text(f"exports/{name}")
        elif columns >= {"run_ids", "model"}:
            same = f"{name}.model = chosen.model and list_contains(run_ids, chosen.run_id)"
            yield name, f"select {name}.* from {name} semi join chosen on {same}"
        elif columns >= {"run_id", "model"}:
            yield name, f"from {name} semi join chosen using (run_id, model)"


@contextmanager
def _put_in(folder: Path, names: Sequence[str], *, force: bool) -> Iterator[Path]:
    """A folder to write to, whose files move into the wanted one when all of them are whole."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ExportError(f"{folder} is no folder: name one that is, or a new one.") from None
    _remove_leftovers(folder)
    if not force and any(not is_unfinished(path) for path in folder.iterdir()):
        raise ExportError(
            f"{folder} is not empty: name a new folder, or replace files in it with --force."
        )
    for target in (folder / name for name in names):
        if target.is_dir() and not target.is_symlink():
            raise ExportError(f"{target} is a folder: move it away, or name another DIR.")
    workshop = folder / f"{_UNFINISHED}{os.getpid()}"
    workshop.mkdir(mode=0o700)
    try:
        yield workshop
        for path in sorted(workshop.iterdir()):
            sync(path)
            _replace(folder / path.name, path)
        sync(folder)
    finally:
        remove(workshop)


def is_unfinished(path: Path) -> bool:
    """Return whether the path is an unfinished export."""
    return path.name.startswith(_UNFINISHED)


def _remove_leftovers(folder: Path) -> None:
    for left in filter(is_unfinished, folder.iterdir()):
        process = left.name.removeprefix(_UNFINISHED)
        if not (process.isdigit() and is_running(int(process))):
            remove(left)

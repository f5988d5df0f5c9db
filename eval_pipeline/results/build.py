"""Fills a new DuckDB file from the journal; a large one in a process of its own.

The derived tables are computed from the others in SQL and, between two queries, in numpy.
"""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
from pydantic import TypeAdapter

from eval_pipeline.errors import MendableError
from eval_pipeline.journal import JUDGED, PREDICTIONS, STREAMS, Journal, Stream
from eval_pipeline.journal.files import (
    JSONL,
    PARQUET,
    FileCompactedError,
    JournalError,
    longest_line,
    quoted,
    remove,
)
from eval_pipeline.processes import EXPLAINED, GONE, last_words, run_module
from eval_pipeline.records.base import now
from eval_pipeline.results.queries import run_file
from eval_pipeline.results.schema import create_schema, schema_texts

TABLES = {
    "versions": ["benchmark_versions"],
    "items": ["items"],
    "sightings": ["model_catalog"],
    "attempts": ["attempts"],
    "runs": ["runs", "plans"],
    "predictions": ["predictions"],
    "judged": ["judged", "steps"],
    "rejudged": ["rejudged"],
    "labels": ["human_labels"],
    "diagnoses": ["diagnoses"],
    "reclassified": ["reclassified"],
}
# The derived tables in the order in which they are made, each with rows without which it is empty:
# to find that out by its queries would take far longer.
DERIVED = {
    "metrics": "runs",
    "pass_at_k": "metrics where samples > 1",
    "calibration_bins": "metrics where with_confidence > 0",
    "comparisons": "metrics where complete",
    "leaderboard_entries": "metrics where complete",
    "leaderboard_slices": "leaderboard_entries",
    "judge_reliability": "judged",
}
# The derived tables that depend on each short stream; all of them depend on any other stream.
SHOWN_IN: Mapping[str, Sequence[str]] = {
    "sightings": (),
    "attempts": (),
    "rejudged": ("judge_reliability",),
    "labels": ("judge_reliability",),
    "diagnoses": (),
    "reclassified": (),
}
MEGABYTE = 1024 * 1024
# From here on the memory that DuckDB needs shows beside that of the pipeline.
LARGE = MEGABYTE
# From here on a second thread is worth its memory.
HUGE = 256 * MEGABYTE
LEAST_MEMORY = 88 * MEGABYTE
# A small file is written faster uncompressed, and blocks of the usual size would be almost empty.
FOR_LITTLE = {"default_block_size": "65536", "force_compression": "uncompressed"}
# Texts shrink to about a quarter in Parquet.
PARQUET_FACTOR = 4
# Rows are wide: a group of them is held in memory until it is written.
ROWS_AT_ONCE = 4096
# By the size of its blocks and its schema: to create that takes much longer than to copy the file.
_BLANKS: dict[tuple[str, ...], bytes] = {}


class WarehouseError(MendableError):
    """Raised where the file cannot be read or replaced; the message says what to do."""

    wrong_use = False


@dataclass(frozen=True)
class Order:
    """A plan: build all of a journal, or add what has changed to a copy of the present file."""

    journal: Journal
    snapshots: Mapping[str, str]
    changed: Sequence[str]
    base: Path | None = None

    @property
    def loads(self) -> list[Stream[Any]]:
        """The streams to read."""
        return [one for one in STREAMS if self.base is None or one.name in self.changed]

    @property
    def derives(self) -> Sequence[str]:
        """The tables to compute: those that show something of what has changed."""
        if self.base is None:
            return list(DERIVED)
        stale = {table for part in self.changed for table in SHOWN_IN.get(part, DERIVED)}
        return [table for table in DERIVED if table in stale]


def build(path: Path, order: Order) -> None:
    """Makes the file at this path, which shows the journal; if that fails, there is none."""
    try:
        if _weight(order) < LARGE:
            fill(path, order)
        else:
            _fill_apart(path, order)
    except BaseException:
        for left in path.parent.glob(f"{path.name}*"):
            remove(left)
        raise


def fill(path: Path, order: Order) -> None:
    """Fills the file within bounds of memory; where they prove too narrow, within wider ones."""
    weight = _weight(order)
    threads = 1 if weight < HUGE else 2
    memory = (LEAST_MEMORY + weight // 10) * threads
    form = FOR_LITTLE if _size(order, order.loads) < LARGE else {}
    for limit in (f"{memory}B", f"{3 * memory}B"):
        with suppress(duckdb.OutOfMemoryException):
            return _fill(path, order, {"threads": f"{threads}", "memory_limit": limit, **form})
        path.unlink(missing_ok=True)
    return _fill(path, order, {})


def _fill(path: Path, order: Order, settings: Mapping[str, str]) -> None:
    _begin(path, order, settings)
    with _new_file(path, settings) as connection:
        for stream in order.loads:
            for table in TABLES[stream.name]:
                connection.execute(f"delete from {table}")
            load(connection, stream, order.journal.files(stream))
        for name in order.derives:
            derive(connection, name)
        _note(connection, order)
        # Closing would swallow it if the disk has no room for the last bytes.
        connection.execute("checkpoint")


def _begin(path: Path, order: Order, settings: Mapping[str, str]) -> None:
    """Copy the present file, or write one with all tables and no rows."""
    try:
        if order.base is not None:
            shutil.copyfile(order.base, path)
        else:
            path.write_bytes(_blank(path, settings))
    except OSError as error:
        raise _not_built(error) from None


def _blank(path: Path, settings: Mapping[str, str]) -> bytes:
    """Return the bytes of a file with the schema and no rows, made at this path the first time."""
    made_with = (settings.get("default_block_size", ""), *schema_texts())
    if made_with not in _BLANKS:
        with _new_file(path, settings) as connection:
            create_schema(connection)
            connection.execute("checkpoint")
        _BLANKS[made_with] = path.read_bytes()
    return _BLANKS[made_with]


def _note(connection: duckdb.DuckDBPyConnection, order: Order) -> None:
    """Record which state of the journal the file shows, and since when."""
    parts = {
        part: snapshot
        for part, snapshot in order.snapshots.items()
        if order.base is None or part in order.changed
    }
    # One statement for all: one that may replace rows takes milliseconds to plan.
    connection.execute(
        "insert or replace into published select unnest($parts), unnest($snapshots), $at",
        {"parts": list(parts), "snapshots": list(parts.values()), "at": now()},
    )


@contextmanager
def _new_file(path: Path, settings: Mapping[str, str]) -> Iterator[duckdb.DuckDBPyConnection]:
    frugal = {
        "preserve_insertion_order": "false",
        "temp_directory": f"{path}.spill",
        "allocator_flush_threshold": "1MB",
        # With less, the system would hand out the same pages again for every query.
        "allocator_bulk_deallocation_flush_threshold": "4MB",
    }
    try:
        with duckdb.connect(config={**frugal, **settings}) as connection:
            # A half-built file is thrown away, so no log is written for it.
            options = f"row_group_size {ROWS_AT_ONCE}, recovery_mode no_wal_writes"
            connection.execute(f"attach {quoted(path)} as warehouse ({options})")
            connection.execute("use warehouse")
            yield connection
    except _WRITING_FAILED as error:
        raise _not_built(error) from None


_WRITING_FAILED = (
    duckdb.IOException,
    duckdb.FatalException,
    duckdb.InternalException,
    duckdb.TransactionException,
)


def _not_built(error: Exception) -> WarehouseError:
    return WarehouseError(
        f"The DuckDB file can not be built ({error}). The old one is still there, and all "
        "results are in the journal: make room on the disk, then run: evals rebuild"
    )


def _weight(order: Order) -> int:
    """Bytes of the long streams that are read, as JSON lines."""
    return _size(order, [stream for stream in order.loads if stream in (PREDICTIONS, JUDGED)])


def _size(order: Order, streams: Sequence[Stream[Any]]) -> int:
    paths = [path for stream in streams for path in order.journal.files(stream)]
    with _files_there(paths):
        factors = {JSONL: 1, PARQUET: PARQUET_FACTOR}
        return sum(path.stat().st_size * factors[path.suffix] for path in paths)


def _fill_apart(path: Path, order: Order) -> None:
    """Fill the file in another process, which gives its memory back by ending."""
    journal = replace(order.journal, root=order.journal.root.absolute())
    absolute = replace(order, journal=journal)
    given = TypeAdapter(Order).dump_json(absolute).decode()
    done = run_module(__name__, str(path), given)
    match done.returncode:
        case 0:
            return
        case code if code == GONE:
            raise FileCompactedError(order.journal.root)
        case code if code == EXPLAINED:
            raise WarehouseError(done.stderr.strip())
        case _:
            raise WarehouseError(f"The DuckDB file can not be built ({last_words(done)}).")


def load(
    connection: duckdb.DuckDBPyConnection,
    stream: Stream[Any],
    files: list[Path],
    *,
    as_of: datetime | None = None,
) -> None:
    """Load the records of these files into their tables; `as_of` leaves out later ones."""
    if not files:
        return
    with _files_there(files):
        longest = max([MEGABYTE, *(longest_line(path) for path in files if path.suffix == JSONL)])
        _show_lines(connection, files, longest)
        if as_of is not None:
            run_file(connection, "summaries/lines_as_of", {"as_of": as_of})
        given = {"files": [str(path) for path in files], "longest": longest}
        run_file(connection, f"load/{stream.name}", given)


@contextmanager
def _files_there(files: list[Path]) -> Iterator[None]:
    try:
        yield
    except (duckdb.IOException, FileNotFoundError):
        for path in files:
            if not path.exists():
                raise FileCompactedError(path) from None
        raise


def _show_lines(connection: duckdb.DuckDBPyConnection, files: list[Path], longest: int) -> None:
    """Create the view `lines` over the stream's records, in files of either kind."""
    kinds = {
        # DuckDB reserves twice the maximum size of a line.
        JSONL: "select json as line from read_ndjson_objects([{}], ignore_errors = true, "
        f"hive_partitioning = false, maximum_object_size = {longest})",
        PARQUET: "select line::json as line from read_parquet([{}], hive_partitioning = false)",
    }
    names = {kind: [quoted(path) for path in files if path.suffix == kind] for kind in kinds}
    shown = [sql.format(", ".join(names[kind])) for kind, sql in kinds.items() if names[kind]]
    connection.execute(f"create or replace temp view lines as {' union all '.join(shown)}")


def derive(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Fill a derived table from those before it in DERIVED."""
    connection.execute(f"delete from {table}")
    if not _has_rows(connection, DERIVED[table]):
        return
    # Imported only if there is something to compute: numpy takes time and memory.
    if table == "metrics":
        run_file(connection, "derive/scores")
        if _has_rows(connection, "item_scores"):
            from eval_pipeline.results.metrics import measure  # noqa: PLC0415

            measure(connection)
    elif table == "comparisons":
        run_file(connection, "derive/entries")
        if _has_rows(connection, "entries"):
            from eval_pipeline.results.comparisons import compare_entries  # noqa: PLC0415

            compare_entries(connection)
    elif table == "judge_reliability":
        run_file(connection, "derive/agreement")
        run_file(connection, "derive/judges")
    run_file(connection, f"derive/{table}")


def _has_rows(connection: duckdb.DuckDBPyConnection, source: str) -> bool:
    return connection.execute(f"from {source} limit 1").fetchone() is not None


def _main(path: str, order: str) -> int:
    try:
        fill(Path(path), TypeAdapter(Order).validate_json(order))
    except FileCompactedError:
        return GONE
    except (WarehouseError, JournalError) as error:
        sys.stderr.write(str(error))
        return EXPLAINED
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))

"""Compaction of a run's journal files to one Parquet file, without losing or doubling a line."""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from eval_pipeline.journal.files import (
    JSONL,
    PARQUET,
    REPLACES,
    FileCompactedError,
    JournalError,
    Source,
    as_line,
    files_below,
    is_replaced,
    low_memory_duckdb,
    quoted,
    read_file,
    remove,
    replaced_by,
    source,
    sync,
    translate_os_errors,
)
from eval_pipeline.processes import EXPLAINED, GONE, last_words, run_module
from eval_pipeline.records.base import Record

WORTH_IT_FILES = 2
WORTH_IT_BYTES = 8 * 1024 * 1024
GRACE_S = 600
# DuckDB takes up to 2,048 lines of one file at a time, however long they are.
BYTES_AT_ONCE = 4 * 1024 * 1024
MEMORY = 36 * 1024 * 1024
MEMORY_IN_LINES = 40


@dataclass
class _Gathered:
    """All whole lines, copied to files of limited size: exactly these must be in the result."""

    folder: Path
    files: list[Path] = field(default_factory=list)
    count: int = 0
    size: int = 0
    longest: int = 0


def compact(
    folder: Path, name: str, record: type[Record], still_wanted: Callable[[], bool] = lambda: True
) -> None:
    """Compact the folder's records into one Parquet file, if that is worth it."""
    remove_superseded(folder)
    paths = files_below(folder)
    sizes = [path.stat().st_size for path in paths if path.suffix == JSONL]
    if len(sizes) < WORTH_IT_FILES and sum(sizes) < WORTH_IT_BYTES:
        return
    workshop = folder / f".compacting-{name}"
    with translate_os_errors(folder):
        workshop.mkdir()
        try:
            gathered = _gather(paths, record, workshop)
            if gathered.count:
                built = workshop / "new"
                _build(gathered, built, _replaced(paths))
                _check(built, gathered)
                sync(built)
                if still_wanted():
                    built.replace(folder / f"{name}{PARQUET}")
                    sync(folder)
        finally:
            remove(workshop)


def remove_superseded(folder: Path) -> None:
    """Delete files that were replaced a while ago, and what a crash has left."""
    with translate_os_errors(folder):
        for left in folder.glob(".compacting-*"):
            remove(left)
        # Another process may still be reading what a new file replaces.
        before = time.time() - GRACE_S
        compacted = (one for one in folder.glob(f"[!.]*{PARQUET}") if one.stat().st_mtime < before)
        replaced = {one for path in compacted for one in replaced_by(path)}
        for name in {one.name for one in replaced}:
            with suppress(FileCompactedError):
                if is_replaced(source(folder / name), replaced):
                    (folder / name).unlink(missing_ok=True)


def is_large(folder: Path) -> bool:
    """Return whether compaction takes enough time and memory for a process of its own."""
    with translate_os_errors(folder):
        sizes = [path.stat().st_size for path in folder.glob(f"[!.]*{JSONL}")]
    return sum(sizes) >= WORTH_IT_BYTES


def compact_in_subprocess(folder: Path, name: str, stream: str) -> None:
    """Compact the folder in another process, which gives its memory back."""
    done = run_module("eval_pipeline.journal", str(folder.absolute()), name, stream)
    if done.returncode == GONE:
        raise FileCompactedError(folder)
    if done.returncode == EXPLAINED:
        raise JournalError(done.stderr.strip())
    if done.returncode:
        raise JournalError(f"{folder} could not be compacted ({last_words(done)}).")


def _gather(paths: list[Path], record: type[Record], workshop: Path) -> _Gathered:
    gathered, room = _Gathered(workshop), 0
    with ExitStack() as opened:
        for line in (as_line(one) for path in paths for one in read_file(path, record)):
            if room <= 0:
                opened.close()
                gathered.files.append(workshop / f"{len(gathered.files):06}.lines")
                file, room = opened.enter_context(gathered.files[-1].open("wb")), BYTES_AT_ONCE
            room -= file.write(line)
            gathered.count += 1
            gathered.size += len(line)
            gathered.longest = max(gathered.longest, len(line))
    return gathered


def _replaced(paths: list[Path]) -> list[Source]:
    """Return these files and those that older Parquet files replace: they may still be there."""
    older = [one for path in paths if path.suffix == PARQUET for one in replaced_by(path)]
    return list(dict.fromkeys([*map(source, paths), *older]))


def _build(gathered: _Gathered, built: Path, replaced: list[Source]) -> None:
    # A line of JSON has no unescaped control character, so none of them ever ends a column.
    sql = (
        f"copy (select line from read_csv([{', '.join(map(quoted, gathered.files))}], "
        "columns = {line: 'varchar'}, auto_detect = false, header = false, parallel = false, "
        "delim = '\x1f', quote = '', escape = '', hive_partitioning = false, "
        f"max_line_size = {gathered.longest}, buffer_size = {BYTES_AT_ONCE + gathered.longest})) "
        f"to {quoted(built)} (format parquet, compression zstd, row_group_size_bytes '4MB', "
        f"kv_metadata {{{REPLACES}: {quoted(json.dumps(replaced))}}})"
    )
    memory = MEMORY + MEMORY_IN_LINES * gathered.longest
    limits = {"memory_limit": f"{memory}B", "temp_directory": f"{built}.spill"}
    with low_memory_duckdb(gathered.folder, **limits) as db:
        db.execute(sql)


def _check(built: Path, gathered: _Gathered) -> None:
    """Raise unless every line is in the new file: the old ones are going to be deleted."""
    sql = f"select count(*), sum(strlen(line) + 1) from read_parquet({quoted(built)})"
    with low_memory_duckdb(built) as db:
        found = db.sql(sql).fetchone()
    if found != (gathered.count, gathered.size):
        raise JournalError(f"{built.parent} cannot be compacted without loss. Nothing was changed.")

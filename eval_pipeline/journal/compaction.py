"""The journal files of a run become one Parquet file: nothing is lost, nothing counted twice."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from eval_pipeline.journal.disk import GoneError, JournalError, explained, remove, sync
from eval_pipeline.journal.lines import (
    JSONL,
    PARQUET,
    REPLACES,
    Source,
    as_line,
    files_below,
    frugally,
    is_replaced,
    quoted,
    read_file,
    replaced_by,
    source,
)
from eval_pipeline.record import Record

WORTH_IT_FILES = 2
WORTH_IT_BYTES = 8 * 1024 * 1024
# Somebody may be reading the old files at this moment.
GRACE_S = 600
# DuckDB takes up to 2,048 lines of one file at a time, however long they are.
BYTES_AT_ONCE = 4 * 1024 * 1024
MEMORY = 36 * 1024 * 1024
MEMORY_IN_LINES = 40


@dataclass
class _Gathered:
    """All whole lines in files of a bearable size; what is in them is what must come out."""

    folder: Path
    files: list[Path] = field(default_factory=list)
    count: int = 0
    size: int = 0
    longest: int = 0

    def write(self, lines: Iterator[bytes]) -> None:
        """Takes as many of the lines as go into one file."""
        self.files.append(self.folder / f"{len(self.files):06}.lines")
        written = 0
        with self.files[-1].open("wb") as file:
            for line in lines:
                written += file.write(line)
                self.count += 1
                self.longest = max(self.longest, len(line))
                if written >= BYTES_AT_ONCE:
                    break
        self.size += written


def compact(
    folder: Path, name: str, record: type[Record], still_wanted: Callable[[], bool] = lambda: True
) -> None:
    """Puts the folder's records into one Parquet file, if that is worth it."""
    remove_superseded(folder)
    paths = files_below(folder)
    if not _is_worth_it([path for path in paths if path.suffix == JSONL]):
        return
    with explained(folder), _workshop(folder, name) as workshop:
        gathered = _gather(paths, record, workshop)
        if gathered.count:
            built = workshop / "new"
            _build(gathered, built, _replaced(paths))
            _check(built, gathered)
            sync(built)
            if still_wanted():
                built.replace(folder / f"{name}{PARQUET}")
                sync(folder)


def remove_superseded(folder: Path) -> None:
    """Deletes what has stood in a Parquet file for a while, and what a crash has left."""
    with explained(folder):
        for left in folder.glob(".compacting-*"):
            remove(left)
        compacted = [path for path in folder.glob(f"[!.]*{PARQUET}") if _is_settled(path)]
        replaced = {one for path in compacted for one in replaced_by(path)}
        for name in {one.name for one in replaced}:
            with suppress(GoneError):
                if is_replaced(source(folder / name), replaced):
                    (folder / name).unlink(missing_ok=True)


def _is_settled(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > GRACE_S


def is_large(folder: Path) -> bool:
    """Whether it takes long enough, and so much memory, that a process of its own is better."""
    with explained(folder):
        sizes = [path.stat().st_size for path in folder.glob(f"[!.]*{JSONL}")]
    return sum(sizes) >= WORTH_IT_BYTES


def _is_worth_it(paths: list[Path]) -> bool:
    sizes = [path.stat().st_size for path in paths]
    return len(sizes) >= WORTH_IT_FILES or sum(sizes) >= WORTH_IT_BYTES


@contextmanager
def _workshop(folder: Path, name: str) -> Iterator[Path]:
    """A folder for what is half done."""
    workshop = folder / f".compacting-{name}"
    workshop.mkdir()
    try:
        yield workshop
    finally:
        remove(workshop)


def _gather(paths: list[Path], record: type[Record], workshop: Path) -> _Gathered:
    lines = (as_line(one) for path in paths for one in read_file(path, record))
    gathered = _Gathered(workshop)
    for line in lines:
        gathered.write(chain([line], lines))
    return gathered


def _replaced(paths: list[Path]) -> list[Source]:
    """These, and what older Parquet files stand for: another copy may still have that."""
    older = [one for path in paths if path.suffix == PARQUET for one in replaced_by(path)]
    return list(dict.fromkeys([*map(source, paths), *older]))


def _build(gathered: _Gathered, built: Path, replaced: list[Source]) -> None:
    # No control character stands in a line of JSON as itself, so none of them ever ends a column.
    sql = (
        f"copy (select line from read_csv([{', '.join(map(quoted, gathered.files))}], "
        "columns = {line: 'varchar'}, auto_detect = false, header = false, parallel = false, "
        "delim = '\x1f', quote = '', escape = '', hive_partitioning = false, "
        f"max_line_size = {gathered.longest}, buffer_size = {BYTES_AT_ONCE + gathered.longest})) "
        f"to {quoted(built)} (format parquet, compression zstd, row_group_size_bytes '4MB', "
        f"kv_metadata {{{REPLACES}: {quoted(json.dumps(replaced))}}})"
    )
    memory = MEMORY + MEMORY_IN_LINES * gathered.longest
    spill = f"{built}.spill"
    with frugally(gathered.folder, memory_limit=f"{memory}B", temp_directory=spill) as db:
        db.execute(sql)


def _check(built: Path, gathered: _Gathered) -> None:
    """The old files are going to be deleted, so it is better to look than to believe."""
    sql = f"select count(*), sum(strlen(line) + 1) from read_parquet({quoted(built)})"
    with frugally(built) as db:
        found = db.sql(sql).fetchone()
    if found != (gathered.count, gathered.size):
        raise JournalError(
            f"{built.parent} can not be compacted without loss. Nothing was changed."
        )

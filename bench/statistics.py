"""How long metrics, comparisons and leaderboard take over so many judgements, and how much memory.

Run as `python -m bench.statistics FILE JUDGEMENTS` it derives them in a copy of that file, exactly
as it is done when the file is built from a journal, and says what each table took.
"""

import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest.mock import patch

import duckdb

from bench.measuring import finished, peak_mb
from bench.options import Options
from bench.project import environment, run
from bench.tables import Cell, Table
from eval_pipeline.journal import Journal
from eval_pipeline.results import build as building
from eval_pipeline.results.build import derive

# Of a fabricated reply and the verdict on it, as lines of the journal: by their size the memory is
# measured out that DuckDB may take.
BYTES_EACH = 3_000
GROUPS = {
    "metrics s": ("metrics",),
    "pass@k, bins s": ("pass_at_k", "calibration_bins"),
    "comparisons s": ("comparisons",),
    "leaderboard s": ("leaderboard_entries", "leaderboard_slices"),
    "judges s": ("judge_reliability",),
}
COLUMNS = ("judgements", *GROUPS, "in all s", "CPU s", "peak MB", "x row before")
NOTE = """\
Of 60 simulated models, two samples of each item, one judge, all pairs of models compared; the best
of the repetitions. Included: all that `evals rebuild` does once the journal's records are in
DuckDB, with as many threads and as much memory as it allows for so much. Not included: reading the
journal (see rebuild). The peak is that of the whole process, Python and numpy included."""


@dataclass(frozen=True)
class Size:
    """How much there is to derive from."""

    items: int
    models: int = 60
    samples: int = 2

    @property
    def judgements(self) -> int:
        return self.models * self.items * self.samples


SIZES = (Size(250), Size(2_500), Size(25_000))


@dataclass(frozen=True)
class Derived:
    """What the derived tables took, each in seconds, and the process that computed them."""

    seconds: dict[str, float]
    cpu_s: float
    peak_mb: float

    @property
    def in_all_s(self) -> float:
        return sum(self.seconds.values())


def section(options: Options, sizes: Sequence[Size] = SIZES) -> list[Table]:
    """The derived tables over a number of judgements, and over ten and a hundred times as many."""
    chosen = sizes if options.scale >= 1 else sizes[:1]
    return [table_of([(size, best_of(options, size)) for size in chosen])]


def table_of(found: Sequence[tuple[Size, Derived]]) -> Table:
    """A row for each size, with how many times as long it took as the one before."""
    rows: list[tuple[Cell, ...]] = []
    before = None
    for size, derived in found:
        growth = derived.in_all_s / before if before else None
        rows.append((f"{size.judgements:,}", *_cells(derived), growth))
        before = derived.in_all_s
    return Table("Metrics, comparisons and leaderboard", COLUMNS, tuple(rows), NOTE)


def best_of(options: Options, size: Size) -> Derived:
    """The quickest of the repetitions, over results that are fabricated first."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        file, count = folder / "fabricated.duckdb", f"{size.judgements:,}"
        options.say(f"fabricating {count} predictions and as many judgements")
        numbers = map(str, (size.models, size.items, size.samples))
        run(folder, sys.executable, "-m", "bench.fabricate", "warehouse", str(file), *numbers)
        found = []
        for repetition in range(options.repetitions):
            options.say(f"Statistics: {count}, {repetition + 1} of {options.repetitions}")
            found.append(_derived(file, size))
    return min(found, key=lambda derived: derived.in_all_s)


def _derived(file: Path, size: Size) -> Derived:
    command = [sys.executable, "-m", __name__, str(file), str(size.judgements)]
    said = finished(command, file.parent, environment())
    return Derived(**json.loads(said.splitlines()[-1]))


def _cells(derived: Derived) -> tuple[Cell, ...]:
    groups = [sum(derived.seconds[table] for table in tables) for tables in GROUPS.values()]
    return (*groups, derived.in_all_s, derived.cpu_s, derived.peak_mb)


def derive_all(file: Path, copy: Path, weight: int) -> Derived:
    """Derives all tables in a copy of the file, as if it came from a journal of so many bytes."""
    wall: dict[str, float] = defaultdict(float)
    cpu: dict[str, float] = defaultdict(float)

    def timed(connection: duckdb.DuckDBPyConnection, table: str) -> None:
        wall_before, cpu_before = time.perf_counter(), time.process_time()
        try:
            derive(connection, table)
        finally:
            # An attempt that runs out of memory and is repeated takes its time too.
            wall[table] += time.perf_counter() - wall_before
            cpu[table] += time.process_time() - cpu_before

    # A part of the journal that no stream is: nothing has to be read, and all is to be derived.
    order = building.Order(Journal(file.parent), {}, changed=["fabricated"], base=file)
    with (
        patch.object(building, "derive", timed),
        patch.object(building, "_weight", lambda _: weight),
    ):
        building.fill(copy, order)
    return Derived(dict(wall), sum(cpu.values()), peak_mb())


def _main(file: str, judgements: str) -> None:
    with tempfile.TemporaryDirectory(dir=Path(file).parent) as folder:
        copy = Path(folder) / "derived.duckdb"
        derived = derive_all(Path(file), copy, int(judgements) * BYTES_EACH)
    print(json.dumps(asdict(derived)))


if __name__ == "__main__":
    _main(*sys.argv[1:])

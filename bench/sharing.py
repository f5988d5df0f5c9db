"""Several processes land batches of results at once: one journal, a store, or DuckLake.

DuckLake is measured with `--lake PYTHON`, the Python of an environment that has duckdb and, from
PyPI, its extensions ducklake and postgres-scanner; PostgreSQL is a system package.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from bench.landing import a_reply
from bench.measuring import LONGEST_S, BenchError, started
from bench.options import Options
from bench.project import environment
from bench.tables import Cell, Table
from eval_pipeline.journal import PREDICTIONS, Journal
from eval_pipeline_tests.cluster import postgres

LANDERS, HISTORY = 4, 20_000
SIZES = ((4, 50), (1, 2_500))
"""How many batches of how many rows: a few answers at a time, or a run at its end."""
STARTING_S = 6.0
COLUMNS = (
    "",
    "rows/s",
    "to go on, p50 ms",
    "p99 ms",
    "until seen, p50 s",
    "p99 s",
    "MB",
    "bytes/row",
)
NOTE = (
    "To go on: until the lander may ask for more, since its batch can not be lost. Until seen: "
    "until a query in another process finds it. MB: what there is of it in all, copies included, "
    "but not what PostgreSQL has. Nothing is derived from the rows in any of them."
)
LANDING = (sys.executable, "-m", "bench.landing")


class Landed(NamedTuple):
    """What became of all batches."""

    rows_per_s: float
    waits: list[float]
    seen: list[float]


@dataclass(frozen=True)
class Load:
    """What everybody lands, and what there is before."""

    batches: int
    rows: int
    history: int

    @property
    def total(self) -> int:
        return self.history + LANDERS * self.batches * self.rows

    def words(self, folder: Path, number: int, start: float) -> list[str]:
        """As those who land are told it."""
        return [str(folder), f"bench/m{number}", str(self.batches), str(self.rows), str(start)]


def section(options: Options) -> Iterator[Table]:
    """One row per way to share, each over the same history."""
    for batches, rows in SIZES:
        load = Load(batches, options.scaled(rows), options.scaled(HISTORY))
        cells = {name: _in_a_folder(way, load, options) for name, way in WAYS.items()}
        found = tuple((name, *row) for name, row in cells.items() if row)
        title = f"{LANDERS} processes landing {load.batches} x {load.rows:,} rows over {HISTORY:,}"
        yield Table(title, COLUMNS, found, NOTE)


def _in_a_folder(way: "Way", load: Load, options: Options) -> tuple[Cell, ...]:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        options.say(f"Sharing: {way.__name__}")
        landed = way(Path(folder), load, options)
        return () if landed is None else _cells(landed, Path(folder), load)


def _one_folder(folder: Path, load: Load, _options: Options) -> Landed:
    _give_history(folder, load.history)
    commands = [[*LANDING, *load.words(folder, each, _start())] for each in range(LANDERS)]
    return _landed(commands, load, environment())


def _a_store(folder: Path, load: Load, _options: Options) -> Landed:
    """Each on a machine of its own, as it were: with its own working copy and DuckDB file."""
    copies = [folder / f"copy-{number}" for number in range(LANDERS)]
    for copy in copies:
        _give_history(copy, load.history)
    commands = [
        [*LANDING, *load.words(copy, each, _start()), str(folder / "store")]
        for each, copy in enumerate(copies)
    ]
    return _landed(commands, load, environment())


def _a_lake(folder: Path, load: Load, options: Options) -> Landed | None:
    if options.lake is None:
        return None
    lander = [options.lake, str(Path(__file__).with_name("lake_landing.py"))]
    (data := folder / "lake").mkdir()
    # Its files are written by whoever lands, not by PostgreSQL.
    with postgres(folder) as variables:
        env = {**environment(), **variables}
        earlier = Load(0, load.history, 0)
        _finished([[*lander, *earlier.words(data, LANDERS, 0.0)]], env)
        commands = [[*lander, *load.words(data, each, _start())] for each in range(LANDERS)]
        return _landed(commands, load, env)


Way = Callable[[Path, Load, Options], Landed | None]
WAYS: Mapping[str, Way] = {
    "one folder": _one_folder,
    "a store (file://)": _a_store,
    "DuckLake, PostgreSQL": _a_lake,
}


def _give_history(folder: Path, rows: int) -> None:
    replies = (a_reply("bench/earlier", number) for number in range(rows))
    Journal(folder / "journal").write_whole(
        PREDICTIONS, "bench/earlier", "run", "all", records=replies
    )


def _start() -> float:
    """When all of them begin; until then they load their programs."""
    return time.time() + STARTING_S


def _landed(commands: Sequence[Sequence[str]], load: Load, env: dict[str, str]) -> Landed:
    rows = [row for one in _finished(commands, env) for row in one]
    began = min(row[2] - row[1] for row in rows)
    per_s = LANDERS * load.batches * load.rows / (max(row[2] for row in rows) - began)
    return Landed(per_s, [row[0] for row in rows], [row[1] for row in rows])


def _finished(commands: Sequence[Sequence[str]], env: dict[str, str]) -> list[list[list[float]]]:
    """Runs all of them at once, each to its end."""
    with ExitStack() as stack:
        running = [
            stack.enter_context(started(command, Path.cwd(), env, output=-1))
            for command in commands
        ]
        said = [process.communicate(timeout=LONGEST_S) for process in running]
    for process, (_, trouble) in zip(running, said, strict=True):
        if process.returncode != 0:
            raise BenchError(trouble[-2000:].strip())
    return [json.loads(out.splitlines()[-1]) for out, _ in said]


def _cells(landed: Landed, folder: Path, load: Load) -> tuple[Cell, ...]:
    size = _size(folder)
    waits, seen = landed.waits, landed.seen
    return (
        landed.rows_per_s,
        median(waits) * 1000,
        _p99(waits) * 1000,
        median(seen),
        _p99(seen),
        size / 2**20,
        size / load.total,
    )


def _p99(values: Sequence[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98]


def _size(folder: Path) -> int:
    found = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return sum(path.stat().st_size for path in found if path.suffix != ".log")

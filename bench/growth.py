"""How what is done with results grows with them: landing, deriving, the web, Dagster's own storage.

Each is measured at several sizes, and the growth told as a power: 1 is in proportion, 2 is
quadratic. docs/scale.md calculates from them what limits a cluster.
"""

import math
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

from bench.load import MODEL
from bench.measuring import Taken, measured
from bench.options import Options
from bench.project import environment, run, write_settings
from bench.rebuild import size_of
from bench.server import model_names
from bench.serving import load_server
from bench.statistics import GROUPS, Size, best_of
from bench.tables import Cell, Table
from bench.viewing import fabricate_project, served

LANDED = (10_000, 100_000, 1_000_000)
"""Replies, each with a verdict."""
LANDING_MODELS = 10
COMPARED = (15, 30, 60, 120)
"""Models, each with so many items and two samples:"""
ITEMS_COMPARED = 250
SHOWN = (10, 60, 240)
ITEMS_SHOWN = 50
ASKED = (10, 100, 1_000)
MB = 1024 * 1024
OF_LANDING = ("results", "seconds", "CPU s", "peak MB", "journal MB", "DuckDB file MB")
OF_MODELS = ("models", "pairs", *GROUPS, "in all s", "CPU s", "peak MB")
OF_PAGES = ("models", "ms", "kB")
OF_DAGSTER = ("items", "rows of the event log", "bytes of the run's file", "bytes in all")


class Growth(NamedTuple):
    """What something takes: so much of the first size, times the ratio of sizes to this power."""

    power: float
    factor: float

    def at(self, size: float) -> float:
        return float(self.factor * size**self.power)


def fitted(points: Sequence[tuple[float, float]]) -> Growth:
    """The power law that comes nearest to the points, by the logarithms of both."""
    logs = [(math.log(size), math.log(taken)) for size, taken in points if taken > 0]
    if len(logs) < 2:  # noqa: PLR2004  (through one point goes any)
        return Growth(0.0, points[0][1] if points else 0.0)
    mean_x, mean_y = (sum(one) / len(logs) for one in zip(*logs, strict=True))
    over = sum((x - mean_x) * (y - mean_y) for x, y in logs)
    power = over / sum((x - mean_x) ** 2 for x, _ in logs)
    return Growth(power, math.exp(mean_y - power * mean_x))


def with_growth(title: str, columns: tuple[str, ...], rows: Sequence[tuple[Cell, ...]]) -> Table:
    """The rows, and below each column by which power it grows with the first: from the last two."""
    ends = rows[-2:]
    powers = [
        fitted([(_number(row[0]), _number(row[index])) for row in ends]).power
        for index in range(1, len(columns))
    ]
    last: tuple[Cell, ...] = ("grows with the power", *powers)
    return Table(title, columns, (*rows, last), NOTE)


NOTE = "The power is that between the two largest sizes: 0 does not grow, 1 in proportion."


def _number(cell: Cell) -> float:
    return float(str(cell).replace(",", "")) if cell is not None else 0.0


def section(options: Options) -> Iterator[Table]:
    """One table after the other, each as soon as it is there."""
    yield landing(options)
    yield deriving(options)
    yield pages(options)
    yield dagster(options)


def landing(options: Options, sizes: Sequence[int] = LANDED) -> Table:
    """`evals rebuild`: from the journal to a file with all tables."""
    rows = []
    for results in map(options.scaled, sizes):
        per_model = max(1, results // LANDING_MODELS)
        with options.project_copy(per_model, LANDING_MODELS) as project:
            options.say(f"Growth: fabricating {results:,} results")
            names = model_names(LANDING_MODELS)
            run(project, sys.executable, "-m", "bench.fabricate", "judged", *names)
            taken = measured(["evals", "rebuild"], project, environment())
            data = project / "data"
            sizes_mb = size_of(data / "journal") / MB, size_of(data / "evals.duckdb") / MB
        rows.append((f"{results:,}", *_of(taken), *sizes_mb))
    title = f"Landing: evals rebuild, {LANDING_MODELS} models, as many verdicts as replies"
    return with_growth(title, OF_LANDING, rows)


def _of(taken: Taken) -> tuple[float, float, float]:
    return taken.wall_s, taken.cpu_s, taken.peak_mb


def deriving(options: Options, sizes: Sequence[int] = COMPARED) -> Table:
    """Metrics, comparisons and leaderboard of ever more models."""
    rows: list[tuple[Cell, ...]] = []
    for models in (max(2, options.scaled(size)) for size in sizes):
        derived = best_of(options, Size(ITEMS_COMPARED, models))
        groups = [sum(derived.seconds[table] for table in tables) for tables in GROUPS.values()]
        pairs = models * (models - 1) // 2
        in_all = derived.in_all_s, derived.cpu_s, derived.peak_mb
        rows.append((f"{models:,}", pairs, *groups, *in_all))
    title = f"Deriving: {ITEMS_COMPARED} items, two samples each"
    return with_growth(title, OF_MODELS, rows)


def pages(options: Options, sizes: Sequence[int] = SHOWN) -> Table:
    """The leaderboard's page, as its first reader gets it."""
    rows: list[tuple[Cell, ...]] = []
    for models in (max(2, options.scaled(size)) for size in sizes):
        options.say(f"Growth: a page of {models} models")
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            project = Path(name) / "project"
            fabricate_project(project, models, ITEMS_SHOWN)
            with served(project) as address:
                rows.append((f"{models:,}", *_page(address)))
    return with_growth("The page of the leaderboard", OF_PAGES, rows)


def _page(address: str) -> tuple[float, float]:
    with httpx.Client(base_url=address, timeout=300) as client:
        client.get("/models/").raise_for_status()
        began = time.perf_counter()
        content = client.get("/?first").raise_for_status().content
        return 1000 * (time.perf_counter() - began), len(content) / 1000


def dagster(options: Options, sizes: Sequence[int] = ASKED) -> Table:
    """What a run leaves in Dagster's storage."""
    rows: list[tuple[Cell, ...]] = []
    for items in sizes:
        options.say(f"Growth: Dagster's storage after a run over {items:,} items")
        with options.project_copy(items) as project, load_server() as server:
            write_settings(project, base_url=server.base_url, at_once=50)
            home = project / "data" / "dagster"
            before = size_of(home)
            known = {*home.rglob("*.db")}
            run(project, "evals", "job", "evaluate", "-m", MODEL)
            (shard,) = {*home.rglob("*.db")} - known
            with sqlite3.connect(shard) as db:
                (events,) = db.execute("select count(*) from event_logs").fetchone()
            rows.append((f"{items:,}", events, size_of(shard), size_of(home) - before))
    return with_growth("Dagster's storage, of one run of evaluate", OF_DAGSTER, rows)

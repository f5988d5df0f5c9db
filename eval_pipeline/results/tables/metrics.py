"""Rows of the table `metrics` chosen by the user, and tables of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Literal, NamedTuple

import duckdb

from eval_pipeline.errors import RunError
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import find_runs
from eval_pipeline.results.stats.calibration import Published, as_published
from eval_pipeline.results.tables.format import (
    FittedTable,
    Row,
    accuracy,
    all_simulated,
    cell,
    named,
    number,
    remarks,
    titled,
    usd,
    whole,
)
from eval_pipeline.text import listed

Slice = Literal["all", "suite", "category", "input"]
CAPTION = (
    "In brackets the 95 % interval. judged: replies with a score. Calibration error and Brier "
    "score: lower is better; - where too few state a confidence."
)
BOUNDS = " if missing: accuracy if all that has no score were wrong, or right."
MOST_NAMED = 8


@dataclass(frozen=True)
class Wanted:
    """A choice of numbers; None means any."""

    run: str | None = None
    models: Sequence[str] = ()
    experiment: str | None = None
    judge: str | None = None
    by: Slice = "all"
    moderate: bool = False


class Metrics(NamedTuple):
    """The rows that are meant, the runs that are left out, and which version is published."""

    rows: Sequence[Row]
    left_out: Sequence[Row]
    published: Sequence[str]


class _Known(NamedTuple):
    """The names that have numbers."""

    models: Sequence[str]
    experiments: Sequence[str]
    judges: Sequence[str]
    published: Sequence[str]


def read_metrics(db: duckdb.DuckDBPyConnection, wanted: Wanted) -> Metrics:
    """Read the numbers of the latest runs or of one: complete ones, or (moderate) all."""
    known = _Known(*(found or [] for found in query(db, "summaries/metrics_known").fetchall()[0]))
    _refuse_unknown("experiment", wanted.experiment, known.experiments)
    _refuse_unknown("judge", wanted.judge, known.judges)
    given = {
        **_narrowed(db, wanted, known),
        "experiment": wanted.experiment,
        "judge": wanted.judge,
    }
    shown = {**given, "slice": wanted.by, "strict": not wanted.moderate}
    found = rows(query(db, "summaries/metrics_of_runs", shown))
    if wanted.moderate:
        return Metrics(found, [], known.published)
    every = rows(query(db, "summaries/metrics_of_runs", {**shown, "slice": "all", "strict": False}))
    return Metrics(found, [row for row in every if not row["complete"]], known.published)


def _narrowed(
    db: duckdb.DuckDBPyConnection, wanted: Wanted, known: _Known
) -> dict[str, str | list[str] | None]:
    """The run and the models that are meant."""
    models = _matching(wanted.models, known.models)
    if wanted.run is None:
        return {"run_id": None, "models": models}
    runs = find_runs(db, wanted.run)
    of_run = [run.model for run in runs if models is None or run.model in models]
    return {"run_id": runs[0].run_id, "models": of_run}


def _matching(patterns: Sequence[str], known: Sequence[str]) -> list[str] | None:
    """The ids themselves, else those that the pattern is a part of or, with * and ?, fits."""
    if not patterns:
        return None
    found: set[str] = set()
    for pattern in patterns:
        parts = [name for name in known if _fits(name.casefold(), pattern.casefold())]
        exact = [name for name in known if name == pattern]
        if not exact and not parts:
            _refuse_unknown("model", pattern, known)
        found.update(exact or parts)
    return sorted(found)


def _fits(name: str, pattern: str) -> bool:
    if "*" in pattern or "?" in pattern:
        return fnmatchcase(name, pattern.replace("[", "[[]"))
    return pattern in name


def _refuse_unknown(noun: str, name: str | None, known: Sequence[str]) -> None:
    if name is None or name in known:
        return
    there = listed(known, MOST_NAMED) or "none yet (evals run)"
    raise RunError(f"There are no numbers of the {noun} '{name}'. There are: {there}.")


def metrics_tables(found: Metrics, *, by: Slice, moderate: bool) -> Iterator[FittedTable]:
    """Yield the quality, one table per judge; of whole runs also cost and speed."""
    for judge, group in groupby(found.rows, key=lambda row: row["judge"]):
        yield _quality(list(group), judge, found.published, by=by, moderate=moderate)
    if by == "all" and found.rows:
        yield _cost(list({(row["run_id"], row["model"]): row for row in found.rows}.values()))


def _quality(
    found: Sequence[Row],
    judge: str | None,
    published: Sequence[str],
    *,
    by: Slice,
    moderate: bool,
) -> FittedTable:
    simulated = all_simulated(found)
    several = len({row["suite"] for row in found}) > 1
    numbers = ("accuracy", "judged", "calib.", "Brier", *(["if missing"] if moderate else []))
    table = FittedTable(
        f"{titled('Metrics', found)}, {f'judged by {judge}' if judge else 'not judged yet'}",
        *("model", *([] if by == "all" else [by]), *numbers),
        right=numbers,
        prose=(by,),
        dropped_first=("Brier", "calib."),
        caption=CAPTION + (BOUNDS if moderate else ""),
    )
    for row in found:
        table.add(
            named(row["model"], _remarks(row, published, all_simulated=simulated)),
            *([] if by == "all" else [cell(_sliced(row, by, several_suites=several))]),
            accuracy(row),
            _counted(row),
            number(row["calibration_error"], "{:.3f}"),
            number(row["brier_score"], "{:.3f}"),
            *([_bounds(row)] if moderate else []),
        )
    return table


def _cost(found: Sequence[Row]) -> FittedTable:
    columns = ("model", "run", "USD", "tokens in", "out", "p50 s", "p95 s")
    table = FittedTable(
        titled("Cost and speed", found),
        *columns,
        right=columns[1:],
        dropped_first=("p95 s",),
        caption="USD and tokens of all replies of the run, without judging; > where some are "
        "unknown.",
    )
    for row in found:
        table.add(
            named(row["model"]),
            row["run_id"][:8],
            usd(row["cost_usd"], row["cost_known_usd"]),
            whole(row["input_tokens"]),
            whole(row["output_tokens"]),
            number(row["latency_p50_s"], "{:.2f}"),
            number(row["latency_p95_s"], "{:.2f}"),
        )
    return table


def published_table(found: Sequence[Row]) -> FittedTable:
    """The numbers as Humanity's Last Exam and zenmux-benchmark compute them."""
    numbers = ("accuracy %", "± %", "calib. error %", "judged")
    table = FittedTable(
        "As published for Humanity's Last Exam",
        *("model", "judge", *numbers),
        right=numbers,
        caption="Over what was judged; ± is Wald's, and the calibration error leaves its last bin "
        "out. For comparison only: docs/statistics.md says what is wrong with them.",
    )
    for row in found:
        shown = published_of(row)
        cells = ("-", "-", "-") if shown is None else tuple(f"{one:.2f}" for one in shown)
        table.add(named(row["model"]), cell(row["judge"] or "-"), *cells, _counted(row))
    return table


def published_of(row: Row) -> Published | None:
    """The numbers of a row as they are published elsewhere."""
    dropped = row["calibration_error_last_bin_dropped"]
    return as_published(row["correct"], row["judged"], dropped)


def left_out_lines(found: Metrics) -> Iterator[str]:
    """Yield a line for each run that is not in the numbers, with what it lacks."""
    for row in found.left_out:
        judge = f", judge {row['judge']}" if row["judge"] else ""
        yield (
            f"Left out: {row['model']} ({row['experiment']}, run {row['run_id'][:8]}{judge}): "
            f"{row['incomplete_because']}; {row['judged']} of {row['planned']} have a score."
        )


def _counted(row: Row) -> str:
    if row["judged"] == row["planned"]:
        return str(row["judged"])
    return f"{row['judged']}/{row['planned']} {row['coverage']:.0%}"


def _bounds(row: Row) -> str:
    low, high = row["accuracy_if_missing_wrong"], row["accuracy_if_missing_right"]
    return "-" if low is None or high is None else f"{low:.0%} to {high:.0%}"


def _sliced(row: Row, by: Slice, *, several_suites: bool) -> str:
    if by == "category" and several_suites:
        return f"{row['suite']}/{row['category']}"
    return str(row[by])


def _remarks(row: Row, published: Sequence[str], *, all_simulated: bool) -> str:
    version = row["benchmark_version"]
    other = "" if version in published else f"version {version[:8]}"
    return remarks(row, all_simulated=all_simulated, more=other)

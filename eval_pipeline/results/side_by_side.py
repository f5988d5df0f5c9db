"""Any two models or runs side by side, with the items on which they differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import duckdb
import numpy as np

from eval_pipeline.errors import RunError
from eval_pipeline.results.comparisons import Compared, Entry, compare_scores, differences_of
from eval_pipeline.results.queries import query
from eval_pipeline.results.stats.bootstrap import Ints

MOST_NAMED = 8


class Judge(NamedTuple):
    """The judge of both sides, in one version."""

    judge: str
    version: str


@dataclass(frozen=True)
class Side:
    """A model in one or more of its runs."""

    model: str
    experiment: str
    run_ids: Sequence[str]
    benchmark_version: str
    samples: int
    simulated: bool

    @property
    def name(self) -> str:
        about = [
            "simulated" if self.simulated else "",
            "" if self.experiment == "default" else self.experiment,
            f"run {self.run_ids[0][:8]}" if len(self.run_ids) == 1 else f"{len(self.run_ids)} runs",
        ]
        return f"{self.model} ({', '.join(filter(None, about))})"

    def entry(self, number: int, judge: Judge) -> Entry:
        replies = len(self.run_ids) * self.samples
        return Entry(number, self.model, self.experiment, *judge, "", replies)


class Difference(NamedTuple):
    """An item on which the two did not score the same."""

    suite: str
    item_id: str
    category: str
    score_a: float
    score_b: float


@dataclass(frozen=True)
class SideBySide:
    """Two sides compared, and where they differ; `corrected` is the p-value among all pairs."""

    a: Side
    b: Side
    judge: Judge
    compared: Compared
    differences: Sequence[Difference]
    corrected: float | None
    pairs: int | None
    is_official: bool


class _Seen(NamedTuple):
    """A side as one judge sees it: the runs that count may differ."""

    side: Side
    is_official: bool
    judged_at: datetime


def compare_sides(
    db: duckdb.DuckDBPyConnection, a: str, b: str, *, experiment: str, judge: str | None
) -> SideBySide:
    """The two over the items that both have a score on; each is a model, a run, or model@run."""
    seen = _seen(db, a, experiment), _seen(db, b, experiment)
    _refuse_other_versions(*seen)
    by = _judge(*seen, judge)
    first, second = (sides[by].side for sides in seen)
    rows = _scores(db, first, second, by)
    if not rows:
        raise RunError(f"{first.name} and {second.name} share no item that {by.judge} has scored.")
    scores = np.array([(row[3], row[4]) for row in rows], dtype=np.float64)
    clusters, units = (_numbered([str(row[place]) for row in rows]) for place in (5, 6))
    entries = first.entry(1, by), second.entry(2, by)
    compared = compare_scores(*entries, scores[:, 0], scores[:, 1], clusters=clusters, units=units)
    differing = differences_of(scores[:, 0], scores[:, 1]) != 0
    differences = [
        Difference(*row[:5]) for row, differs in zip(rows, differing, strict=True) if differs
    ]
    corrected, pairs = _corrected(db, first, second, by)
    official = _official(*(sides[by] for sides in seen))
    return SideBySide(first, second, by, compared, differences, corrected, pairs, official)


def _numbered(names: Sequence[str]) -> Ints:
    _, numbers = np.unique(names, return_inverse=True)
    return numbers.astype(np.int64)


def _seen(db: duckdb.DuckDBPyConnection, name: str, experiment: str) -> dict[Judge, _Seen]:
    """Return the side that the name means, by judge."""
    found = _rows(db, name, experiment)
    meant = dict.fromkeys(row[0] for row in found)
    if len(meant) == 1:
        return {Judge(*row[7:9]): _Seen(Side(*row[1:7]), *row[9:]) for row in found}
    if meant:
        raise RunError(f"'{name}' may be any of {len(meant)}: {_listed(found)}. Which one?")
    if runs := _rows(db, f"{name}@", experiment):
        raise RunError(
            f"'{name}' is not on the leaderboard under the experiment '{experiment}'. "
            f"It has these runs: {_listed(runs)}. Which one?"
        )
    raise RunError(
        f"There is no judged run of '{name}'. Name a model on the leaderboard, a run by the "
        "first characters of its id, or both as model@run; the table `runs` lists them."
    )


def _rows(db: duckdb.DuckDBPyConnection, name: str, experiment: str) -> list[tuple[Any, ...]]:
    return query(db, "summaries/sides", {"name": name, "experiment": experiment}).fetchall()


def _listed(rows: Sequence[tuple[Any, ...]]) -> str:
    names = list(dict.fromkeys(f"{row[1]}@{row[3][0][:8]}" for row in rows))
    left = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {left} more" if left > 0 else "")


def _refuse_other_versions(a: Mapping[Judge, _Seen], b: Mapping[Judge, _Seen]) -> None:
    first, second = (next(iter(sides.values())).side for sides in (a, b))
    if first.benchmark_version != second.benchmark_version:
        raise RunError(
            f"{first.name} is of the benchmark version {first.benchmark_version}, {second.name} of "
            f"{second.benchmark_version}: what a pass means differs, so they can not be compared."
        )


def _judge(a: Mapping[Judge, _Seen], b: Mapping[Judge, _Seen], judge: str | None) -> Judge:
    """The judge who scored both: official if possible, and of several the one last at work."""
    common = [by for by in a if by in b and judge in (None, by.judge)]
    if not common:
        first, second = (next(iter(sides.values())).side for sides in (a, b))
        whom = judge or "one judge in the same version"
        raise RunError(f"{first.name} and {second.name} have no verdicts of {whom} in common.")
    return max(
        common, key=lambda by: (_official(a[by], b[by]), a[by].judged_at, b[by].judged_at, by)
    )


def _official(*seen: _Seen) -> bool:
    return all(one.is_official for one in seen)


def _scores(
    db: duckdb.DuckDBPyConnection, a: Side, b: Side, judge: Judge
) -> list[tuple[str, str, str, float, float, str, str]]:
    given = {**_given(a, b, judge), "benchmark_version": a.benchmark_version}
    return query(db, "summaries/scores_side_by_side", given).fetchall()


def _given(a: Side, b: Side, judge: Judge) -> dict[str, object]:
    return {
        **{"model_a": a.model, "runs_a": a.run_ids, "model_b": b.model, "runs_b": b.run_ids},
        **{"judge": judge.judge, "judge_version": judge.version},
    }


def _corrected(
    db: duckdb.DuckDBPyConnection, a: Side, b: Side, judge: Judge
) -> tuple[float | None, int | None]:
    """Return the p-value among all pairs of the leaderboard, if both sides are on it."""
    found = query(db, "summaries/corrected", _given(a, b, judge)).fetchall()
    return found[0] if found else (None, None)

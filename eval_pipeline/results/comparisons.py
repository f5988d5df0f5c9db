"""Models compared item by item: those of the leaderboard, which are tied or not, and any two."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations, groupby
from typing import Any, NamedTuple

import duckdb
import numpy as np

from eval_pipeline.errors import RunError
from eval_pipeline.results.queries import insert, query
from eval_pipeline.results.stats.bootstrap import Floats, Ints, seed_of
from eval_pipeline.results.stats.intervals import LEVEL, Interval, clustered_error
from eval_pipeline.results.stats.pairs import DECIMALS, Paired, compare, compare_clusters, holm
from eval_pipeline.results.stats.ranks import letters, rank_range
from eval_pipeline.text import listed

MOST_NAMED = 8


class Entry(NamedTuple):
    """One row of the leaderboard to be: a model under an experiment, by one judge's verdicts."""

    entry: int
    model: str
    experiment: str
    judge: str
    judge_version: str
    scope: str
    replies: int

    @property
    def board(self) -> tuple[str, ...]:
        """Those who are ranked together."""
        return self.judge, self.judge_version, self.experiment, self.scope

    @property
    def name(self) -> str:
        return f"{self.model} {self.experiment}"


class Compared(NamedTuple):
    """Two entries side by side."""

    a: Entry
    b: Entry
    accuracy_a: float
    accuracy_b: float
    paired: Paired
    standard_error_clustered: float | None

    @property
    def corrected_with(self) -> tuple[str, ...]:
        """Those among which a chance find is to be expected: models, or else experiments."""
        judge = self.a.judge, self.a.judge_version
        return (*judge, self.a.experiment) if self.a.experiment == self.b.experiment else judge


def compare_scores(
    a: Entry, b: Entry, first: Floats, second: Floats, *, clusters: Ints, units: Ints
) -> Compared:
    """Compare two entries by their scores on the same items.

    Items of one unit are not independent: of a cluster that the suite names, or an item alone.
    """
    differences = differences_of(first, second)
    seed = seed_of(*sorted([a.name, b.name]), a.judge, a.judge_version)
    distinct, numbers = np.unique(units, return_inverse=True)
    if len(distinct) < len(units):
        paired = compare_clusters(differences, numbers, seed=seed)
    else:
        values, counts = np.unique(differences, return_counts=True)
        binary = a.replies == b.replies == 1 and _is_binary(first) and _is_binary(second)
        paired = compare(values, counts, binary=binary, seed=seed)
    error = clustered_error(differences, clusters)
    return Compared(a, b, float(first.mean()), float(second.mean()), paired, error)


def differences_of(first: Floats, second: Floats) -> Floats:
    """The first minus the second; exactly 0 where they are the same but for rounding."""
    return np.round(first - second, DECIMALS)


def compare_entries(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `compared` and `ranks` from `entries` and `entry_scores`."""
    rows = connection.sql(
        "select entry, model, experiment, judge, judge_version, scope, runs * samples "
        "from entries order by entry"
    ).fetchall()
    entries = [Entry(*row) for row in rows]
    found = list(_compared(connection, entries))
    p_values, pairs = _corrected(found)
    insert(connection, "compared", list(map(_row, found, p_values, pairs)))
    # As text: for a column of texts DuckDB would load pandas.
    ranks = ", ".join(f"({rank})" for rank in _ranks(entries, found, p_values))
    connection.execute(f"insert into ranks values {ranks}")


def _compared(
    connection: duckdb.DuckDBPyConnection, entries: Sequence[Entry]
) -> Iterator[Compared]:
    """Yield every pair that shares items, compared on those."""
    found = connection.sql(
        "select entry, item, entry_scores.cluster, unit, score "
        "from entry_scores join exam using (item)"
    ).fetchnumpy()
    _, first, column = np.unique(found["item"], return_index=True, return_inverse=True)
    # The mean score of each entry (a row, from 1 on) on each item; NaN for none.
    table = np.full((len(entries) + 1, len(first)), np.nan)
    table[found["entry"], column] = found["score"]
    clusters, units = (
        np.asarray(found[name])[first].astype(np.int64) for name in ("cluster", "unit")
    )
    for a, b in _pairs(entries):
        shared = ~np.isnan(table[a.entry] - table[b.entry])
        if shared.any():
            scores = table[a.entry][shared], table[b.entry][shared]
            yield compare_scores(a, b, *scores, clusters=clusters[shared], units=units[shared])


def _pairs(entries: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Yield the pairs to compare: models under an experiment, experiments of a model."""
    for _, judged in groupby(entries, key=lambda entry: (entry.judge, entry.judge_version)):
        for a, b in combinations(judged, 2):
            if a.experiment == b.experiment or a.model == b.model:
                yield a, b


def _corrected(found: Sequence[Compared]) -> tuple[list[float], list[int]]:
    """Return the p-values, each corrected for the pairs of its family, and how many these are."""
    families: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, one in enumerate(found):
        families[one.corrected_with].append(number)
    p_values, pairs = [0.0] * len(found), [0] * len(found)
    for numbers in families.values():
        adjusted = holm([found[number].paired.p_value for number in numbers])
        for number, p_value in zip(numbers, adjusted, strict=True):
            p_values[number], pairs[number] = p_value, len(numbers)
    return p_values, pairs


def _row(one: Compared, p_adjusted: float, pairs: int) -> tuple[float | None, ...]:
    """Return a row of `compared`, whose columns are numbers."""
    paired = one.paired
    return (
        *(one.a.entry, one.b.entry, paired.items, one.accuracy_a, one.accuracy_b),
        *(paired.difference, *_ends(paired.interval), *_ends(paired.bootstrap)),
        *(paired.standard_error, one.standard_error_clustered, paired.better, paired.worse),
        *(paired.test == "mcnemar", paired.p_value, p_adjusted, pairs, paired.detectable(pairs)),
    )


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else interval


def _ranks(
    entries: Sequence[Entry], found: Sequence[Compared], p_values: Sequence[float]
) -> Iterator[str]:
    beaten: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for one, p_value in zip(found, p_values, strict=True):
        if one.a.board == one.b.board and p_value < LEVEL:
            better, worse = (one.a, one.b) if one.paired.difference > 0 else (one.b, one.a)
            beaten[one.a.board].append((better.entry, worse.entry))
    for board, ranked in groupby(entries, key=lambda entry: entry.board):
        names = [entry.entry for entry in ranked]
        ranges, tied = rank_range(names, beaten[board]), letters(names, beaten[board])
        for name in names:
            best, worst = ranges[name]
            yield f"{name}, {best}, {worst}, '{tied[name]}'"


def _is_binary(scores: Floats) -> bool:
    return bool(((scores == 0) | (scores == 1)).all())


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
    """Compare on the items that both have a score on; each is a model, a run, or model@run."""
    seen = _seen(db, a, experiment), _seen(db, b, experiment)
    by = _judge(*seen, judge)
    sides = first, second = seen[0][by].side, seen[1][by].side
    meant: dict[str, object] = {"judge": by.judge, "judge_version": by.version}
    for letter, side in zip("ab", sides, strict=True):
        meant |= {f"model_{letter}": side.model, f"runs_{letter}": side.run_ids}
    version = {"benchmark_version": first.benchmark_version}
    rows = query(db, "summaries/scores_side_by_side", {**meant, **version}).fetchall()
    if not rows:
        raise RunError(f"{first.name} and {second.name} share no item that {by.judge} has scored.")
    scores = np.array([row[3:5] for row in rows], dtype=np.float64).T
    clusters, units = (
        np.unique([row[place] for row in rows], return_inverse=True)[1].astype(np.int64)
        for place in (5, 6)
    )
    one, other = (
        Entry(0, side.model, side.experiment, *by, "", len(side.run_ids) * side.samples)
        for side in sides
    )
    compared = compare_scores(one, other, scores[0], scores[1], clusters=clusters, units=units)
    differing = differences_of(scores[0], scores[1]) != 0
    differences = [
        Difference(*row[:5]) for row, differs in zip(rows, differing, strict=True) if differs
    ]
    # The p-value among all pairs of the leaderboard, if both sides are on it.
    corrected, pairs = query(db, "summaries/corrected", meant).fetchone() or (None, None)
    official = all(sides[by].is_official for sides in seen)
    return SideBySide(first, second, by, compared, differences, corrected, pairs, official)


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
    return listed(names, MOST_NAMED)


def _judge(a: Mapping[Judge, _Seen], b: Mapping[Judge, _Seen], judge: str | None) -> Judge:
    """Return who scored both: official if possible, and of several the one last at work."""
    first, second = (next(iter(sides.values())).side for sides in (a, b))
    if first.benchmark_version != second.benchmark_version:
        raise RunError(
            f"{first.name} is of the benchmark version {first.benchmark_version}, {second.name} of "
            f"{second.benchmark_version}: what a pass means differs, so they cannot be compared."
        )
    common = [by for by in a if by in b and judge in (None, by.judge)]
    if not common:
        whom = judge or "one judge in the same version"
        raise RunError(f"{first.name} and {second.name} have no verdicts of {whom} in common.")

    def preference(by: Judge) -> tuple[Any, ...]:
        both = a[by], b[by]
        return all(one.is_official for one in both), *(one.judged_at for one in both), by

    return max(common, key=preference)

"""Models compared item by item: their differences, and which of them are statistically tied."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any, Literal, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from eval_pipeline.results.queries import insert
from eval_pipeline.results.stats.bootstrap import Floats, Ints, seed_of
from eval_pipeline.results.stats.intervals import LEVEL, Interval, clustered_error
from eval_pipeline.results.stats.pairs import Differences, Paired, compare, compare_clusters, holm
from eval_pipeline.results.stats.ranks import letters, rank_range

# Means of the same scores may differ by rounding; more of it would take thirds off the lattice
# that the bootstrap is fast on.
DECIMALS = 14

Family = Literal["models", "experiments"]


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


@dataclass(frozen=True)
class Scores:
    """The mean score of each entry (a row, from 1 on) on each item (a column); NaN for none.

    Items of one unit are not independent: of a cluster that the suite names, or an item alone.
    """

    table: Floats
    clusters: Ints
    units: Ints

    def compare(self, a: Entry, b: Entry) -> "Compared | None":
        """The two on the items that both have a score on; None if there are none."""
        first, second = self.table[a.entry], self.table[b.entry]
        shared = ~np.isnan(first - second)
        if not shared.any():
            return None
        return compare_scores(
            a,
            b,
            first[shared],
            second[shared],
            clusters=self.clusters[shared],
            units=self.units[shared],
        )


class Compared(NamedTuple):
    """Two entries side by side."""

    a: Entry
    b: Entry
    accuracy_a: float
    accuracy_b: float
    paired: Paired
    standard_error_clustered: float | None

    @property
    def family(self) -> Family:
        return "models" if self.a.experiment == self.b.experiment else "experiments"

    @property
    def corrected_with(self) -> Hashable:
        """Those among which a chance find is to be expected."""
        judge = self.a.judge, self.a.judge_version
        return (*judge, self.family, self.a.experiment if self.family == "models" else "")


def compare_scores(
    a: Entry, b: Entry, first: Floats, second: Floats, *, clusters: Ints, units: Ints
) -> Compared:
    """Two entries by their scores on the same items."""
    differences = differences_of(first, second)
    seed = seed_of(*sorted([a.name, b.name]), a.judge, a.judge_version)
    distinct, numbers = np.unique(units, return_inverse=True)
    if len(distinct) < len(units):
        paired = compare_clusters(differences, numbers, seed=seed)
    else:
        values, counts = np.unique(differences, return_counts=True)
        binary = a.replies == b.replies == 1 and _is_binary(first) and _is_binary(second)
        paired = compare(Differences(values, counts, binary=binary), seed=seed)
    error = clustered_error(differences, clusters)
    return Compared(a, b, float(first.mean()), float(second.mean()), paired, error)


def differences_of(first: Floats, second: Floats) -> Floats:
    """The first minus the second; exactly 0 where they are the same but for rounding."""
    return np.round(first - second, DECIMALS)


def compare_entries(connection: duckdb.DuckDBPyConnection) -> None:
    """Fills `compared` and `ranks` from `entries` and `entry_scores`."""
    rows = connection.sql(
        "select entry, model, experiment, judge, judge_version, scope, runs * samples "
        "from entries order by entry"
    ).fetchall()
    entries = [Entry(*row) for row in rows]
    scores = _scores(connection, len(entries))
    found = [one for pair in _pairs(entries) if (one := scores.compare(*pair))]
    corrected = _corrected(found)
    insert(connection, "compared", _columns(found, corrected))
    # As text: for a column of texts DuckDB would load pandas.
    ranks = ", ".join(f"({rank})" for rank in _ranks(entries, found, corrected))
    connection.execute(f"insert into ranks values {ranks}")


def _scores(connection: duckdb.DuckDBPyConnection, entries: int) -> Scores:
    found = connection.sql(
        "select entry, item, entry_scores.cluster, unit, score "
        "from entry_scores join exam using (item)"
    ).fetchnumpy()
    _, first, column = np.unique(found["item"], return_index=True, return_inverse=True)
    table = np.full((entries + 1, len(first)), np.nan)
    table[found["entry"], column] = found["score"]
    clusters, units = (np.asarray(found[name])[first] for name in ("cluster", "unit"))
    return Scores(table, clusters.astype(np.int64), units.astype(np.int64))


def _pairs(entries: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Yield the pairs to compare: models under an experiment, experiments of a model."""
    for _, judged in groupby(entries, key=lambda entry: (entry.judge, entry.judge_version)):
        for a, b in combinations(judged, 2):
            if a.experiment == b.experiment or a.model == b.model:
                yield a, b


class _Corrected(NamedTuple):
    p_value: float
    pairs: int


def _corrected(found: Sequence[Compared]) -> list[_Corrected]:
    """The p-values in their order, each corrected for the pairs of its family."""
    families: dict[Hashable, list[int]] = defaultdict(list)
    for number, one in enumerate(found):
        families[one.corrected_with].append(number)
    corrected: dict[int, _Corrected] = {}
    for numbers in families.values():
        adjusted = holm([found[number].paired.p_value for number in numbers])
        corrected |= {
            number: _Corrected(p_value, len(numbers))
            for number, p_value in zip(numbers, adjusted, strict=True)
        }
    return [corrected[number] for number in range(len(found))]


def _columns(
    found: Sequence[Compared], corrected: Sequence[_Corrected]
) -> Mapping[str, NDArray[Any]]:
    paired = [one.paired for one in found]
    return {
        "entry_a": np.array([one.a.entry for one in found], dtype=np.int64),
        "entry_b": np.array([one.b.entry for one in found], dtype=np.int64),
        "items": np.array([one.items for one in paired], dtype=np.int64),
        "accuracy_a": _floats(one.accuracy_a for one in found),
        "accuracy_b": _floats(one.accuracy_b for one in found),
        "difference": _floats(one.difference for one in paired),
        **_ends("difference", [one.interval for one in paired]),
        **_ends("bootstrap", [one.bootstrap for one in paired]),
        "standard_error": _floats(one.standard_error for one in paired),
        "standard_error_clustered": _floats(one.standard_error_clustered for one in found),
        "better": np.array([one.better for one in paired], dtype=np.int64),
        "worse": np.array([one.worse for one in paired], dtype=np.int64),
        "exact_mcnemar": np.array([one.test == "mcnemar" for one in paired], dtype=np.bool_),
        "p_value": _floats(one.p_value for one in paired),
        "p_adjusted": _floats(one.p_value for one in corrected),
        "pairs": np.array([one.pairs for one in corrected], dtype=np.int64),
        "detectable": _floats(
            one.detectable(after.pairs) for one, after in zip(paired, corrected, strict=True)
        ),
    }


def _ranks(
    entries: Sequence[Entry], found: Sequence[Compared], corrected: Sequence[_Corrected]
) -> Iterator[str]:
    beaten: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for one, after in zip(found, corrected, strict=True):
        if one.a.board == one.b.board and after.p_value < LEVEL:
            better, worse = (one.a, one.b) if one.paired.difference > 0 else (one.b, one.a)
            beaten[one.a.board].append((better.entry, worse.entry))
    for board, ranked in groupby(entries, key=lambda entry: entry.board):
        names = [entry.entry for entry in ranked]
        ranges, tied = rank_range(names, beaten[board]), letters(names, beaten[board])
        for name in names:
            best, worst = ranges[name]
            yield f"{name}, {best}, {worst}, '{tied[name]}'"


def _ends(name: str, intervals: Sequence[Interval | None]) -> Mapping[str, Floats]:
    return {
        f"{name}_low": _floats(one and one.low for one in intervals),
        f"{name}_high": _floats(one and one.high for one in intervals),
    }


def _is_binary(scores: Floats) -> bool:
    return bool(((scores == 0) | (scores == 1)).all())


def _floats(values: Iterable[float | None]) -> Floats:
    """Return the values as an array, with NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

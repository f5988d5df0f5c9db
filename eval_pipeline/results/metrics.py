"""The parts of metrics that SQL is not made for: calibration and bootstrap intervals."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from eval_pipeline.results.queries import insert
from eval_pipeline.results.stats.bootstrap import bootstrap_interval, sample_of, seed_of
from eval_pipeline.results.stats.calibration import (
    Bins,
    Floats,
    brier_score,
    equal_count_bins,
    expected_error,
    last_bin_dropped,
    root_mean_square_error,
)

# The number of runs in memory at once, as numbers only.
GRADINGS_AT_ONCE = 40
WHOLE = "in_all"
MEMBERSHIPS = (WHOLE, "in_suite", "in_category", "in_input")


class Stated(NamedTuple):
    """The replies of one slice that state a confidence and have a score, in order of confidence."""

    slice_id: int
    confidence: Floats
    score: Floats
    asked: NDArray[np.int64]
    """The same replies in the order of the run's plan, as places in the other columns."""


def measure(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `calibrations`, `reliability` and `bootstraps` from the other temporary tables."""
    gradings = connection.table("gradings").max("grading").fetchone()
    last = gradings[0] if gradings else None
    for first in range(1, (last or 0) + 1, GRADINGS_AT_ONCE):
        _calibrate(connection, f"grading between {first} and {first + GRADINGS_AT_ONCE - 1}")
    _bootstrap(connection)


def _calibrate(connection: duckdb.DuckDBPyConnection, some: str) -> None:
    fetched = (
        connection.table("verdicts")
        .filter(f"{some} and score is not null and confidence is not null")
        # Bins are cut between equal confidences, so these need a fixed order too.
        .order("confidence, item, sample")
        .project(", ".join([*MEMBERSHIPS, "confidence", "score", "position", "sample"]))
        .fetchnumpy()
    )
    found = {name: np.asarray(column) for name, column in fetched.items()}
    for membership in MEMBERSHIPS:
        slices = [
            (one, equal_count_bins(one.confidence, one.score)) for one in _slices(found, membership)
        ]
        insert(connection, "calibrations", [_errors(one, bins) for one, bins in slices])
        if membership == WHOLE:
            in_bins = [(one.slice_id, bins) for one, bins in slices if bins]
            reliability = [
                (slice_id, number, *numbers)
                for slice_id, bins in in_bins
                for number, numbers in enumerate(zip(*bins, strict=True), start=1)
            ]
            insert(connection, "reliability", reliability)


def _slices(found: Mapping[str, NDArray[np.float64]], membership: str) -> Iterator[Stated]:
    ids = found[membership]
    in_order = np.argsort(ids, kind="stable")
    starts = np.flatnonzero(np.diff(ids[in_order], prepend=0))
    for chosen in np.split(in_order, starts)[1:]:
        asked = np.lexsort((found["sample"][chosen], found["position"][chosen]))
        yield Stated(
            int(ids[chosen[0]]), found["confidence"][chosen], found["score"][chosen], asked
        )


def _errors(one: Stated, bins: Bins | None) -> tuple[float | None, ...]:
    return (
        one.slice_id,
        root_mean_square_error(bins) if bins else None,
        last_bin_dropped(one.confidence[one.asked], one.score[one.asked]),
        expected_error(bins) if bins else None,
        brier_score(one.confidence, one.score),
    )


def _bootstrap(connection: duckdb.DuckDBPyConnection) -> None:
    rows = connection.sql(
        "select slice_id, run_id, model, judge, judge_version, "
        "list(mean_score order by mean_score, scored, passed), "
        "list(items order by mean_score, scored, passed) "
        "from score_counts join slices using (slice_id) join gradings using (grading) "
        "where slice in ('all', 'suite') group by all order by slice_id"
    ).fetchall()
    # The seed is without the slice: a run of one suite has the same interval for both.
    intervals = [
        (slice_id, *bootstrap_interval(sample_of(values, counts), seed=seed_of(*graded_by)))
        for slice_id, *graded_by, values, counts in rows
    ]
    insert(connection, "bootstraps", intervals)

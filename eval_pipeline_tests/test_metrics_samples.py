"""Several samples per item: means, errors and intervals, against other implementations."""

import math
import statistics
from collections.abc import Iterator, Sequence
from random import Random

import duckdb
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.stats import sem
from statsmodels.stats.proportion import proportion_confint

from eval_pipeline.results.queries import query
from eval_pipeline.results.stats.bootstrap import bootstrap_interval, sample_of, seed_of
from eval_pipeline_tests.sampled import (
    SAMPLED,
    SCORES,
    Row,
    Sampled,
    Scores,
    all_derived,
    chance_scores,
    derived,
    empty_tables,
    means_of,
    rows_of,
)


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with empty_tables() as connection:
        yield connection


def test_items_with_two_samples_by_hand(db: duckdb.DuckDBPyConnection) -> None:
    row = derived(db, Sampled([[1, 0], [1, 1], [0, None]], judge_outcome="undecided"))

    expected = {
        "items": 3,
        "samples": 2,
        "planned": 6,
        "answered": 6,
        "judged": 5,
        "items_judged": 3,
        "coverage": 5 / 6,
        "correct": 3,
        "accuracy": 0.5,
        "standard_error": 0.5 / math.sqrt(3),
        "accuracy_if_missing_wrong": 0.5,
        "accuracy_if_missing_right": 4 / 6,
        "complete": False,
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert row["incomplete_because"] == "1 not judged (undecided)"


def test_an_item_counts_once_however_often_it_was_scored(db: duckdb.DuckDBPyConnection) -> None:
    row = derived(db, Sampled([[1, None, None, None], [0, 0, 0, 0], [None] * 4]))

    assert (row["accuracy"], row["correct"], row["judged"]) == (0.5, 1, 5)
    assert (row["items"], row["items_judged"]) == (3, 2)


@pytest.mark.parametrize("samples", [1, 2, 5])
def test_the_standard_error_is_that_of_the_item_means(
    db: duckdb.DuckDBPyConnection, samples: int
) -> None:
    scores = chance_scores(97, samples, seed=samples)

    row = derived(db, Sampled(scores))

    assert row["standard_error"] == pytest.approx(sem(means_of(scores)))


@pytest.mark.parametrize(("samples", "groups"), [(1, 2), (1, 9), (3, 9), (2, 97)])
def test_the_clustered_error_is_that_of_statsmodels(
    db: duckdb.DuckDBPyConnection, samples: int, groups: int
) -> None:
    scores = chance_scores(97, samples, seed=groups)
    clusters = [n % groups for n in range(97)]

    row = derived(db, Sampled(scores, clusters=[f"c{cluster}" for cluster in clusters]))

    # For a mean alone its small-sample correction (n - 1) / (n - 1) * G / (G - 1) is ours.
    fit = sm.OLS(means_of(scores), np.ones(97)).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(clusters)}
    )
    assert row["standard_error_clustered"] == pytest.approx(fit.bse[0])
    assert row["clusters"] == groups


def test_the_clustered_error_by_hand(db: duckdb.DuckDBPyConnection) -> None:
    row = derived(db, Sampled([[1], [1], [0], [0]], clusters=["a", "a", "a", "b"]))

    # Mean 1/2, sums of deviations 1/2 and -1/2, two clusters, four items.
    assert row["standard_error_clustered"] == pytest.approx(math.sqrt(2 * 0.5) / 4)


def test_equal_names_of_clusters_in_two_suites_are_two_clusters(
    db: duckdb.DuckDBPyConnection,
) -> None:
    row = derived(db, Sampled([[1], [0], [1]], clusters=["a"] * 3, suites=["one", "two", "two"]))

    by_suite = rows_of(db, "select clusters from metrics where slice = 'suite' order by suite")
    one_cluster = rows_of(db, "from metrics where slice = 'suite' and suite = 'two'")
    assert row["clusters"] == 2
    assert by_suite == [{"clusters": 1}, {"clusters": 1}]
    assert [found["standard_error_clustered"] for found in one_cluster] == [None]


def test_one_item_has_no_error(db: duckdb.DuckDBPyConnection) -> None:
    row = derived(db, Sampled([[1, 0]]))

    assert (row["standard_error"], row["standard_error_clustered"]) == (None, None)
    assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx(
        proportion_confint(0.5, 1, method="wilson")
    )


@pytest.mark.parametrize("samples", [1, 2, 4, 8])
def test_the_interval_is_wilson_s_for_the_effective_number_of_scores(
    db: duckdb.DuckDBPyConnection, samples: int
) -> None:
    scores = chance_scores(80, samples, seed=samples)

    row = derived(db, Sampled(scores))

    share = statistics.fmean(means_of(scores))
    effective = share * (1 - share) / sem(means_of(scores)) ** 2
    assert samples == 1 or 80 < effective < 80 * samples
    n = max(80, effective) if samples > 1 else 80
    expected = proportion_confint(share * n, n, method="wilson")
    assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scores", "n"),
    [
        ([[1, 1], [0, 0], [1, 1]], 3),
        ([[1, 0], [0, 1], [1, 0]], 6),
        ([[1, 1], [1, 1], [1, 1]], 3),
        ([[0, 0], [0, 0], [0, 0]], 3),
        ([[0.5], [0.5], [0.25]], 3),
    ],
)
def test_samples_are_worth_from_one_score_per_item_to_one_each(
    db: duckdb.DuckDBPyConnection, scores: Scores, n: int
) -> None:
    row = derived(db, Sampled(scores))

    share = statistics.fmean(means_of(scores))
    low, high = proportion_confint(share * n, n, method="wilson")
    assert row["accuracy_low"] == pytest.approx(low, abs=1e-12)
    assert row["accuracy_high"] == pytest.approx(high, abs=1e-12)


def test_the_bootstrap_is_over_item_means_and_the_same_for_the_only_suite(
    db: duckdb.DuckDBPyConnection,
) -> None:
    scores = chance_scores(60, 3, seed=1)

    derived(db, Sampled(scores, categories=["Math", "Physics"] * 30))

    seed = seed_of("r1", "demo/00", "demo/judge", "v1")
    expected = bootstrap_interval(
        sample_of(*np.unique(means_of(scores), return_counts=True)), seed=seed
    )
    found = rows_of(db, "select slice, bootstrap_low, bootstrap_high from metrics order by slice")
    whole = [row for row in found if row["slice"] in ("all", "suite")]
    assert [tuple(row.values())[1:] for row in whole] == [pytest.approx(expected)] * 2
    assert {row["bootstrap_low"] for row in found if row not in whole} == {None}


def test_the_same_rows_give_the_same_numbers_in_whatever_order_they_come(
    db: duckdb.DuckDBPyConnection,
) -> None:
    chance = Random(1)
    scores = [[chance.random() for _ in range(3)] for _ in range(50)]
    run = Sampled(scores, clusters=[f"c{n % 7}" for n in range(50)])

    derived(db, run, seed=1)
    first = [rows_of(db, f"from {table} order by all") for table in SAMPLED]
    derived(db, run, seed=2)

    assert [rows_of(db, f"from {table} order by all") for table in SAMPLED] == first


@pytest.mark.slow
@hypothesis_settings(max_examples=12, deadline=None, database=None)
@given(runs=st.lists(SCORES, min_size=1, max_size=8), chance=st.randoms(use_true_random=False))
def test_the_numbers_are_in_order_whatever_the_scores(
    db: duckdb.DuckDBPyConnection, runs: Sequence[Scores], chance: Random
) -> None:
    clusters = [[chance.choice("abc") for _ in scores] for scores in runs]
    sampled = [
        Sampled(scores, clusters=names, categories=names)
        for scores, names in zip(runs, clusters, strict=True)
    ]

    rows = all_derived(db, sampled, seed=0)

    assert len(query(db, "checks/metrics_are_within_bounds")) == 0
    assert [row["items"] for row in rows] == list(map(len, runs))
    for row in rows:
        if row["judged"]:
            check_order(row)


def check_order(row: Row) -> None:
    bounds = (row["accuracy_if_missing_wrong"], row["accuracy_if_missing_right"])
    assert bounds[0] - 1e-12 <= row["accuracy"] <= bounds[1] + 1e-12
    assert row["accuracy_low"] <= row["accuracy"] <= row["accuracy_high"]
    each, per_item = (width(row["accuracy"], row[n]) for n in ("judged", "items_judged"))
    assert each - 1e-12 <= row["accuracy_high"] - row["accuracy_low"] <= per_item + 1e-12


def width(share: float, n: int) -> float:
    low, high = proportion_confint(share * n, n, method="wilson")
    return float(high - low)

"""pass@k and pass^k against combinations in whole numbers."""

import math
import statistics
from collections.abc import Iterator, Sequence
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.stats import sem

from eval_pipeline_tests.sampled import (
    SCORES,
    Row,
    Sampled,
    Scores,
    all_derived,
    chance_scores,
    derived,
    empty_tables,
    rows_of,
)


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with empty_tables() as connection:
        yield connection


def by_combinations(scores: Scores, k: int) -> tuple[list[Fraction], list[Fraction]]:
    """pass@k and pass^k of each item with enough scores, in whole numbers."""
    known = [[score for score in samples if score is not None] for samples in scores]
    counted = [(len(samples), samples.count(1)) for samples in known if len(samples) >= k]
    return (
        [1 - Fraction(math.comb(n - c, k), math.comb(n, k)) for n, c in counted],
        [Fraction(math.comb(c, k), math.comb(n, k)) for n, c in counted],
    )


def check_pass_at_k(found: Row, scores: Scores) -> None:
    at_k, hat_k = by_combinations(scores, found["k"])
    assert found["items"] == len(at_k)
    for name, chances in (("pass_at_k", at_k), ("pass_hat_k", hat_k)):
        shares = [float(chance) for chance in chances]
        error = sem(shares) if len(shares) > 1 else None
        assert found[name] == pytest.approx(statistics.fmean(shares), abs=1e-12)
        assert found[f"{name}_se"] == pytest.approx(error, abs=1e-12)


@pytest.mark.parametrize("samples", [2, 5, 200])
def test_pass_at_k_is_that_of_combinations(db: duckdb.DuckDBPyConnection, samples: int) -> None:
    scores = chance_scores(20, samples, seed=samples)

    derived(db, Sampled(scores))

    found = rows_of(db, "from pass_at_k where slice = 'all' order by k")
    assert [row["k"] for row in found] == list(range(1, samples + 1))
    for row in found:
        check_pass_at_k(row, scores)


def test_pass_at_k_is_told_by_suite_and_category_too(db: duckdb.DuckDBPyConnection) -> None:
    derived(
        db,
        Sampled(
            [[1, 0], [1, 1], [0, 0]],
            suites=["one", "one", "two"],
            categories=["Math", "Physics", "Math"],
        ),
    )

    columns = "slice, suite, category, items, pass_at_k, pass_hat_k"
    found = rows_of(db, f"select {columns} from pass_at_k where k = 2 order by all")
    assert [tuple(row.values()) for row in found] == [
        ("all", None, None, 3, 2 / 3, 1 / 3),
        ("category", "one", "Math", 1, 1, 0),
        ("category", "one", "Physics", 1, 1, 1),
        ("category", "two", "Math", 1, 0, 0),
        ("suite", "one", None, 2, 1, 0.5),
        ("suite", "two", None, 1, 0, 0),
    ]


def test_a_run_of_single_samples_has_no_pass_at_k(db: duckdb.DuckDBPyConnection) -> None:
    derived(db, Sampled([[1], [0]]))

    assert rows_of(db, "from pass_at_k") == []


@hypothesis_settings(max_examples=8, deadline=None, database=None)
@given(runs=st.lists(SCORES, min_size=1, max_size=8))
def test_items_with_too_few_scores_for_k_are_left_out(
    db: duckdb.DuckDBPyConnection, runs: Sequence[Scores]
) -> None:
    all_derived(db, [Sampled(scores) for scores in runs], seed=0)

    for found in rows_of(db, "from pass_at_k where slice = 'all'"):
        check_pass_at_k(found, runs[int(found["model"][-2:])])


@pytest.mark.slow
@hypothesis_settings(max_examples=12, deadline=None, database=None)
@given(runs=st.lists(SCORES, min_size=1, max_size=8))
def test_more_draws_find_a_right_reply_no_less_often_and_are_all_right_no_more_often(
    db: duckdb.DuckDBPyConnection, runs: Sequence[Scores]
) -> None:
    complete = [
        Sampled([[score or 0.0 for score in samples] for samples in scores]) for scores in runs
    ]

    rows = all_derived(db, complete, seed=0)

    found = rows_of(db, "from pass_at_k where slice = 'all' order by model, k")
    for row in rows:
        of_run = [one for one in found if one["model"] == row["model"]]
        at_k, hat_k = ([one[name] for one in of_run] for name in ("pass_at_k", "pass_hat_k"))
        assert len(of_run) == (row["samples"] if row["samples"] > 1 else 0)
        assert at_k == pytest.approx(sorted(at_k))
        assert hat_k == pytest.approx(sorted(hat_k, reverse=True))
        assert [*at_k[:1], *hat_k[:1]] == pytest.approx([row["accuracy"]] * 2 * bool(of_run))

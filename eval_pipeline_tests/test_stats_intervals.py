"""Wilson's interval, against statsmodels, the macros in SQL, and a case worked out by hand."""

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from eval_pipeline.results.schema import create_schema
from eval_pipeline.results.stats.intervals import Interval, wilson

SHARES = [(0, 1), (1, 1), (0, 10), (3, 10), (10, 10), (1, 2500), (1249, 2500), (2.5, 7), (9.75, 10)]


@pytest.mark.parametrize(("hits", "n"), SHARES)
def test_wilson_is_that_of_statsmodels(hits: float, n: int) -> None:
    expected = proportion_confint(hits, n, method="wilson")

    assert wilson(hits, n) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("hits", "n"), SHARES)
def test_wilson_is_that_of_the_macros_in_sql(hits: float, n: int) -> None:
    with duckdb.connect() as db:
        create_schema(db)
        query = "select wilson_low($1::double, $2), wilson_high($1::double, $2)"
        expected = db.execute(query, [hits, n]).fetchone()

    assert wilson(hits, n) == pytest.approx(expected, abs=1e-15)


def test_wilson_of_one_of_two_by_hand() -> None:
    # With z = 1 the centre is (1 + 1/2) / 3 and the half width 1/3 * sqrt(1/2 + 1/4).
    assert wilson(1, 2, z=1) == pytest.approx(Interval(0.5 - 0.75**0.5 / 3, 0.5 + 0.75**0.5 / 3))


def test_a_share_of_nothing_has_no_interval() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("hits", "n"), [(-1, 4), (5, 4), (1, 0), (0, -1), (float("nan"), 4)])
def test_what_is_no_share_is_refused(hits: float, n: float) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(hits, n)


@settings(max_examples=200, deadline=None, database=None)
@given(st.integers(1, 10**7).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_share_is_inside_and_hits_mirror_misses(share: tuple[int, int]) -> None:
    hits, n = share

    found, mirrored = wilson(hits, n), wilson(n - hits, n)

    assert found and mirrored
    assert 0 <= found.low <= hits / n <= found.high <= 1
    assert found == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-12)

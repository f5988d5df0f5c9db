"""Agreement of judges, against scikit-learn and krippendorff, and by hand."""

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import duckdb
import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa as reference_kappa

from eval_pipeline.results.queries import run_file

Counts = Sequence[int]
TABLES = st.tuples(*[st.integers(0, 30)] * 4)
"""How many items both call correct, only the first, only the second, and neither."""
UNITS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=15).map(
    lambda units: [unit for unit in units if sum(unit) > 1]
)
"""By item the verdicts that call it wrong and correct, at least two of them."""


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        run_file(connection, "derive/agreement")
        yield connection


def of_counts(db: duckdb.DuckDBPyConnection, name: str, counts: Counts) -> float | None:
    """Return the value of the SQL function for these counts."""
    given = ", ".join(f"{one}::bigint" for one in counts)
    found: float | None = db.execute(f"select {name}({given})").fetchall()[0][0]
    return found


def of_units(db: duckdb.DuckDBPyConnection, name: str, units: Sequence[Counts]) -> float | None:
    """Return the value of the SQL function for these items, aggregated over the distinct ones."""
    rows = [(*unit, times) for unit, times in Counter(map(tuple, units)).items()]
    db.execute("create or replace temp table units (wrong bigint, correct bigint, items bigint)")
    if rows:
        db.executemany("insert into units values (?, ?, ?)", rows)
    (found,) = db.execute(f"select {name}(wrong, correct, items) from units").fetchall()
    rate: float | None = found[0]
    return rate


def labels_of(table: Counts) -> tuple[list[int], list[int]]:
    """What the two judges said, item by item."""
    pairs = [
        pair
        for pair, times in zip([(1, 1), (1, 0), (0, 1), (0, 0)], table, strict=True)
        for _ in range(times)
    ]
    return [first for first, _ in pairs], [second for _, second in pairs]


def test_kappa_by_hand(db: duckdb.DuckDBPyConnection) -> None:
    # Of 50 items both say yes to 20 and no to 15; by chance 25/50 * 30/50 + 25/50 * 20/50 = 1/2.
    table = [20, 5, 10, 15]

    assert of_counts(db, "cohens_kappa", table) == pytest.approx((0.7 - 0.5) / (1 - 0.5))


@settings(max_examples=60, deadline=None, database=None)
@given(table=TABLES)
def test_kappa_is_that_of_scikit_learn_and_statsmodels(
    db: duckdb.DuckDBPyConnection, table: Counts
) -> None:
    first, second = labels_of(table)
    assume(len({*first, *second}) > 1)

    found = of_counts(db, "cohens_kappa", table)

    assert found == pytest.approx(cohen_kappa_score(first, second))
    square = np.array(table).reshape(2, 2)
    assert found == pytest.approx(reference_kappa(square, return_results=False))


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        ([0, 0, 0, 0], None),
        ([9, 0, 0, 0], None),
        ([0, 9, 0, 0], 0),
        ([9, 3, 0, 0], 0),
        ([5, 0, 0, 5], 1),
        ([0, 5, 5, 0], -1),
        ([10**9, 0, 0, 10**9], 1),
    ],
)
def test_kappa_at_its_ends(
    db: duckdb.DuckDBPyConnection, table: Counts, kappa: float | None
) -> None:
    assert of_counts(db, "cohens_kappa", table) == kappa


@settings(max_examples=60, deadline=None, database=None)
@given(table=TABLES, times=st.integers(2, 50))
def test_kappa_does_not_depend_on_who_is_first_nor_on_scale(
    db: duckdb.DuckDBPyConnection, table: Counts, times: int
) -> None:
    both, first, second, neither = table

    expected = pytest.approx(of_counts(db, "cohens_kappa", table))
    assert of_counts(db, "cohens_kappa", [both, second, first, neither]) == expected
    assert of_counts(db, "cohens_kappa", [neither, second, first, both]) == expected
    assert of_counts(db, "cohens_kappa", [times * one for one in table]) == expected


def test_alpha_by_hand(db: duckdb.DuckDBPyConnection) -> None:
    # Coincidences of two judges: yes-yes 4, no-no 2, yes-no 2 (each pair both ways): 5 and 3 of 8.
    units = [(2, 0), (2, 0), (0, 2), (1, 1)]

    observed, expected = 2 / 8, 2 * 5 * 3 / (8 * 7)
    assert of_units(db, "krippendorffs_alpha", units) == pytest.approx(1 - observed / expected)


@settings(max_examples=60, deadline=None, database=None)
@given(units=UNITS)
def test_alpha_is_that_of_the_package_of_its_name(
    db: duckdb.DuckDBPyConnection, units: list[Counts]
) -> None:
    assume(units and all(np.array(units).sum(axis=0)))

    expected = krippendorff.alpha(value_counts=np.array(units), level_of_measurement="nominal")

    assert of_units(db, "krippendorffs_alpha", units) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("units", "alpha"),
    [([], None), ([(3, 0), (2, 0)], None), ([(3, 0), (0, 2)], 1)],
)
def test_alpha_at_its_ends(
    db: duckdb.DuckDBPyConnection, units: list[Counts], alpha: float | None
) -> None:
    assert of_units(db, "krippendorffs_alpha", units) == alpha


@settings(max_examples=60, deadline=None, database=None)
@given(units=UNITS, random=st.randoms())
def test_alpha_depends_on_the_order_of_neither_items_nor_labels(
    db: duckdb.DuckDBPyConnection, units: list[Counts], random: Random
) -> None:
    shuffled = list(units)
    random.shuffle(shuffled)

    expected = pytest.approx(of_units(db, "krippendorffs_alpha", units))
    assert of_units(db, "krippendorffs_alpha", shuffled) == expected
    assert of_units(db, "krippendorffs_alpha", [unit[::-1] for unit in units]) == expected


@settings(max_examples=60, deadline=None, database=None)
@given(verdicts=st.lists(st.tuples(st.booleans(), st.integers(2, 9)), min_size=2, max_size=20))
def test_alpha_of_judges_who_always_agree_is_1(
    db: duckdb.DuckDBPyConnection, verdicts: list[tuple[bool, int]]
) -> None:
    assume(len({correct for correct, _ in verdicts}) > 1)
    units = [(0, times) if correct else (times, 0) for correct, times in verdicts]

    assert of_units(db, "krippendorffs_alpha", units) == 1
    assert of_units(db, "flicker_rate", units) == 0
    assert of_units(db, "pairwise_disagreement", units) == 0


def test_flicker_by_hand(db: duckdb.DuckDBPyConnection) -> None:
    # Two of the three items that were judged again flicker: 2 of 3 pairs of one, 3 of 6 of another.
    units = [(2, 1), (5, 0), (3, 1)]

    assert of_units(db, "flicker_rate", units) == pytest.approx(2 / 3)
    disagreement = of_units(db, "pairwise_disagreement", units)
    assert disagreement == pytest.approx((2 / 3 + 0 + 3 / 6) / 3)


@settings(max_examples=60, deadline=None, database=None)
@given(table=TABLES)
def test_two_verdicts_each_disagree_as_often_as_they_flicker(
    db: duckdb.DuckDBPyConnection, table: Counts
) -> None:
    assume(any(table))
    units = [
        (2 - correct, correct)
        for correct in (first + second for first, second in zip(*labels_of(table), strict=True))
    ]

    differing = (table[1] + table[2]) / sum(table)

    assert of_units(db, "flicker_rate", units) == pytest.approx(differing)
    assert of_units(db, "pairwise_disagreement", units) == pytest.approx(differing)


@pytest.mark.parametrize("name", ["flicker_rate", "pairwise_disagreement"])
def test_nothing_judged_again_has_no_rate(db: duckdb.DuckDBPyConnection, name: str) -> None:
    assert of_units(db, name, []) is None


@pytest.mark.parametrize(
    ("counts", "rate"), [([30, 10], 0.75), ([0, 7], 1), ([2, 2], 0.5), ([0, 0], None)]
)
def test_base_rate_is_the_share_of_the_commoner_verdict(
    db: duckdb.DuckDBPyConnection, counts: Counts, rate: float | None
) -> None:
    assert of_counts(db, "base_rate", counts) == rate

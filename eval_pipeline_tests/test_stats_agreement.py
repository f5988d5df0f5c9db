"""Agreement of judges, against scikit-learn and krippendorff, and by hand."""

from random import Random

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix
from statsmodels.stats.inter_rater import cohens_kappa as reference_kappa
from statsmodels.stats.proportion import proportion_confint

from eval_pipeline.results.stats.agreement import (
    Confusion,
    base_rate,
    cohens_kappa,
    flicker_rate,
    krippendorffs_alpha,
    pairwise_disagreement,
    raw_agreement,
)

TABLES = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 30), min_size=n, max_size=n), min_size=n, max_size=n)
)
UNITS = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 5), min_size=n, max_size=n), min_size=1, max_size=15)
)
PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def labels_of(table: list[list[int]]) -> tuple[list[int], list[int]]:
    """What the two judges said, item by item."""
    cells = [(row, column) for row, line in enumerate(table) for column, _ in enumerate(line)]
    pairs = [cell for cell in cells for _ in range(table[cell[0]][cell[1]])]
    return [row for row, _ in pairs], [column for _, column in pairs]


def test_kappa_by_hand() -> None:
    # Of 50 items both say yes to 20 and no to 15; by chance 25/50 * 30/50 + 25/50 * 20/50 = 1/2.
    table = [[20, 5], [10, 15]]

    assert raw_agreement(table) == pytest.approx(0.7)
    assert cohens_kappa(table) == pytest.approx((0.7 - 0.5) / (1 - 0.5))
    assert base_rate(table) == pytest.approx(0.6)


@settings(max_examples=60, deadline=None, database=None)
@given(TABLES)
def test_kappa_is_that_of_scikit_learn_and_statsmodels(table: list[list[int]]) -> None:
    first, second = labels_of(table)
    assume(len({*first, *second}) > 1)

    found = cohens_kappa(table)

    assert found == pytest.approx(cohen_kappa_score(first, second))
    assert found == pytest.approx(reference_kappa(np.array(table), return_results=False))
    assert raw_agreement(table) == pytest.approx(accuracy_score(first, second))


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        ([[0, 0], [0, 0]], None),
        ([[9, 0], [0, 0]], None),
        ([[0, 9], [0, 0]], 0),
        ([[9, 3], [0, 0]], 0),
        ([[5, 0], [0, 5]], 1),
        ([[0, 5], [5, 0]], -1),
        ([[10**9, 0], [0, 10**9]], 1),
    ],
)
def test_kappa_at_its_ends(table: list[list[int]], kappa: float | None) -> None:
    assert cohens_kappa(table) == kappa


@settings(max_examples=60, deadline=None, database=None)
@given(TABLES, st.integers(2, 50))
def test_kappa_does_not_depend_on_who_is_first_nor_on_scale(
    table: list[list[int]], times: int
) -> None:
    counts = np.array(table)

    expected = pytest.approx(cohens_kappa(counts))
    assert cohens_kappa(counts.T) == expected
    assert cohens_kappa(counts[::-1, ::-1]) == expected
    assert cohens_kappa(counts * times) == expected


def test_alpha_by_hand() -> None:
    # Coincidences of two judges: yes-yes 4, no-no 2, yes-no 2 (each pair both ways): 5 and 3 of 8.
    units = [[2, 0], [2, 0], [0, 2], [1, 1]]

    observed, expected = 2 / 8, 2 * 5 * 3 / (8 * 7)
    assert krippendorffs_alpha(units) == pytest.approx(1 - observed / expected)


@settings(max_examples=60, deadline=None, database=None)
@given(UNITS)
def test_alpha_is_that_of_the_package_of_its_name(units: list[list[int]]) -> None:
    counts = np.array(units)
    repeated = counts[counts.sum(axis=1) > 1]
    assume((repeated.sum(axis=0) > 0).sum() > 1)

    expected = krippendorff.alpha(value_counts=repeated, level_of_measurement="nominal")

    assert krippendorffs_alpha(units) == pytest.approx(expected)


def test_alpha_is_that_of_ratings_with_gaps() -> None:
    # The four observers and twelve units with which Krippendorff himself explains it.
    gap = np.nan
    ratings = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
            [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
        ]
    )
    units = [[(unit == label).sum() for label in range(1, 6)] for unit in ratings.T]

    expected = krippendorff.alpha(reliability_data=ratings, level_of_measurement="nominal")

    assert krippendorffs_alpha(units) == pytest.approx(expected)
    assert krippendorffs_alpha(units) == pytest.approx(0.743, abs=5e-4)


@pytest.mark.parametrize(
    ("units", "alpha"),
    [
        ([], None),
        ([[1, 0], [0, 1]], None),
        ([[3, 0], [2, 0]], None),
        ([[3, 0], [0, 2]], 1),
        ([[3, 0], [0, 2], [1, 0], [0, 0]], 1),
    ],
)
def test_alpha_at_its_ends(units: list[list[int]], alpha: float | None) -> None:
    assert krippendorffs_alpha(units) == alpha


@settings(max_examples=60, deadline=None, database=None)
@given(UNITS, st.randoms())
def test_alpha_depends_on_the_order_of_neither_items_nor_labels(
    units: list[list[int]], random: Random
) -> None:
    shuffled = list(units)
    random.shuffle(shuffled)

    expected = pytest.approx(krippendorffs_alpha(units))
    assert krippendorffs_alpha(shuffled) == expected
    assert krippendorffs_alpha([unit[::-1] for unit in units]) == expected


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(2, 9)), min_size=2, max_size=20))
def test_alpha_of_judges_who_always_agree_is_1(verdicts: list[tuple[int, int]]) -> None:
    assume(len({label for label, _ in verdicts}) > 1)
    units = np.array([np.eye(4, dtype=int)[label] * times for label, times in verdicts])

    assert krippendorffs_alpha(units) == 1
    assert flicker_rate(units) == pairwise_disagreement(units) == 0


def test_flicker_by_hand() -> None:
    # Two of the three items that were judged again flicker: 2 of 3 pairs of one, 3 of 6 of another.
    units = [[2, 1], [5, 0], [3, 1], [1, 0], [0, 0]]

    assert flicker_rate(units) == pytest.approx(2 / 3)
    assert pairwise_disagreement(units) == pytest.approx((2 / 3 + 0 + 3 / 6) / 3)


@settings(max_examples=60, deadline=None, database=None)
@given(TABLES)
def test_two_verdicts_each_disagree_as_often_as_they_flicker(table: list[list[int]]) -> None:
    first, second = labels_of(table)
    assume(first)
    labels = np.eye(len(table), dtype=int)
    units = labels[first] + labels[second]

    agreed = raw_agreement(table)

    assert agreed is not None
    assert flicker_rate(units) == pairwise_disagreement(units) == pytest.approx(1 - agreed)


@pytest.mark.parametrize("units", [[], [[0, 0]], [[1, 0], [0, 1]]])
def test_nothing_judged_again_has_no_rate(units: list[list[int]]) -> None:
    assert flicker_rate(units) is None
    assert pairwise_disagreement(units) is None


@pytest.mark.parametrize(
    ("counts", "rate"),
    [([30, 10], 0.75), ([0, 7], 1), ([[2, 1], [0, 1]], 0.5), ([0, 0], None), ([], None)],
)
def test_base_rate_is_the_share_of_the_commonest_label(
    counts: list[int] | list[list[int]], rate: float | None
) -> None:
    assert base_rate(counts) == rate


def test_a_confusion_by_hand() -> None:
    found = Confusion(tp=40, fp=5, tn=45, fn=10)

    assert (found.tpr, found.tnr, found.accuracy, found.items) == (0.8, 0.9, 0.85, 100)
    assert cohens_kappa(found.table) == pytest.approx((0.85 - 0.5) / 0.5)


@settings(max_examples=60, deadline=None, database=None)
@given(PAIRS)
def test_a_confusion_is_that_of_scikit_learn(pairs: list[tuple[bool, bool]]) -> None:
    truth, verdicts = zip(*pairs, strict=True)

    found = Confusion(
        tp=pairs.count((True, True)),
        fp=pairs.count((False, True)),
        tn=pairs.count((False, False)),
        fn=pairs.count((True, False)),
    )

    expected = confusion_matrix(truth, verdicts, labels=[True, False])
    assert found.table == expected.tolist()
    assert found.accuracy == pytest.approx(accuracy_score(truth, verdicts))


def test_the_intervals_of_a_confusion_are_those_of_wilson() -> None:
    found = Confusion(tp=40, fp=5, tn=45, fn=10)

    assert found.tpr_interval == pytest.approx(proportion_confint(40, 50, method="wilson"))
    assert found.tnr_interval == pytest.approx(proportion_confint(45, 50, method="wilson"))


@pytest.mark.parametrize(
    ("found", "unknown"),
    [
        (Confusion(0, 0, 0, 0), {"tpr", "tnr", "accuracy"}),
        (Confusion(tp=3, fp=0, tn=0, fn=1), {"tnr"}),
        (Confusion(tp=0, fp=0, tn=4, fn=0), {"tpr"}),
    ],
)
def test_a_share_of_nothing_is_unknown_and_not_0(found: Confusion, unknown: set[str]) -> None:
    names = ["tpr", "tnr", "accuracy"]

    assert {name for name in names if getattr(found, name) is None} == unknown
    assert (found.tpr_interval is None, found.tnr_interval is None) == (
        "tpr" in unknown,
        "tnr" in unknown,
    )


@pytest.mark.parametrize("wrong", [[1, 2], [[1, 2, 3], [4, 5, 6]], [[1, -1], [0, 1]], [[0.5]]])
def test_what_is_no_table_is_refused(wrong: list[list[float]]) -> None:
    with pytest.raises(ValueError, match=r"row|rows"):
        cohens_kappa(wrong)

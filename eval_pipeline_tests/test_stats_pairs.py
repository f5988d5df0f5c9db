"""Paired comparisons and their p-values, against scipy and statsmodels, and by hand."""

from itertools import product
from math import sqrt
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.api import OLS
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar

from eval_pipeline.results.stats.intervals import Interval
from eval_pipeline.results.stats.pairs import (
    Paired,
    compare,
    compare_clusters,
    holm,
    mcnemar,
    sign_flip,
)
from eval_pipeline_tests.references import holm_of_statsmodels

HALVES = [-1.0, -0.5, 0.0, 0.5, 1.0]
COUNTS = st.lists(st.integers(0, 40), min_size=5, max_size=5).filter(any)
SIZES = st.one_of(st.sampled_from([0.25, 1 / 3, 0.5, 2 / 3, 1.0]), st.floats(0.01, 1))
P_VALUES = st.lists(st.floats(0, 1), max_size=30)


def of_items(differences: list[float], *, binary: bool = False) -> Paired:
    """The comparison over items that have one difference each."""
    return compare(differences, [1] * len(differences), binary=binary, seed=1)


def mirrored(interval: Interval | None) -> Interval | None:
    return interval and Interval(0.0 - interval.high, 0.0 - interval.low)


def by_all_flips(differences: list[float]) -> float:
    """The share of all choices of signs whose sum is as far from 0 as that of these."""
    signs = np.array(list(product([-1, 1], repeat=len(differences))))
    sums = np.abs(signs @ np.array(differences))
    return float((sums >= abs(sum(differences)) - 1e-9).mean())


def test_a_comparison_by_hand() -> None:
    # Five items: better on three, worse on one. Mean 2/5, deviations .6 .6 .6 -.4 -1.4.
    found = compare([1, 0, -1], [3, 1, 1], binary=True, seed=1)

    error = sqrt((3 * 0.36 + 0.16 + 1.96) / 4 / 5)
    assert found[:3] == pytest.approx((5, 0.4, error))
    assert (found.better, found.worse, found.test) == (3, 1, "mcnemar")
    assert found.p_value == pytest.approx(2 * (1 + 4) / 16)
    assert found.detectable() == pytest.approx((1.959963985 + 0.841621234) * error)
    # Half an item more of each kind: 3.5 better, 1.5 worse, of 7.
    half = 1.959963985 * sqrt(3.5 + 1.5 - 2 * 2 / 7) / 7
    assert found.interval == pytest.approx((2 / 7 - half, 2 / 7 + half))
    assert found.bootstrap and -0.4 <= found.bootstrap.low <= 0.4 <= found.bootstrap.high <= 1


def test_error_and_interval_are_those_of_scipy() -> None:
    counts = [20, 60, 300, 80, 40]
    items = np.repeat(HALVES, counts)
    expected = stats.bootstrap(
        (items,), np.mean, method="percentile", n_resamples=4000, batch=500, rng=7
    )

    found = compare(HALVES, counts, binary=False, seed=1)

    assert found.standard_error == pytest.approx(stats.sem(items))
    # Ends of 2,000 and 4,000 draws differ by 0.07 standard errors on average.
    near = 0.3 * stats.sem(items)
    assert found.interval == found.bootstrap
    assert found.bootstrap == pytest.approx(tuple(expected.confidence_interval), abs=near)


def test_the_detectable_difference_is_found_in_80_of_100_cases() -> None:
    found = compare([-1, 0, 1], [200, 1000, 250], binary=True, seed=1)

    detectable, among_many = found.detectable(), found.detectable(pairs=1770)
    assert detectable and among_many and found.standard_error
    for level, shift in ((0.05, detectable), (0.05 / 1770, among_many)):
        shifted = shift / found.standard_error
        assert stats.norm.sf(stats.norm.isf(level / 2), loc=shifted) == pytest.approx(0.8)


def test_without_any_difference_nothing_is_detectable() -> None:
    found = compare([0], [40], binary=True, seed=1)

    assert (found.p_value, found.detectable(), found.bootstrap) == (1.0, None, None)
    assert found.interval and found.interval.low < 0 < found.interval.high


@pytest.mark.parametrize(("better", "worse", "items"), [(4, 1, 140), (5, 1, 40), (30, 12, 140)])
def test_the_interval_of_right_and_wrong_covers_and_does_not_contradict_the_test(
    better: int, worse: int, items: int
) -> None:
    shares = np.array([better, worse, items - better - worse]) / items
    covered, contradicted = 0, 0
    for number, drawn in enumerate(np.random.default_rng(1).multinomial(items, shares, size=400)):
        found = compare([1, -1, 0], drawn, binary=True, seed=number)
        assert found.interval
        covered += found.interval.low <= shares[0] - shares[1] <= found.interval.high
        contradicted += not found.interval.low <= 0 <= found.interval.high and found.p_value > 0.15

    assert covered >= 0.93 * 400
    assert contradicted == 0


def test_clusters_are_drawn_and_flipped_as_a_whole() -> None:
    # Ten clusters of four; in three of them the first is better on every item.
    differences, clusters = np.repeat([1.0] * 3 + [0.0] * 7, 4), np.repeat(np.arange(10), 4)

    alone = of_items(differences.tolist())
    found = compare_clusters(differences, clusters, seed=1)

    assert (found.items, found.difference, found.better) == (40, 0.3, 12)
    assert found.p_value == pytest.approx(2 / 2**3) and alone.p_value < 0.001
    assert found.interval and alone.interval
    assert found.interval.low == 0 < alone.interval.low
    expected = OLS(differences, np.ones(40)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}
    )
    assert found.standard_error == pytest.approx(float(expected.bse[0]) * sqrt(10 / 9))


def test_clusters_of_one_item_are_compared_like_items() -> None:
    differences = np.repeat(HALVES, [20, 60, 300, 80, 40])

    found = compare_clusters(differences, np.arange(500), seed=1)
    expected = compare(HALVES, [20, 60, 300, 80, 40], binary=False, seed=1)

    assert found.p_value == pytest.approx(expected.p_value)
    assert found.standard_error == pytest.approx(expected.standard_error)
    assert expected.standard_error and found.interval
    near = 0.3 * expected.standard_error
    assert found.interval == pytest.approx(expected.interval, abs=near)


@settings(max_examples=40, deadline=None, database=None)
@given(st.lists(st.tuples(st.sampled_from(HALVES), st.integers(0, 4)), min_size=1, max_size=20))
def test_swapped_models_mirror_the_comparison_of_clusters(items: list[tuple[float, int]]) -> None:
    differences = np.array([value for value, _ in items])
    _, clusters = np.unique([cluster for _, cluster in items], return_inverse=True)

    there = compare_clusters(differences, clusters, seed=1)
    back = compare_clusters(-differences, clusters, seed=1)

    assert there.difference == -back.difference
    assert (there.p_value, there.better) == (back.p_value, back.worse)
    if differences.sum():
        assert back.interval == mirrored(there.interval)


@pytest.mark.parametrize(
    ("better", "worse"),
    [(0, 0), (1, 0), (5, 5), (9, 2), (6, 5), (18, 8), (0, 60), (700, 611), (20_100, 19_800)],
)
def test_mcnemar_is_that_of_statsmodels_and_the_binomial_test(better: int, worse: int) -> None:
    expected = reference_mcnemar([[7, better], [worse, 9]], exact=True).pvalue if better else 1.0
    binomial = stats.binomtest(better, better + worse).pvalue if better + worse else 1.0

    found = mcnemar(better, worse)

    assert found == pytest.approx(binomial, rel=1e-8)
    if better:
        assert found == pytest.approx(expected, rel=1e-8)


def test_mcnemar_of_the_most_lopsided_items_is_0_and_no_error() -> None:
    assert mcnemar(50_000, 0) == 0.0
    assert mcnemar(30_000, 20_000) < 1e-300


@pytest.mark.parametrize(
    "differences",
    [
        [1.0, 1.0, -1.0, 0.0, 0.0, 1.0, 1.0],
        [0.5, 1.0, -0.5, 0.5, 0.0, 1.0, -1.0, 0.5, 0.5],
        [1 / 3, 2 / 3, -1 / 3, 2 / 3 - 1 / 3, 1.0, 1 / 3, -2 / 3],
        [0.31, 0.17, -0.05, 0.44, 0.29, -0.13, 0.02, 0.61],
        [-0.9, -0.8, -0.75, -0.3],
    ],
)
def test_sign_flip_is_the_exact_permutation_test_of_scipy(differences: list[float]) -> None:
    sides = (np.array(differences), np.zeros(len(differences)))
    expected = stats.permutation_test(
        sides, lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=np.inf
    )

    found = sign_flip(differences, [1] * len(differences))

    assert found == pytest.approx(expected.pvalue)


def test_sign_flip_by_hand() -> None:
    # Of the 8 sums of 1, 1/2 and 1/2 with any signs, 2 and -2 are as far from 0 as 2.
    assert sign_flip([1.0, 0.5], [1, 2]) == pytest.approx(2 / 8)
    # 1 - 1/2 + 1/2 = 1 is reached or passed by 2, 1, 1 and their negatives.
    assert sign_flip([1.0, 0.5, -0.5], [1, 1, 1]) == pytest.approx(6 / 8)


def test_sign_flip_is_exact_for_25_differences_of_any_size() -> None:
    sizes = np.random.default_rng(4).uniform(0.01, 1, size=25)
    signs = np.where(np.arange(25) % 3 == 0, -1, 1)
    flips = np.random.default_rng(5).choice([-1, 1], size=(200_000, 25))
    simulated = (np.abs(flips @ sizes) >= abs(signs @ sizes)).mean()

    found = sign_flip(sizes * signs, [1] * 25)

    assert found == pytest.approx(simulated, abs=0.004)
    assert found * 2**25 == pytest.approx(round(found * 2**25), abs=1e-3)


def test_sign_flip_of_many_sizes_takes_the_sum_to_be_normal() -> None:
    differences = np.random.default_rng(4).normal(0.2, 1, size=100)
    z = differences.sum() / np.sqrt((differences**2).sum())
    flips = np.random.default_rng(5).choice([-1, 1], size=(100_000, 100))
    simulated = (np.abs(flips @ differences) >= abs(differences.sum())).mean()

    found = sign_flip(differences, [1] * 100)

    assert found == pytest.approx(2 * stats.norm.sf(abs(z)))
    assert found == pytest.approx(simulated, abs=0.01)


@settings(max_examples=40, deadline=None, database=None)
@given(st.lists(st.tuples(SIZES, st.sampled_from([-1, 0, 1])), min_size=1, max_size=10))
def test_sign_flip_counts_all_flips(differences: list[tuple[float, int]]) -> None:
    signed = [size * sign for size, sign in differences]

    assert sign_flip(signed, [1] * len(signed)) == pytest.approx(by_all_flips(signed))


@settings(max_examples=100, deadline=None, database=None)
@given(st.integers(0, 4000), st.integers(0, 4000))
def test_sign_flip_of_ones_is_mcnemar(better: int, worse: int) -> None:
    found = sign_flip([1.0, -1.0, 0.0], [better, worse, 3])

    assert found == pytest.approx(mcnemar(better, worse), rel=1e-8)


def test_p_values_of_equal_models_are_small_as_rarely_as_they_say() -> None:
    drawn = np.random.default_rng(8).multinomial(60, [0.1, 0.2, 0.4, 0.2, 0.1], size=400)

    p_values = np.array([sign_flip(HALVES, counts) for counts in drawn])

    for level in (0.01, 0.05, 0.2):
        most = stats.binom.isf(0.001, 400, level) / 400
        assert (p_values <= level).mean() <= most


@settings(max_examples=80, deadline=None, database=None)
@given(COUNTS, st.integers(0, 99))
def test_swapped_models_mirror_the_comparison(counts: list[int], seed: int) -> None:
    there = compare(HALVES, counts, binary=False, seed=seed)
    back = compare(HALVES, counts[::-1], binary=False, seed=seed)

    assert there == Paired(
        items=back.items,
        difference=-back.difference,
        standard_error=back.standard_error,
        interval=mirrored(back.interval),
        bootstrap=mirrored(back.bootstrap),
        better=back.worse,
        worse=back.better,
        p_value=back.p_value,
        test=back.test,
    )


@settings(max_examples=80, deadline=None, database=None)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_what_holds_for_any_comparison(differences: list[float]) -> None:
    found = of_items(differences)

    assert 0 <= found.p_value <= 1
    assert (found.bootstrap is None) is (len(set(np.round(differences, 14))) == 1)
    if found.bootstrap is not None:
        assert found.bootstrap.low <= found.difference <= found.bootstrap.high
    assert found.difference == pytest.approx(np.mean(differences), abs=1e-12)
    assert found.items == len(differences) >= found.better + found.worse
    assert (found.standard_error is None) is (found.items == 1)
    assert (not found.standard_error) is (found.detectable() is None)
    assert of_items(differences[::-1]) == found


def test_many_times_the_items_make_the_same_difference_significant() -> None:
    few = compare(HALVES, [1, 1, 6, 2, 1], binary=False, seed=1)
    many = compare(HALVES, [100, 100, 600, 200, 100], binary=False, seed=1)

    assert few.difference == pytest.approx(many.difference)
    assert few.p_value > 0.5 and many.p_value < 0.01
    assert few.standard_error and many.standard_error
    assert few.standard_error / many.standard_error == pytest.approx(10, rel=0.06)


def test_differences_that_are_0_but_for_rounding_are_no_differences() -> None:
    found = of_items([0.1 + 0.2 - 0.3, 1 / 3 + 1 / 3 - 2 / 3, 0.3 - 0.2 - 0.1])

    assert (found.difference, found.better, found.worse, found.p_value) == (0, 0, 0, 1)


def test_as_often_better_as_worse_has_a_symmetric_interval() -> None:
    found = compare(HALVES, [3, 8, 20, 8, 3], binary=False, seed=1)

    assert found.interval and found.interval.low == -found.interval.high < 0
    assert (found.difference, found.p_value) == (0, 1)


def test_equal_models_have_no_difference_and_no_negative_zero() -> None:
    found = compare([-0.0], [7], binary=True, seed=1)

    half = 1.959963985 * sqrt(0.5 + 0.5) / 9
    assert found[:3] == (7, 0, 0)
    assert found.interval == pytest.approx((-half, half))
    assert found[4:] == (None, 0, 0, 1, "mcnemar")
    assert "-0" not in repr(found[:3])


def test_one_item_has_no_error() -> None:
    found = of_items([1.0], binary=True)

    assert (found.standard_error, found.detectable(), found.p_value) == (None, None, 1)


@pytest.mark.parametrize(
    ("values", "counts", "binary", "said"),
    [
        ([], [], False, "share no item"),
        ([0.0], [0], True, "share no item"),
        ([0.5, 1.0], [1, 1], True, "-1, 0 or 1"),
        ([float("nan")], [1], False, "finite"),
    ],
)
def test_what_can_not_be_compared_is_refused(
    values: list[float], counts: list[int], binary: bool, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        compare(values, counts, binary=binary, seed=1)


def cpu_of_comparing(items: int) -> float:
    drawn = np.random.default_rng(1).multinomial(items, [0.05, 0.1, 0.65, 0.12, 0.08], size=60)
    started = process_time()
    for number, counts in enumerate(drawn):
        compare(HALVES, counts, binary=False, seed=number)
    return process_time() - started


def test_a_hundred_times_the_items_take_nowhere_near_a_hundred_times_as_long() -> None:
    cpu_of_comparing(2_500)  # what is loaded on first use counts for neither

    assert cpu_of_comparing(250_000) < 20 * cpu_of_comparing(2_500)


def test_holm_by_hand() -> None:
    # Sorted .01 .02 .04: times 3, 2 and 1, each at least as large as the one before.
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, 0.6]) == [1, 1]
    assert holm([]) == []


@settings(max_examples=100, deadline=None, database=None)
@given(P_VALUES.filter(bool))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(holm_of_statsmodels(p_values))


@settings(max_examples=100, deadline=None, database=None)
@given(P_VALUES)
def test_holm_keeps_the_order_and_never_lowers(p_values: list[float]) -> None:
    adjusted = holm(p_values)

    assert all(raw <= one <= 1 for raw, one in zip(p_values, adjusted, strict=True))
    by_raw = [one for _, one in sorted(zip(p_values, adjusted, strict=True))]
    assert by_raw == sorted(by_raw)
    assert holm(p_values[::-1]) == adjusted[::-1]


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_holm_refuses_what_is_no_p_value(wrong: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        holm([0.5, wrong])

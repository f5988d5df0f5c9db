"""The bootstrap of a mean, against scipy's, the exact multinomial, and what must always hold."""

import subprocess
import sys
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from eval_pipeline.results.stats.bootstrap import (
    bootstrap_interval,
    bootstrap_means,
    sample_of,
    seed_of,
)

LOTS = 200_000
COARSE = ([0.0, 0.5, 1.0], [40, 25, 60])
UNEVEN = ([0.0, 0.123456789, 0.7071067811, 1.0], [40, 25, 10, 60])
MANY = ([0.0, 1.0], [900, 1600])
RARE = ([-1.0, 0.0, 1 / 3], [1, 2400, 7])
SAMPLES = st.dictionaries(
    st.one_of(st.sampled_from([-1.0, -0.5, 0.0, 1 / 3, 2 / 3, 1.0]), st.floats(-1, 1)),
    st.integers(1, 500),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("sample", [COARSE, UNEVEN, MANY], ids=["lattice", "any", "many"])
def test_the_interval_is_that_of_scipy(sample: tuple[list[float], list[int]]) -> None:
    items = np.repeat(*sample)
    expected = stats.bootstrap(
        (items,), np.mean, method="percentile", n_resamples=4000, batch=500, rng=7
    )

    found = bootstrap_interval(sample_of(*sample), seed=1, draws=LOTS)

    # An end of 4,000 draws, as scipy's here, is off by 0.04 standard errors on average.
    near = 0.2 * expected.standard_error
    assert found == pytest.approx(tuple(expected.confidence_interval), abs=near)


@pytest.mark.parametrize(("wrong", "right"), [(900, 1600), (15, 5), (2490, 10)])
def test_the_ends_of_zeros_and_ones_are_those_of_the_binomial(wrong: int, right: int) -> None:
    items = wrong + right
    expected = stats.binom.ppf([0.025, 0.975], items, right / items) / items

    found = bootstrap_interval(sample_of([0, 1], [wrong, right]), seed=1, draws=LOTS)

    assert found == pytest.approx(tuple(expected), abs=1.01 / items)


@pytest.mark.parametrize("sample", [COARSE, UNEVEN, MANY, RARE])
def test_the_means_have_the_mean_and_the_error_of_the_sample(
    sample: tuple[list[float], list[int]],
) -> None:
    items = np.repeat(*sample)

    means = bootstrap_means(sample_of(*sample), seed=3, draws=LOTS)

    error = items.std() / np.sqrt(len(items))
    assert means.mean() == pytest.approx(items.mean(), abs=5 * error / np.sqrt(LOTS))
    assert means.std() == pytest.approx(error, rel=0.02)


@pytest.mark.parametrize("top", [1.0, 0.7071067811], ids=["lattice", "any"])
def test_the_means_of_a_small_sample_come_as_often_as_the_multinomial_says(top: float) -> None:
    counts = [2, 1, 3]
    size = sum(counts)
    chances = dict[float, float]()
    for a, b in product(range(size + 1), repeat=2):
        if (c := size - a - b) >= 0:
            mean = round((b * 0.25 + c * top) / size, 9)
            chance = comb(size, a) * comb(size - a, b) * 2**a * 1**b * 3**c / size**size
            chances[mean] = chances.get(mean, 0.0) + chance

    means, drawn = np.unique(
        bootstrap_means(sample_of([0.0, 0.25, top], counts), seed=5, draws=LOTS).round(9),
        return_counts=True,
    )

    assert set(means.tolist()) <= set(chances)
    often = dict(zip(means.tolist(), drawn.tolist(), strict=True))
    likely = {mean: chance for mean, chance in chances.items() if chance * LOTS > 10}
    found = [often.get(mean, 0) for mean in likely]
    chi = stats.chisquare(found, [c * sum(found) / sum(likely.values()) for c in likely.values()])
    assert chi.pvalue > 0.001


def test_hand_computed_ends_of_two_items() -> None:
    # 0 and 1 are drawn as 00, 01, 10, 11: a quarter of the means is 0 and a quarter is 1.
    assert bootstrap_interval(sample_of([0, 1], [1, 1]), seed=1) == (0, 1)
    assert bootstrap_interval(sample_of([0, 1], [1, 1]), seed=1, level=0.4) == (0.5, 0.5)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 0.7071067811])
def test_a_sample_of_equal_values_has_an_interval_without_width(value: float) -> None:
    low, high = bootstrap_interval(sample_of([value], [17]), seed=1)

    assert low <= value <= high
    assert high - low < 1e-15


def test_the_interval_is_valid_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(11)
    hits = rng.binomial(200, 0.4, size=400)

    found = [bootstrap_interval(sample_of([0, 1], [200 - one, one]), seed=int(one)) for one in hits]

    assert 0.91 < np.mean([low <= 0.4 <= high for low, high in found]) < 0.98


def test_a_wider_level_makes_a_wider_interval() -> None:
    narrow, wide = (
        bootstrap_interval(sample_of(*COARSE), seed=1, level=level) for level in (0.8, 0.99)
    )

    assert wide.low < narrow.low < narrow.high < wide.high


def test_ten_times_the_items_narrow_the_interval_by_the_root_of_ten() -> None:
    values, counts = COARSE

    few = bootstrap_interval(sample_of(values, counts), seed=1)
    more = bootstrap_interval(sample_of(values, [10 * one for one in counts]), seed=1)

    assert (few.high - few.low) / (more.high - more.low) == pytest.approx(10**0.5, rel=0.1)


def test_sums_too_many_to_list_are_drawn_all_the_same() -> None:
    values, counts = [0.0, 1 / 59, 1.0], [10**7, 10**6, 10**7]

    means = bootstrap_means(sample_of(values, counts), seed=1)

    expected = np.average(values, weights=counts)
    assert means.mean() == pytest.approx(expected, abs=1e-5)
    assert means.std() == pytest.approx(0.5 / np.sqrt(2.1e7), rel=0.1)


@settings(max_examples=60, deadline=None, database=None)
@given(SAMPLES, st.integers(0, 2**64 - 1))
def test_the_same_sample_in_another_order_has_the_same_means(
    sample: dict[float, int], seed: int
) -> None:
    values, counts = list(sample), list(sample.values())
    split = [*values[::-1], values[0], 0.75], [*counts[::-1], 0, 0]

    found = bootstrap_means(sample_of(values, counts), seed=seed)

    assert np.array_equal(found, bootstrap_means(sample_of(*split), seed=seed))


@settings(max_examples=60, deadline=None, database=None)
@given(SAMPLES)
def test_the_mean_is_in_its_interval_and_that_among_the_values(sample: dict[float, int]) -> None:
    values, counts = list(sample), list(sample.values())

    low, high = bootstrap_interval(sample_of(values, counts), seed=1)

    mean = np.average(values, weights=counts)
    assert min(values) - 1e-9 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= max(values) + 1e-9


def test_another_seed_draws_otherwise() -> None:
    one, other, several = (
        bootstrap_means(sample_of(*COARSE), seed=seed) for seed in (1, 2, [1, 2])
    )

    assert not np.array_equal(one, other)
    assert not np.array_equal(one, several)


@pytest.mark.parametrize(
    ("values", "counts", "said"),
    [
        ([], [], "empty"),
        ([1.0], [0], "empty"),
        ([1.0], [1, 2], "one count"),
        ([1.0], [-1], "whole number"),
        ([1.0], [1.5], "whole number"),
        ([float("nan")], [1], "finite"),
    ],
)
def test_what_is_no_sample_is_refused(values: list[float], counts: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bootstrap_interval(sample_of(values, counts), seed=1)


def test_a_seed_is_the_same_in_every_process() -> None:
    code = "from eval_pipeline.results.stats.bootstrap import seed_of; print(seed_of('a/b', 'c'))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert int(other.stdout) == seed_of("a/b", "c")


@settings(max_examples=100, deadline=None, database=None)
@given(st.lists(st.text(max_size=3), max_size=3), st.lists(st.text(max_size=3), max_size=3))
def test_other_texts_have_another_seed(some: list[str], others: list[str]) -> None:
    assert (seed_of(*some) == seed_of(*others)) is (some == others)
    assert 0 <= seed_of(*some) < 2**64

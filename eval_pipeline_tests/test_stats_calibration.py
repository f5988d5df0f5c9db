"""Calibration against other implementations: numpy's, scikit-learn's, and the published one."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import brier_score_loss

from eval_pipeline.results.stats.calibration import (
    brier_score,
    equal_count_bins,
    expected_error,
    last_bin_dropped,
    root_mean_square_error,
)

Floats = NDArray[np.float64]


def stated(count: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Confidences in order, in hundredths so that many are equal, and scores of 0 or 1."""
    chance = np.random.default_rng(seed)
    confidence = np.sort(chance.integers(0, 101, count) / 100)
    return confidence, (chance.random(count) < confidence**2).astype(np.float64)


def published_error(confidence: Floats, correct: Floats) -> float:
    """Humanity's Last Exam: bins of 100, a longer last one, and a loop that ends before it."""
    order = np.argsort(confidence)
    confidence, correct = confidence[order], correct[order]
    edges = [[i * 100, (i + 1) * 100] for i in range(len(confidence) // 100)]
    edges[-1][1] = len(confidence)
    total = np.float64(0)
    for i in range(len(edges) - 1):
        low, high = edges[i]
        difference = np.abs(np.nanmean(confidence[low:high]) - np.nanmean(correct[low:high] > 0))
        total += (high - low) / len(confidence) * np.square(difference)
    return float(np.sqrt(total))


pairs = st.lists(st.tuples(st.integers(0, 100), st.booleans()), min_size=100, max_size=450).map(
    lambda found: np.array(found, dtype=np.float64).T / [[100], [1]]
)


@pytest.mark.parametrize("count", [100, 101, 199, 200, 250, 299, 1000, 2500, 12345])
def test_the_published_variant_is_the_same_to_the_bit(count: int) -> None:
    order = np.random.default_rng(count).permutation(count)
    confidence, correct = (column[order] for column in stated(count, seed=count))

    assert last_bin_dropped(confidence, correct) == published_error(confidence, correct)
    assert (last_bin_dropped(confidence, correct) == 0) == (count < 200)


@hypothesis_settings(max_examples=60, deadline=None)
@given(pairs)
def test_the_published_variant_is_the_same_to_the_bit_whatever_was_stated(found: Floats) -> None:
    confidence, correct = found

    assert last_bin_dropped(confidence, correct) == published_error(confidence, correct)


@pytest.mark.parametrize("count", [0, 1, 99])
def test_less_than_one_bin_has_no_error(count: int) -> None:
    confidence, correct = stated(count)

    assert equal_count_bins(confidence, correct) is None
    assert last_bin_dropped(confidence, correct) is None


@pytest.mark.parametrize("count", [100, 199, 200, 399, 1050, 2599])
def test_bins_are_those_of_numpy_s_even_split(count: int) -> None:
    confidence, correct = stated(count)

    bins = equal_count_bins(confidence, correct)

    assert bins is not None
    even = np.array_split(confidence, count // 100)
    hits = [part.sum() for part in np.array_split(correct, count // 100)]
    assert bins.size.tolist() == [len(part) for part in even]
    assert max(bins.size) - min(bins.size) <= 1
    assert bins.confidence_low.tolist() == [part.min() for part in even]
    assert bins.confidence_high.tolist() == [part.max() for part in even]
    assert bins.mean_confidence == pytest.approx([part.mean() for part in even])
    assert bins.correct.tolist() == hits


def test_two_bins_by_hand() -> None:
    confidence = np.repeat([0.5, 0.9], [101, 100])
    correct = np.concatenate([np.ones(101), np.ones(40), np.zeros(60)])

    bins = equal_count_bins(confidence, correct)

    assert bins is not None
    assert expected_error(bins) == pytest.approx((101 * 0.5 + 100 * 0.5) / 201)
    assert root_mean_square_error(bins) == pytest.approx(0.5)
    assert last_bin_dropped(confidence, correct) == pytest.approx(sqrt(100 / 201 * 0.25))
    assert brier_score(confidence, correct) == pytest.approx(
        (101 * 0.25 + 40 * 0.01 + 60 * 0.81) / 201
    )


@pytest.mark.parametrize("count", [1, 2, 50, 1000])
def test_the_brier_score_is_that_of_scikit_learn(count: int) -> None:
    confidence, correct = stated(count, seed=3)

    found = brier_score(confidence, correct)

    assert found == pytest.approx(brier_score_loss(correct, confidence, labels=[0, 1]))


def test_no_replies_have_no_brier_score() -> None:
    assert brier_score(np.empty(0), np.empty(0)) is None


@hypothesis_settings(max_examples=60, deadline=None)
@given(pairs)
def test_errors_are_ordered_and_within_bounds(found: Floats) -> None:
    confidence, correct = found
    bins = equal_count_bins(confidence, correct)

    assert bins is not None
    expected, rms = expected_error(bins), root_mean_square_error(bins)
    assert abs(confidence.mean() - correct.mean()) - 1e-12 <= expected <= rms + 1e-12
    assert rms <= 1
    assert rms**2 <= (brier_score(confidence, correct) or 0) + 1e-12

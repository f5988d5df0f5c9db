"""Masked log-probabilities: stability, masked entries, impossible rows, shapes and types."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scores import masked_log_softmax

INF = math.inf


def result(scores: Any, mask: Any) -> Any:
    """The result for plain lists; a warning on the way fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return masked_log_softmax(np.array(scores, dtype=np.float64), np.array(mask, dtype=bool))


def test_without_a_mask_it_is_the_log_softmax() -> None:
    found = result([1.0, 2.0, 3.0], [True, True, True])

    exact = math.log(math.exp(1) + math.exp(2) + math.exp(3))
    assert_allclose(found, [1 - exact, 2 - exact, 3 - exact], rtol=1e-12)


@pytest.mark.parametrize("offset", [-1e5, -800.0, 800.0, 1e5])
def test_scores_far_from_zero_neither_overflow_nor_vanish(offset: float) -> None:
    found = result([offset, offset + 1, offset + 1], [True, True, False])

    expected = [-math.log1p(math.e), 1 - math.log1p(math.e), -INF]
    assert_allclose(found, expected, rtol=1e-12)


def test_an_unlikely_choice_keeps_its_log_probability() -> None:
    assert_array_equal(result([0.0, -5000.0], [True, True]), [0.0, -5000.0])
    assert_array_equal(result([1e300, -1e300], [True, True]), [0.0, -2e300])


@pytest.mark.parametrize("masked", [math.nan, INF, -INF, 1e300, 0.0])
def test_what_is_not_allowed_has_no_influence(masked: float) -> None:
    found = result([[masked, -700.0, -700.0], [0.0, masked, 0.0]], [[0, 1, 1], [1, 0, 1]])

    half = -math.log(2)
    assert_allclose(found, [[-INF, half, half], [half, -INF, half]], rtol=1e-12)


def test_scores_lower_than_any_fill_value_still_count() -> None:
    found = result([-1e38, -1e38, 5.0], [True, True, False])

    assert_allclose(found, [-math.log(2), -math.log(2), -INF], rtol=1e-12)


def test_a_row_in_which_nothing_is_allowed_is_impossible() -> None:
    found = result([[1.0, 2.0], [1.0, 1.0], [math.nan, INF]], [[0, 0], [1, 1], [0, 0]])

    assert_allclose(found, [[-INF, -INF], [-math.log(2)] * 2, [-INF, -INF]], rtol=1e-12)


def test_impossible_choices_stay_impossible() -> None:
    found = result([[-INF, 3.0], [-INF, -INF], [-INF, 4.0]], [[1, 1], [1, 1], [1, 0]])

    assert_array_equal(found, [[-INF, 0.0], [-INF, -INF], [-INF, -INF]])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8])
def test_other_number_types_are_computed_in_double_precision(dtype: Any) -> None:
    scores = np.array([0, 1, 2, 200], dtype=dtype)

    found = masked_log_softmax(scores, np.array([True, True, True, False]))

    exact = math.log(1 + math.e + math.e**2)
    assert found.dtype == np.float64
    assert_allclose(found, [-exact, 1 - exact, 2 - exact, -INF], rtol=1e-12)


def test_one_mask_serves_every_row_of_a_batch() -> None:
    scores = np.arange(24.0).reshape(2, 3, 4)

    found = masked_log_softmax(scores, np.array([True, False, True, False]))

    low, high = -math.log1p(math.e**2), 2 - math.log1p(math.e**2)
    assert found.shape == (2, 3, 4)
    assert_allclose(found, np.broadcast_to([low, -INF, high, -INF], (2, 3, 4)), rtol=1e-12)


def test_a_mask_for_whole_rows_is_broadcast_too() -> None:
    found = result([[0.0, 0.0], [0.0, 0.0]], [[True], [False]])

    assert_allclose(found, [[-math.log(2)] * 2, [-INF, -INF]], rtol=1e-12)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_empty_arrays_give_empty_results(shape: tuple[int, ...]) -> None:
    found = masked_log_softmax(np.zeros(shape), np.ones(shape, dtype=bool))

    assert found.shape == shape


def test_the_arguments_and_numpy_settings_are_left_alone() -> None:
    scores, mask = np.array([1.0, math.nan, 2.0]), np.array([True, False, True])
    settings = np.geterr()

    found = masked_log_softmax(scores, mask)

    assert_array_equal(scores, [1.0, math.nan, 2.0])
    assert_array_equal(mask, [True, False, True])
    assert not np.shares_memory(found, scores)
    assert np.geterr() == settings

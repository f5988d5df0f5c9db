"""Errors of a mean over items that come in clusters, against statsmodels and by hand."""

from math import sqrt
from random import Random

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import sem

from eval_pipeline.results.stats.intervals import clustered_error

VALUES = st.lists(st.floats(-1, 1), min_size=2, max_size=30)


def of_statsmodels(values: list[float], clusters: list[int]) -> float:
    """Its small-sample correction is (n - 1) / (n - 1) * G / (G - 1) for a mean alone."""
    how = {"groups": np.array(clusters), "use_correction": True}
    fit = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds=how)
    return float(fit.bse[0])


@pytest.mark.parametrize(("items", "groups"), [(8, 2), (97, 9), (97, 40), (200, 5), (50, 50)])
def test_it_is_that_of_statsmodels(items: int, groups: int) -> None:
    chance = np.random.default_rng(items)
    values = chance.choice([-1.0, -0.5, 0.0, 0.5, 1.0], size=items).tolist()
    clusters = (np.arange(items) % groups).tolist()

    found = clustered_error(values, clusters)

    assert found == pytest.approx(of_statsmodels(values, clusters))


def test_without_the_correction_it_is_the_sandwich_of_statsmodels() -> None:
    values, clusters = [1.0, 0.0, -1.0, 1.0, 1.0, 0.0], [0, 0, 1, 1, 2, 2]
    plain = {"groups": np.array(clusters), "use_correction": False}
    fit = sm.OLS(values, np.ones(6)).fit(cov_type="cluster", cov_kwds=plain)

    found = clustered_error(values, clusters)

    assert found == pytest.approx(fit.bse[0] * sqrt(3 / 2))


def test_it_by_hand() -> None:
    # Mean 1/2; the deviations of the clusters add up to 1/2 and -1/2.
    found = clustered_error([1, 1, 0, 0], [0, 0, 0, 1])

    assert found == pytest.approx(sqrt(2 / 1 * (1 / 4 + 1 / 4)) / 4)


@pytest.mark.parametrize(
    ("values", "clusters"), [([], []), ([1.0], [0]), ([1.0, 0.0, 1.0], [4] * 3)]
)
def test_below_two_clusters_there_is_none(values: list[float], clusters: list[int]) -> None:
    assert clustered_error(values, clusters) is None


@settings(max_examples=40, deadline=None, database=None)
@given(values=VALUES)
def test_with_each_item_on_its_own_it_is_the_ordinary_error(values: list[float]) -> None:
    found = clustered_error(values, range(len(values)))

    assert found == pytest.approx(sem(values), abs=1e-9)


@settings(max_examples=40, deadline=None, database=None)
@given(values=VALUES, chance=st.randoms(use_true_random=False), gap=st.integers(1, 9))
def test_the_numbers_of_the_clusters_and_the_sign_of_the_values_do_not_matter(
    values: list[float], chance: Random, gap: int
) -> None:
    clusters = [chance.randrange(3) for _ in values]

    found = clustered_error(values, clusters)

    renamed = clustered_error([-value for value in values], [gap * (3 - one) for one in clusters])
    assert (found is None) == (len(set(clusters)) < 2)
    assert renamed == (None if found is None else pytest.approx(found, abs=1e-12))


def test_items_that_repeat_each_other_are_worth_no_more_than_one() -> None:
    values = np.random.default_rng(3).choice([0.0, 1.0], size=30)

    found = clustered_error(np.repeat(values, 7), np.repeat(np.arange(30), 7))

    assert found == pytest.approx(sem(values))

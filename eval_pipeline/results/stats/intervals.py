"""Intervals and errors: Wilson's for a share, those of a mean over clusters."""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Z_95 = 1.959963984540054
LEVEL = 0.05
"""The probability by chance alone below which a finding is called significant."""


class Interval(NamedTuple):
    low: float
    high: float


def wilson(hits: float, n: float, z: float = Z_95) -> Interval | None:
    """The Wilson interval of the share `hits / n`, as the macros in SQL have it; None of nothing.

    Rounding never puts the share itself outside of its interval.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n} is no share: give from 0 to {n} hits.")
    if n == 0:
        return None
    share, squared = hits / n, z**2
    center = (hits + squared / 2) / (n + squared)
    half = z / (n + squared) * sqrt(hits * (n - hits) / n + squared / 4)
    return Interval(max(0.0, min(share, center - half)), min(1.0, max(share, center + half)))


def clustered_error(values: ArrayLike, clusters: ArrayLike) -> float | None:
    """The cluster-robust standard error of the mean; None below two clusters.

    The clusters are numbered from 0 on, not all numbers need to occur. With each value in a
    cluster of its own, it is the ordinary standard error.
    """
    given, numbers = np.asarray(values, dtype=np.float64), np.asarray(clusters, dtype=np.int64)
    sizes = np.bincount(numbers)
    count = int((sizes > 0).sum())
    if count < 2:  # noqa: PLR2004
        return None
    sums = np.bincount(numbers, weights=given - given.mean())
    return sqrt(count / (count - 1) * float(sums @ sums)) / len(given)


class Cautious(NamedTuple):
    """A 95 % interval, and the standard error that it is made of."""

    interval: Interval
    standard_error: float


def cautious(differences: ArrayLike, clusters: ArrayLike) -> Cautious:
    """Return the interval with two more clusters: half of each differs wholly, either way, and one
    does not differ. Agresti and Min do so for pairs of 0 and 1, of which each is a cluster.

    The differences are from -1 to 1; the clusters are numbered from 0 on without a gap.
    """
    given, numbers = np.asarray(differences, np.float64), np.asarray(clusters, np.int64)
    mean, sizes = float(given.mean()), np.bincount(numbers)
    # How far each cluster takes the mean off, on the scale of a cluster of the usual size.
    sums = np.bincount(numbers, weights=given - mean)
    shares = mean + sums / sizes.mean()
    size = len(sizes) + 2
    middle = mean * len(sizes) / size
    error = sqrt((float(shares @ shares) + 1 - size * middle**2) / size / size)
    low, high = middle - Z_95 * error, middle + Z_95 * error
    return Cautious(Interval(max(-1.0, low), min(1.0, high)), error)

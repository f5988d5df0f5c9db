"""Errors of a mean over items that come in clusters, whose members are not independent."""

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike


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

"""The interval of a mean difference that does not shrink to nothing where few items differ."""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eval_pipeline.results.stats.intervals import Z_95, Interval


class Cautious(NamedTuple):
    """A 95 % interval, and the standard error that it is made of."""

    interval: Interval
    standard_error: float


def cautious(differences: ArrayLike, clusters: ArrayLike) -> Cautious:
    """As if there were two more clusters, half of each that differs wholly, either way, and one
    that does not differ: what Agresti and Min do for pairs of 0 and 1, of which each is a cluster.

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

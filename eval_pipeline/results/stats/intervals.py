"""Intervals: from where to where a number may be, and Wilson's for a share."""

from math import sqrt
from typing import NamedTuple

Z_95 = 1.959963984540054
LEVEL = 0.05
"""What is less likely than this, if only chance was at work, is called significant."""


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

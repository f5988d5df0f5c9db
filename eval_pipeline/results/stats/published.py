"""Accuracy, its ± and the calibration error as Humanity's Last Exam publishes them, in percent."""

from math import sqrt
from typing import NamedTuple


class Published(NamedTuple):
    """Percentages with two decimals, as zenmux-benchmark writes them into its summaries."""

    accuracy: float
    confidence_interval: float
    calibration_error: float


def as_published(
    correct: float | None, judged: int, calibration_error: float | None
) -> Published | None:
    """Over what was judged; None of nothing.

    The interval is Wald's with 1.96, and the calibration error is that without its last bin: where
    there are too few replies for one, they say 0.
    """
    if not judged:
        return None
    accuracy = 100 * (correct or 0.0) / judged
    half = 1.96 * sqrt(accuracy * (100 - accuracy) / judged)
    return Published(round(accuracy, 2), round(half, 2), round(100 * (calibration_error or 0.0), 2))

"""Calibration of stated confidence: errors over bins, Brier score, the published numbers."""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BIN_SIZE = 100


class Bins(NamedTuple):
    """Bins of replies in order of confidence; each field has one number per bin."""

    size: NDArray[np.int64]
    confidence_low: Floats
    confidence_high: Floats
    mean_confidence: Floats
    correct: Floats

    @property
    def gap(self) -> Floats:
        """The excess of the mean confidence over the mean score."""
        return self.mean_confidence - self.correct / self.size


def equal_count_bins(confidence: Floats, correct: Floats) -> Bins | None:
    """As many bins as hundreds, whose sizes differ by at most one; None below one hundred.

    The replies must come in order of confidence.
    """
    count = len(confidence) // BIN_SIZE
    if not count:
        return None
    smaller, larger = divmod(len(confidence), count)
    size = np.full(count, smaller)
    size[:larger] += 1
    ends = np.cumsum(size)
    starts = ends - size
    return Bins(
        size,
        confidence[starts],
        confidence[ends - 1],
        np.add.reduceat(confidence, starts) / size,
        np.add.reduceat(correct, starts),
    )


def root_mean_square_error(bins: Bins) -> float:
    """The calibration error of all bins: root of the mean square gap, each reply counting once."""
    return sqrt(float(bins.size @ bins.gap**2) / int(bins.size.sum()))


def expected_error(bins: Bins) -> float:
    """The expected calibration error (ECE): the mean absolute gap, each reply counting once."""
    return float(bins.size @ np.abs(bins.gap)) / int(bins.size.sum())


def last_bin_dropped(confidence: Floats, correct: Floats) -> float | None:
    """The calibration error as published for Humanity's Last Exam, to the bit; None below 100.

    The last of its bins takes the remainder, and then the sum ends before it: 0 from 100 to 199.
    The replies must come in the order of the data set. Bins are cut between equal confidences:
    which of these come first is what numpy's default sort makes of it on this processor, as there.
    """
    total = len(confidence)
    if total < BIN_SIZE:
        return None
    kept = np.argsort(confidence)[: (total // BIN_SIZE - 1) * BIN_SIZE]
    binned = (column[kept].reshape(-1, BIN_SIZE) for column in (confidence, correct))
    means = (column.mean(axis=1) for column in binned)
    gaps = np.subtract(*means)
    # One after the other, as there: a sum of numpy's would differ in the last bits.
    return sqrt(sum((BIN_SIZE / total * gaps**2).tolist()))


def brier_score(confidence: Floats, correct: Floats) -> float | None:
    """The mean square difference of confidence and score; None of nothing."""
    if not len(confidence):
        return None
    return float(np.mean((confidence - correct) ** 2))


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

"""Scores to log-probabilities, where some choices are not allowed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def masked_log_softmax(scores: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Every score minus the log of the sum of exponentials, which is computed stably."""
    values = np.where(mask, scores.astype(np.float64), -np.inf)
    if values.size == 0:
        return values
    top = values.max(axis=-1, keepdims=True)
    finite_top = np.where(np.isfinite(top), top, 0.0)
    total = np.exp(values - finite_top).sum(axis=-1, keepdims=True)
    log_sum = finite_top + np.log(np.where(total > 0, total, 1.0))
    result: NDArray[np.float64] = values - log_sum
    return result

"""Scores to log-probabilities, where some choices are not allowed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def masked_log_softmax(scores: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Shifts every row by its largest score, then sums what is allowed."""
    values = scores.astype(np.float64)
    if values.size == 0:
        return values
    with np.errstate(all="ignore"):
        shifted = values - values.max(axis=-1, keepdims=True)
        weights = np.where(mask, np.exp(shifted), 0.0)
        logged = shifted - np.log(weights.sum(axis=-1, keepdims=True))
    result: NDArray[np.float64] = np.where(mask, logged, -np.inf)
    return result

"""Scores to log-probabilities, where some choices are not allowed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def masked_log_softmax(scores: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Gives masked entries a score so low that it does not matter."""
    allowed = np.broadcast_to(mask, scores.shape)
    filled = np.where(allowed, scores.astype(np.float64), -1e30)
    if filled.size == 0:
        return filled
    shifted = filled - filled.max(axis=-1, keepdims=True)
    logged = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return np.where(allowed, logged, -np.inf)

"""Scores to log-probabilities, where some choices are not allowed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def masked_log_softmax(scores: NDArray[Any], mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Log-probabilities along the last axis among the entries where the mask is True."""
    masked = np.full(scores.shape, -np.inf)
    np.copyto(masked, scores, where=mask, casting="unsafe")
    top = masked.max(axis=-1, keepdims=True, initial=-np.inf)
    # A row without a possible choice has no finite maximum; -inf - 0 stays -inf without a nan.
    shifted = masked - np.where(np.isneginf(top), 0.0, top)
    total = np.exp(shifted).sum(axis=-1, keepdims=True)
    return shifted - np.log(np.where(total == 0.0, 1.0, total))

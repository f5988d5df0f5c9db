"""Balances of many accounts after many postings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def apply_postings(
    opening: NDArray[np.int64], accounts: NDArray[Any], cents: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Makes one posting after the other."""
    if len(accounts) != len(cents):
        raise ValueError("accounts and cents differ in length")
    if np.any(accounts < 0) or np.any(accounts >= len(opening)):
        raise ValueError("unknown account")
    closing = opening.copy()
    after = np.empty(len(cents), dtype=np.int64)
    for k in range(len(cents)):
        closing[accounts[k]] += int(cents[k])
        after[k] = closing[accounts[k]]
    return closing, after

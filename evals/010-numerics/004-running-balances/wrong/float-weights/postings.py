"""Balances of many accounts after many postings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def apply_postings(
    opening: NDArray[np.int64], accounts: NDArray[Any], cents: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sums the amounts of each account with bincount."""
    if len(accounts) != len(cents):
        raise ValueError("accounts and cents differ in length")
    if np.any(accounts < 0) or np.any(accounts >= len(opening)):
        raise ValueError("unknown account")
    owners, amounts = accounts.astype(np.int64), cents.astype(np.int64)
    sums = np.bincount(owners, weights=amounts, minlength=len(opening))
    closing = opening + sums.astype(np.int64)
    order = np.argsort(owners, kind="stable")
    running = np.cumsum(amounts[order])
    _, firsts, counts = np.unique(owners[order], return_index=True, return_counts=True)
    starts = running[firsts] - amounts[order][firsts]
    after = np.empty_like(amounts)
    after[order] = running - np.repeat(starts, counts)
    return closing, opening[owners] + after

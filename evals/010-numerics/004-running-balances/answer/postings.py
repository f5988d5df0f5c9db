"""Balances of many accounts after many postings, in whole cents."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def apply_postings(
    opening: NDArray[np.int64], accounts: NDArray[Any], cents: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The closing balances, and the balance of its account right after each posting."""
    if len(accounts) != len(cents):
        raise ValueError(f"{len(accounts)} accounts for {len(cents)} amounts")
    if accounts.size and (accounts.min() < 0 or accounts.max() >= len(opening)):
        raise ValueError(f"accounts are numbered from 0 to {len(opening) - 1}")
    owners, amounts = accounts.astype(np.intp), cents.astype(np.int64)
    closing = opening.astype(np.int64)
    np.add.at(closing, owners, amounts)
    return closing, opening[owners] + _running_totals(owners, amounts)


def _running_totals(owners: NDArray[np.intp], amounts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of each account's amounts up to and with each posting."""
    order = np.argsort(owners, kind="stable")
    grouped, running = owners[order], np.cumsum(amounts[order])
    firsts = np.searchsorted(grouped, grouped, side="left")
    before_the_group = running[firsts] - amounts[order][firsts]
    totals = np.empty_like(amounts)
    totals[order] = running - before_the_group
    return totals

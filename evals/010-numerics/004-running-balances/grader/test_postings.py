"""Postings to accounts: repeated accounts, order, exact cents, dtypes and refusals."""

import random
import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from postings import apply_postings


def apply(opening: list[int], accounts: list[int], cents: list[int]) -> tuple[Any, Any]:
    return apply_postings(
        np.array(opening, dtype=np.int64),
        np.array(accounts, dtype=np.int64),
        np.array(cents, dtype=np.int64),
    )


def test_every_posting_to_the_same_account_counts() -> None:
    closing, after = apply([100, 200], [1, 1, 1], [5, 5, -20])

    assert_array_equal(closing, [100, 190])
    assert_array_equal(after, [205, 210, 190])


def test_balances_come_in_the_order_of_the_postings() -> None:
    closing, after = apply([0, 10, 20], [2, 0, 2, 1, 0, 2], [1, 2, 3, 4, 5, 6])

    assert_array_equal(closing, [7, 14, 30])
    assert_array_equal(after, [21, 2, 24, 14, 7, 30])


def test_many_postings_agree_with_posting_one_by_one() -> None:
    dice = random.Random(7)
    opening = [dice.randint(-1000, 1000) for _ in range(40)]
    accounts = [dice.randrange(40) for _ in range(2000)]
    cents = [dice.randint(-500, 500) for _ in range(2000)]
    balances, history = opening.copy(), []
    for account, amount in zip(accounts, cents, strict=True):
        balances[account] += amount
        history.append(balances[account])

    closing, after = apply(opening, accounts, cents)

    assert_array_equal(closing, balances)
    assert_array_equal(after, history)


def test_cents_are_exact_where_floats_are_not() -> None:
    large = 2**60 + 1

    closing, after = apply([large, 0], [0, 1, 1, 0], [1, large, 1, 1])

    assert closing.tolist() == [large + 2, large + 1]
    assert after.tolist() == [large + 1, large, large + 1, large + 2]


def test_sums_may_leave_the_range_of_the_type_of_the_postings() -> None:
    accounts = np.array([0, 0, 0], dtype=np.uint8)
    cents = np.full(3, 2_000_000_000, dtype=np.int32)

    closing, after = apply_postings(np.zeros(1, dtype=np.int64), accounts, cents)

    assert closing.tolist() == [6_000_000_000]
    assert after.tolist() == [2_000_000_000, 4_000_000_000, 6_000_000_000]
    assert closing.dtype == after.dtype == np.int64


def test_unsigned_types_are_fine() -> None:
    opening = np.array([-5] * 250, dtype=np.int64)

    closing, after = apply_postings(
        opening, np.array([249, 249], dtype=np.uint8), np.array([3, 3], dtype=np.uint64)
    )

    assert closing[-1] == 1
    assert after.tolist() == [-2, 1]
    assert closing.dtype == after.dtype == np.int64


@pytest.mark.parametrize("accounts", [[-1], [0, 3], [0, 1, -3]])
def test_an_account_that_does_not_exist_is_refused(accounts: list[int]) -> None:
    with pytest.raises(ValueError):
        apply([1, 2, 3], accounts, [1] * len(accounts))


@pytest.mark.parametrize(
    ("accounts", "cents"), [([0, 0], [1]), ([0], [1, 2]), ([0], []), ([], [1])]
)
def test_an_amount_without_an_account_is_refused(accounts: list[int], cents: list[int]) -> None:
    with pytest.raises(ValueError):
        apply([1, 2, 3], accounts, cents)


def test_without_postings_the_opening_balances_are_copied() -> None:
    opening = np.array([1, 2], dtype=np.int64)
    nothing = np.array([], dtype=np.int64)

    closing, after = apply_postings(opening, nothing, nothing)

    assert_array_equal(closing, opening)
    assert after.shape == (0,)
    assert not np.shares_memory(closing, opening)


def test_a_ledger_without_accounts_takes_no_postings() -> None:
    closing, after = apply([], [], [])

    assert closing.shape == after.shape == (0,)
    with pytest.raises(ValueError):
        apply([], [0], [1])


def test_the_arguments_are_left_alone() -> None:
    opening = np.array([10, 20], dtype=np.int64)
    accounts = np.array([1, 0, 1], dtype=np.int64)
    cents = np.array([1, 2, 3], dtype=np.int64)

    apply_postings(opening, accounts, cents)

    assert_array_equal(opening, [10, 20])
    assert_array_equal(accounts, [1, 0, 1])
    assert_array_equal(cents, [1, 2, 3])


def test_the_work_is_not_done_line_by_line_in_python() -> None:
    opening = np.zeros(10_000, dtype=np.int64)
    accounts = np.arange(20_000, dtype=np.int64) % 10_000
    cents = np.ones(20_000, dtype=np.int64)
    apply_postings(opening, accounts, cents)
    lines = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        closing, after = apply_postings(opening, accounts, cents)
    finally:
        sys.settrace(before)

    assert lines < 5000
    assert_array_equal(closing, np.full(10_000, 2))
    assert_array_equal(after, np.repeat([1, 2], 10_000))

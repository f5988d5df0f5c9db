"""Shares of money: nothing is lost, ties and refunds are settled as promised."""

from decimal import Decimal

import pytest
from allocation import allocate


def shares(amount: str, weights: list[str], places: int = 2) -> list[str]:
    found = allocate(Decimal(amount), [Decimal(weight) for weight in weights], places)
    return [str(share) for share in found]


@pytest.mark.parametrize(
    ("amount", "weights", "expected"),
    [
        ("100.00", ["1", "1", "1"], ["33.34", "33.33", "33.33"]),
        ("100.01", ["1", "1", "1"], ["33.34", "33.34", "33.33"]),
        ("0.05", ["3", "7"], ["0.02", "0.03"]),
        ("0.02", ["1", "1", "1", "1"], ["0.01", "0.01", "0.00", "0.00"]),
        ("10.00", ["0.2", "0.3", "0.5"], ["2.00", "3.00", "5.00"]),
        ("7.77", ["5"], ["7.77"]),
    ],
)
def test_missing_units_go_to_the_earliest_of_equal_losers(
    amount: str, weights: list[str], expected: list[str]
) -> None:
    assert shares(amount, weights) == expected


def test_the_largest_loss_is_served_before_an_earlier_smaller_one() -> None:
    assert shares("1.00", ["1", "2", "4"]) == ["0.14", "0.29", "0.57"]
    assert shares("0.10", ["16", "17", "67"]) == ["0.01", "0.02", "0.07"]


def test_a_weight_of_zero_gets_nothing_even_in_first_place() -> None:
    assert shares("0.05", ["0", "1", "1"]) == ["0.00", "0.03", "0.02"]


@pytest.mark.parametrize("weights", [["1", "1", "1"], ["1", "2", "4"], ["3", "7"]])
def test_a_refund_mirrors_its_charge(weights: list[str]) -> None:
    exact = [Decimal(weight) for weight in weights]

    charge = allocate(Decimal("100.03"), exact)
    refund = allocate(Decimal("-100.03"), exact)

    assert refund == [-share for share in charge]


def test_a_refund_has_no_negative_zero() -> None:
    assert shares("-0.01", ["1", "1"]) == ["-0.01", "0.00"]
    assert shares("-0.00", ["1", "1"]) == ["0.00", "0.00"]


def test_every_share_is_written_with_the_decimals_of_the_currency() -> None:
    assert shares("10", ["1", "1"]) == ["5.00", "5.00"]
    assert shares("1.500", ["1", "2"]) == ["0.50", "1.00"]
    assert shares("100", ["1", "1", "1"], 0) == ["34", "33", "33"]
    assert shares("1E+2", ["1", "1", "1"], 0) == ["34", "33", "33"]
    assert shares("1", ["1", "1", "1"], 3) == ["0.334", "0.333", "0.333"]


def test_forty_digits_are_divided_to_the_last_unit() -> None:
    amount = "1000000000000000000000000000000000000000.01"

    found = shares(amount, ["1", "1", "1"])

    third = "333333333333333333333333333333333333333"
    assert found == [f"{third}.34", f"{third}.34", f"{third}.33"]


def test_weights_that_differ_in_the_fortieth_digit_are_told_apart() -> None:
    heavier = "1.0000000000000000000000000000000000000001"

    assert shares("0.01", ["1", heavier]) == ["0.00", "0.01"]


def test_many_shares_sum_to_the_amount() -> None:
    weights = [Decimal(number * number % 37) / 7 for number in range(1, 200)]

    found = allocate(Decimal("123456.79"), weights)

    assert sum(found) == Decimal("123456.79")
    assert len(found) == len(weights)


@pytest.mark.parametrize(
    ("amount", "weights"),
    [
        ("1.00", []),
        ("1.00", ["0", "0.0"]),
        ("1.00", ["2", "-1"]),
        ("0.005", ["1"]),
        ("NaN", ["1"]),
        ("Infinity", ["1"]),
        ("1.00", ["1", "NaN"]),
        ("1.00", ["1", "Infinity"]),
        ("0.00", ["0"]),
    ],
)
def test_what_can_not_be_divided_is_refused(amount: str, weights: list[str]) -> None:
    with pytest.raises(ValueError):
        shares(amount, weights)

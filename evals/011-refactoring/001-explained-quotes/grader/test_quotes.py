"""Quotes: the old prices to the cent, now with their reasons."""

from itertools import product
from typing import Any

import pytest
from quotes import explain, quote


def an_order(cents: int, quantity: int, **details: Any) -> dict[str, Any]:
    return {"lines": [{"cents": cents, "quantity": quantity}], **details}


def price_before(order: dict[str, Any]) -> int:
    """The price as it was computed before the rewriting."""
    total = sum(line["cents"] * line["quantity"] for line in order["lines"])
    count = sum(line["quantity"] for line in order["lines"])
    goods = total
    if order.get("partner"):
        total -= total * 15 // 100
        if count >= 100:
            total -= total * 5 // 100
    elif count >= 50:
        total -= total * 7 // 100
    coupon = order.get("coupon")
    if coupon == "WELCOME" and not order.get("partner"):
        total = max(total - 1000, 0)
    elif coupon == "TENTH":
        total -= total * 10 // 100
    if goods < 5000 and count > 0:
        total += 1500 if order.get("express") else 490
    elif order.get("express"):
        total += 900
    if order.get("country") == "CH":
        total += -(-total * 77 // 1000)
    return total


GOODS = [(333, 1), (1, 1), (0, 3), (101, 49), (101, 50), (33, 99), (57, 100), (5000, 1), (-7, 9)]
DETAILS: list[dict[str, Any]] = [
    {"partner": partner, "express": express, **coupon, **country}
    for partner, express, coupon, country in product(
        [False, True],
        [False, True],
        [{}, {"coupon": "WELCOME"}, {"coupon": "TENTH"}],
        [{}, {"country": "CH"}],
    )
]


@pytest.mark.parametrize(("cents", "quantity"), GOODS)
def test_every_price_is_what_it_was(cents: int, quantity: int) -> None:
    orders = [an_order(cents, quantity, **details) for details in DETAILS]

    assert [quote(order) for order in orders] == [price_before(order) for order in orders]


@pytest.mark.parametrize(("cents", "quantity"), GOODS)
def test_the_changes_lead_from_the_goods_to_the_price(cents: int, quantity: int) -> None:
    for details in DETAILS:
        order = an_order(cents, quantity, **details)

        changes = explain(order)

        assert cents * quantity + sum(change for _, change in changes) == price_before(order)


def test_an_order_that_leaves_everything_out_is_only_its_goods() -> None:
    order = {"lines": [{"cents": 2000, "quantity": 2}, {"cents": 1500, "quantity": 1}]}

    assert explain(order) == []
    assert quote(order) == 5500


def test_other_coupons_and_countries_change_nothing() -> None:
    assert explain(an_order(5500, 1, coupon="tenth", country="DE")) == []
    assert explain(an_order(5500, 1, coupon="", country="ch")) == []


def test_each_rule_sees_the_total_that_the_ones_before_it_left() -> None:
    order = an_order(99, 100, partner=True, coupon="TENTH", express=True, country="CH")

    changes = [
        ("partner", -1485),
        ("partner-volume", -420),
        ("tenth", -799),
        ("express", 900),
        ("import-tax", 624),
    ]
    assert explain(order) == changes
    assert quote(order) == 8720


def test_partners_get_no_volume_discount_and_no_welcome() -> None:
    assert explain(an_order(200, 60, partner=True, coupon="WELCOME")) == [("partner", -1800)]
    assert explain(an_order(200, 60, coupon="WELCOME")) == [("volume", -840), ("welcome", -1000)]


def test_the_welcome_takes_no_more_than_there_is() -> None:
    assert explain(an_order(300, 1, coupon="WELCOME")) == [("welcome", -300), ("small-order", 490)]
    assert explain(an_order(-300, 1, coupon="WELCOME")) == [("welcome", 300), ("small-order", 490)]


def test_the_size_of_an_order_is_that_of_its_goods_before_discounts() -> None:
    assert explain(an_order(5100, 1, coupon="TENTH")) == [("tenth", -510)]
    assert explain(an_order(4999, 1, express=True)) == [("small-order-express", 1500)]
    assert explain(an_order(5000, 1, express=True)) == [("express", 900)]


def test_a_rule_that_changes_nothing_is_still_listed() -> None:
    order = an_order(0, 120, partner=True, coupon="TENTH", express=True)

    names = ["partner", "partner-volume", "tenth", "small-order-express"]
    assert [name for name, _ in explain(order)] == names
    assert explain(order)[:3] == [("partner", 0), ("partner-volume", 0), ("tenth", 0)]


def test_an_order_without_lines_pays_only_for_what_it_asks() -> None:
    assert explain({"lines": []}) == []
    assert explain({"lines": [], "express": True}) == [("express", 900)]
    assert explain({"lines": [], "coupon": "WELCOME", "country": "CH"}) == [
        ("welcome", 0),
        ("import-tax", 0),
    ]


def test_returned_goods_are_rounded_as_before() -> None:
    order = {"lines": [{"cents": 333, "quantity": -1}, {"cents": 1, "quantity": 1}]}

    assert explain({**order, "partner": True, "country": "CH"}) == [
        ("partner", 50),
        ("import-tax", -21),
    ]
    assert quote({**order, "partner": True, "country": "CH"}) == -303

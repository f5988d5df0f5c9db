"""What an order costs, rule by rule."""

from collections.abc import Callable
from typing import NotRequired, TypedDict


class Line(TypedDict):
    """Some pieces of one product."""

    cents: int
    quantity: int


class Order(TypedDict):
    """What a customer asks for."""

    lines: list[Line]
    partner: NotRequired[bool]
    coupon: NotRequired[str]
    express: NotRequired[bool]
    country: NotRequired[str]


def quote(order: Order) -> int:
    """The price in cents."""
    goods = sum(line["cents"] * line["quantity"] for line in order["lines"])
    return goods + sum(change for _, change in explain(order))


def explain(order: Order) -> list[tuple[str, int]]:
    """What each rule changed."""
    goods = sum(line["cents"] * line["quantity"] for line in order["lines"])
    count = sum(line["quantity"] for line in order["lines"])
    partner, express = order.get("partner", False), order.get("express", False)
    coupon = order.get("coupon")
    small = goods < 5000 and count > 0
    rules: list[tuple[str, bool, Callable[[int], int]]] = [
        ("partner", partner, lambda total: -(total * 15 // 100)),
        ("partner-volume", partner and count >= 100, lambda total: -(total * 5 // 100)),
        ("volume", not partner and count >= 50, lambda total: -(total * 7 // 100)),
        ("welcome", not partner and coupon == "WELCOME", lambda total: -min(total, 1000)),
        ("tenth", coupon == "TENTH", lambda total: -(total * 10 // 100)),
        ("small-order-express", small and express, lambda total: 1500),
        ("small-order", small and not express, lambda total: 490),
        ("express", express and not small, lambda total: 900),
        ("import-tax", order.get("country") == "CH", lambda total: -(-total * 77 // 1000)),
    ]
    total = goods
    changes: list[tuple[str, int]] = []
    for name, applies, change in rules:
        if applies and (cents := change(total)):
            changes.append((name, cents))
            total += cents
    return changes

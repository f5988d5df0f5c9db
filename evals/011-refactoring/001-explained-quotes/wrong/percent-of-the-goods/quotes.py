"""What an order costs, rule by rule."""

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
    """What each rule changed; discounts are shares of the goods."""
    goods = sum(line["cents"] * line["quantity"] for line in order["lines"])
    count = sum(line["quantity"] for line in order["lines"])
    partner, express = order.get("partner", False), order.get("express", False)
    coupon = order.get("coupon")
    small = goods < 5000 and count > 0
    rules = [
        ("partner", partner, -(goods * 15 // 100)),
        ("partner-volume", partner and count >= 100, -(goods * 5 // 100)),
        ("volume", not partner and count >= 50, -(goods * 7 // 100)),
        ("welcome", not partner and coupon == "WELCOME", -min(goods, 1000)),
        ("tenth", coupon == "TENTH", -(goods * 10 // 100)),
        ("small-order-express", small and express, 1500),
        ("small-order", small and not express, 490),
        ("express", express and not small, 900),
    ]
    changes = [(name, change) for name, applies, change in rules if applies]
    if order.get("country") == "CH":
        total = goods + sum(change for _, change in changes)
        changes.append(("import-tax", -(-total * 77 // 1000)))
    return changes

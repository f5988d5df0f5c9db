"""What an order costs, rule by rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NotRequired, TypedDict


class Line(TypedDict):
    """Some pieces of one product; returned goods have a negative quantity."""

    cents: int
    quantity: int


class Order(TypedDict):
    """What a customer asks for."""

    lines: list[Line]
    partner: NotRequired[bool]
    coupon: NotRequired[str]
    express: NotRequired[bool]
    country: NotRequired[str]


@dataclass(frozen=True)
class Basket:
    """What conditions are made of."""

    goods: int
    count: int
    partner: bool
    coupon: str | None
    express: bool
    country: str | None

    @property
    def is_small(self) -> bool:
        """Whether the goods pay for their own way; nothing needs no way."""
        return self.goods < 5000 and self.count > 0


@dataclass(frozen=True)
class Rule:
    """When a rule applies, and by how much it then changes the total so far."""

    name: str
    applies: Callable[[Basket], bool]
    change: Callable[[int], int]


def _discount(percent: int) -> Callable[[int], int]:
    return lambda total: total * (100 - percent) // 100 - total


def _surcharge(cents: int) -> Callable[[int], int]:
    return lambda total: cents


def _welcome(total: int) -> int:
    return -min(total, 1000)


def _import_tax(total: int) -> int:
    # Rounded up: the customs office takes every cent that was begun.
    return -(-total * 77 // 1000)


RULES = (
    Rule("partner", lambda basket: basket.partner, _discount(15)),
    Rule("partner-volume", lambda basket: basket.partner and basket.count >= 100, _discount(5)),
    Rule("volume", lambda basket: not basket.partner and basket.count >= 50, _discount(7)),
    Rule("welcome", lambda basket: not basket.partner and basket.coupon == "WELCOME", _welcome),
    Rule("tenth", lambda basket: basket.coupon == "TENTH", _discount(10)),
    Rule(
        "small-order-express", lambda basket: basket.is_small and basket.express, _surcharge(1500)
    ),
    Rule("small-order", lambda basket: basket.is_small and not basket.express, _surcharge(490)),
    Rule("express", lambda basket: not basket.is_small and basket.express, _surcharge(900)),
    Rule("import-tax", lambda basket: basket.country == "CH", _import_tax),
)


def quote(order: Order) -> int:
    """The price in cents."""
    return _basket(order).goods + sum(change for _, change in explain(order))


def explain(order: Order) -> list[tuple[str, int]]:
    """Every rule that applied, with what it changed; each sees the total the ones before left."""
    basket = _basket(order)
    total = basket.goods
    changes: list[tuple[str, int]] = []
    for rule in RULES:
        if rule.applies(basket):
            change = rule.change(total)
            changes.append((rule.name, change))
            total += change
    return changes


def _basket(order: Order) -> Basket:
    return Basket(
        goods=sum(line["cents"] * line["quantity"] for line in order["lines"]),
        count=sum(line["quantity"] for line in order["lines"]),
        partner=order.get("partner", False),
        coupon=order.get("coupon"),
        express=order.get("express", False),
        country=order.get("country"),
    )

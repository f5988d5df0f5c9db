"""Orders, what they came to, and the checks that stand between the two."""

import json
from pathlib import Path
from typing import Any

import dagster as dg

Order = dict[str, Any]


class Inbox(dg.ConfigurableResource[None]):
    """A JSON file with a list of orders."""

    path: str

    def read(self) -> list[Order]:
        orders: list[Order] = json.loads(Path(self.path).read_text(encoding="utf-8"))
        return orders


@dg.asset
def orders(inbox: Inbox) -> list[Order]:
    """The orders as they came in."""
    return inbox.read()


@dg.asset
def revenue(orders: list[Order]) -> int:
    """The sum of all known amounts, in cents."""
    return sum(order["cents"] for order in orders if order["cents"] is not None)


@dg.asset_check(asset=orders, blocking=True)
def order_ids_are_unique(orders: list[Order]) -> dg.AssetCheckResult:
    """Revenue would count an order twice, so that nothing goes on from here."""
    duplicated = len(orders) - len({order["id"] for order in orders})
    return dg.AssetCheckResult(
        passed=duplicated == 0,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={"duplicated": duplicated},
    )


@dg.asset_check(asset=orders)
def amounts_are_known(orders: list[Order]) -> dg.AssetCheckResult:
    """Revenue is too low without them, which people should know."""
    unknown = sum(order["cents"] is None for order in orders)
    return dg.AssetCheckResult(
        passed=unknown == 0,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"unknown": unknown},
    )

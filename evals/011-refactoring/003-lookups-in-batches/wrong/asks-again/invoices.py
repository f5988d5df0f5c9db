"""Who pays for which order, with as few requests for customers as possible."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

LARGEST_REQUEST = 100


@dataclass(frozen=True)
class Order:
    """Something that was bought; without a customer it was a guest."""

    id: str
    customer: str
    cents: int


@dataclass(frozen=True)
class Customer:
    """Someone who buys; a parent pays for its children."""

    name: str
    parent: str | None = None
    blocked: bool = False


@dataclass(frozen=True)
class Invoice:
    """Who pays for an order."""

    order: str
    payer: str
    cents: int


Fetch = Callable[[Sequence[str]], Mapping[str, Customer]]


def invoices(orders: Iterable[Order], fetch: Fetch) -> list[Invoice]:
    """One invoice per order, except for those of blocked customers."""
    orders = list(orders)
    known = _load([order.customer for order in orders if order.customer], fetch)
    parents = [
        customer.parent
        for customer in known.values()
        if customer.parent is not None and not customer.blocked
    ]
    known |= _load([parent for parent in parents if parent not in known], fetch)
    made = [_payer(order, known.get(order.customer), known) for order in orders]
    return [invoice for invoice in made if invoice is not None]


def _load(ids: list[str], fetch: Fetch) -> dict[str, Customer]:
    found: dict[str, Customer] = {}
    unique = list(dict.fromkeys(ids))
    for start in range(0, len(unique), LARGEST_REQUEST):
        found.update(fetch(unique[start : start + LARGEST_REQUEST]))
    return found


def _payer(
    order: Order, customer: Customer | None, known: Mapping[str, Customer]
) -> Invoice | None:
    if order.customer == "":
        return Invoice(order.id, "guest", order.cents)
    if customer is None:
        return Invoice(order.id, "unknown", order.cents)
    if customer.blocked:
        return None
    payer = customer
    if customer.parent is not None:
        parent = known.get(customer.parent)
        if parent is not None and not parent.blocked:
            payer = parent
    return Invoice(order.id, payer.name or "unnamed", order.cents)

"""Who pays for which order, with as few requests for customers as possible."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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


@dataclass
class Directory:
    """The customers that were asked for; None are those that do not exist."""

    fetch: Fetch
    known: dict[str, Customer | None] = field(default_factory=dict)

    def load(self, ids: Iterable[str]) -> None:
        """Requests those of the ids that were not asked for yet."""
        missing = [id for id in dict.fromkeys(ids) if id not in self.known]
        for start in range(0, len(missing), LARGEST_REQUEST):
            batch = missing[start : start + LARGEST_REQUEST]
            found = self.fetch(batch)
            self.known.update((id, found.get(id)) for id in batch)

    def active(self, id: str | None) -> Customer | None:
        """The customer, if there is one who is not blocked."""
        customer = None if id is None else self.known.get(id)
        return None if customer is None or customer.blocked else customer


def invoices(orders: Iterable[Order], fetch: Fetch) -> list[Invoice]:
    """One invoice per order, except for those of blocked customers."""
    orders = list(orders)
    directory = Directory(fetch)
    directory.load(order.customer for order in orders if order.customer)
    buyers = [directory.active(order.customer) for order in orders]
    directory.load(buyer.parent for buyer in buyers if buyer and buyer.parent is not None)
    payers = [_payer(order, directory) for order in orders]
    return [
        Invoice(order.id, payer, order.cents)
        for order, payer in zip(orders, payers, strict=True)
        if payer is not None
    ]


def _payer(order: Order, directory: Directory) -> str | None:
    """The name on the invoice; None for an order that gets none."""
    if order.customer == "":
        return "guest"
    customer = directory.known[order.customer]
    if customer is None:
        return "unknown"
    if customer.blocked:
        return None
    payer = directory.active(customer.parent) or customer
    return payer.name or "unnamed"

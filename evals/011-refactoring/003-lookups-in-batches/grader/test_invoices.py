"""Invoices from batches of customers: the old invoices, and no needless requests."""

from collections.abc import Mapping, Sequence

import pytest
from invoices import Customer, Invoice, Order, invoices


class Registry:
    """Customers that can be asked for; remembers every request."""

    def __init__(self, **customers: Customer) -> None:
        self.customers = customers
        self.requests: list[list[str]] = []

    def fetch(self, ids: Sequence[str]) -> Mapping[str, Customer]:
        self.requests.append(list(ids))
        assert 1 <= len(ids) <= 100
        return {id: self.customers[id] for id in ids if id in self.customers}


def orders_of(*customers: str) -> list[Order]:
    return [Order(f"o{number}", customer, number) for number, customer in enumerate(customers)]


def payers(registry: Registry, *customers: str) -> list[str]:
    return [invoice.payer for invoice in invoices(orders_of(*customers), registry.fetch)]


def test_every_order_becomes_an_invoice_in_its_place() -> None:
    registry = Registry(a=Customer("Anna"), b=Customer("Bo"))

    found = invoices(orders_of("b", "a", "b"), registry.fetch)

    assert found == [Invoice("o0", "Bo", 0), Invoice("o1", "Anna", 1), Invoice("o2", "Bo", 2)]


def test_guests_and_unknown_customers_are_named_so() -> None:
    registry = Registry(a=Customer(""))

    assert payers(registry, "", "nobody", "a", "") == ["guest", "unknown", "unnamed", "guest"]
    assert registry.requests == [["nobody", "a"]]


def test_blocked_customers_get_no_invoice_and_their_parents_are_not_asked_for() -> None:
    registry = Registry(a=Customer("Anna", parent="p", blocked=True), b=Customer("Bo"))

    found = invoices(orders_of("a", "b", "a"), registry.fetch)

    assert found == [Invoice("o1", "Bo", 1)]
    assert registry.requests == [["a", "b"]]


def test_a_parent_pays_unless_it_is_blocked_or_missing() -> None:
    registry = Registry(
        a=Customer("Anna", parent="good"),
        b=Customer("Bo", parent="bad"),
        c=Customer("Cy", parent="gone"),
        d=Customer("", parent="bad"),
        e=Customer("Eve", parent="nameless"),
        good=Customer("Good", parent="top"),
        bad=Customer("Bad", blocked=True),
        nameless=Customer(""),
    )

    found = payers(registry, "a", "b", "c", "d", "e")

    assert found == ["Good", "Bo", "Cy", "unnamed", "unnamed"]
    assert registry.requests == [
        ["a", "b", "c", "d", "e"],
        ["good", "bad", "gone", "nameless"],
    ]


def test_no_id_is_asked_for_twice() -> None:
    registry = Registry(
        a=Customer("Anna", parent="b"),
        b=Customer("Bo", parent="p"),
        c=Customer("Cy", parent="nobody"),
        p=Customer("Pa"),
    )

    found = payers(registry, "a", "b", "nobody", "c", "a", "nobody")

    assert found == ["Bo", "Pa", "unknown", "Cy", "Bo", "unknown"]
    assert registry.requests == [["a", "b", "nobody", "c"], ["p"]]


def test_there_is_no_request_without_ids() -> None:
    registry = Registry(a=Customer("Anna"))

    assert payers(registry) == []
    assert payers(registry, "", "") == ["guest", "guest"]
    assert registry.requests == []
    assert payers(registry, "a") == ["Anna"]
    assert registry.requests == [["a"]]


@pytest.mark.parametrize(("count", "requests"), [(99, 1), (100, 1), (101, 2), (300, 3)])
def test_there_are_as_few_requests_as_possible(count: int, requests: int) -> None:
    names = [f"c{number}" for number in range(count)]
    registry = Registry(**{name: Customer(name.upper()) for name in names})

    found = payers(registry, *names, *names)

    assert found == [name.upper() for name in names] * 2
    assert len(registry.requests) == requests
    assert [id for request in registry.requests for id in request] == names


def test_parents_are_requested_in_batches_too_in_the_order_of_need() -> None:
    names = [f"c{number}" for number in range(250)]
    customers = {name: Customer(name, parent=f"p{name}") for name in names}
    parents = {f"p{name}": Customer(f"parent of {name}") for name in names}
    registry = Registry(**customers, **parents)

    found = payers(registry, *reversed(names))

    assert found == [f"parent of {name}" for name in reversed(names)]
    assert len(registry.requests) == 6
    customers_asked = [id for request in registry.requests[:3] for id in request]
    parents_asked = [id for request in registry.requests[3:] for id in request]
    assert customers_asked == [*reversed(names)]
    assert parents_asked == [f"p{name}" for name in reversed(names)]


def test_a_parent_with_an_empty_id_is_asked_for_like_any_other() -> None:
    registry = Registry(a=Customer("Anna", parent=""), **{"": Customer("Nameless id")})

    assert payers(registry, "a") == ["Nameless id"]
    assert registry.requests == [["a"], [""]]


def test_orders_may_be_read_only_once() -> None:
    registry = Registry(a=Customer("Anna", parent="p"), p=Customer("Pa"))

    found = invoices(iter(orders_of("a", "a")), registry.fetch)

    assert [invoice.payer for invoice in found] == ["Pa", "Pa"]


def test_each_run_asks_anew() -> None:
    registry = Registry(a=Customer("Anna"))
    before = payers(registry, "a")
    registry.customers["a"] = Customer("Anne")

    assert before == ["Anna"]
    assert payers(registry, "a") == ["Anne"]

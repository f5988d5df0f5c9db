"""The statement is run here, on a database that can reach nothing outside itself."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb
from pricing import invoice_sql

SEALED = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}

Line = tuple[int, str, datetime, int]
Change = tuple[str, datetime, str | None]


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2024, 5, day, hour, minute)


def invoice(lines: list[Line], changes: list[Change]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(":memory:", config=SEALED)
    con.execute(
        "CREATE TABLE order_lines"
        " (line_id INTEGER, product TEXT, ordered_at TIMESTAMP, quantity INTEGER)"
    )
    con.execute(
        "CREATE TABLE price_changes"
        " (product TEXT, effective_at TIMESTAMP, unit_price DECIMAL(10, 2))"
    )
    for line in lines:
        con.execute("INSERT INTO order_lines VALUES (?, ?, ?, ?)", list(line))
    for change in changes:
        con.execute("INSERT INTO price_changes VALUES (?, ?, ?)", list(change))
    return con.execute(invoice_sql())


def rows(lines: list[Line], changes: list[Change]) -> list[tuple[Any, ...]]:
    return invoice(lines, changes).fetchall()


def priced(line_id: int, unit_price: str, total: str) -> tuple[Any, ...]:
    return (line_id, "priced", Decimal(unit_price), Decimal(total))


def test_it_is_one_select_statement_with_the_columns_asked_for() -> None:
    (statement,) = duckdb.extract_statements(invoice_sql())
    result = invoice([], [])

    assert statement.type == duckdb.StatementType.SELECT
    assert [column[0] for column in result.description] == [
        "line_id",
        "status",
        "unit_price",
        "total",
    ]


def test_a_line_gets_the_price_in_force_and_not_a_later_one() -> None:
    changes: list[Change] = [
        ("tea", at(20), "9.00"),
        ("tea", at(1), "4.25"),
        ("tea", at(10), "5.50"),
    ]

    assert rows([(1, "tea", at(12), 3)], changes) == [priced(1, "5.50", "16.50")]


def test_a_change_holds_from_its_very_instant() -> None:
    changes: list[Change] = [("tea", at(1), "4.00"), ("tea", at(10, 8, 30), "6.00")]
    lines: list[Line] = [
        (1, "tea", at(10, 8, 29), 1),
        (2, "tea", at(10, 8, 30), 1),
        (3, "tea", at(10, 8, 31), 1),
    ]

    assert rows(lines, changes) == [
        priced(1, "4.00", "4.00"),
        priced(2, "6.00", "6.00"),
        priced(3, "6.00", "6.00"),
    ]


def test_a_withdrawn_product_does_not_fall_back_to_its_earlier_price() -> None:
    changes: list[Change] = [("tea", at(1), "4.00"), ("tea", at(10), None)]

    assert rows([(1, "tea", at(11), 2)], changes) == [(1, "withdrawn", None, None)]


def test_a_product_that_was_brought_back_has_its_new_price() -> None:
    changes: list[Change] = [("tea", at(1), "4.00"), ("tea", at(5), None), ("tea", at(9), "4.40")]
    lines: list[Line] = [(1, "tea", at(4), 1), (2, "tea", at(5), 1), (3, "tea", at(9), 1)]

    assert rows(lines, changes) == [
        priced(1, "4.00", "4.00"),
        (2, "withdrawn", None, None),
        priced(3, "4.40", "4.40"),
    ]


def test_a_line_before_the_first_change_is_kept_as_unknown() -> None:
    assert rows([(1, "tea", at(1), 1)], [("tea", at(2), "4.00")]) == [(1, "unknown", None, None)]


def test_a_product_without_any_change_is_kept_as_unknown() -> None:
    changes: list[Change] = [("tea", at(1), "4.00")]

    assert rows([(7, "mate", at(3), 1)], changes) == [(7, "unknown", None, None)]


def test_a_product_that_begins_withdrawn_is_not_unknown() -> None:
    assert rows([(1, "tea", at(3), 1)], [("tea", at(1), None)]) == [(1, "withdrawn", None, None)]


def test_every_line_has_one_row_and_they_are_sorted() -> None:
    changes: list[Change] = [("tea", at(1), "1.00"), ("rye", at(1), "2.00"), ("tea", at(2), "3.00")]
    lines: list[Line] = [
        (30, "rye", at(2), 1),
        (10, "tea", at(2), 1),
        (20, "tea", at(2), 1),
        (5, "oat", at(2), 1),
    ]

    assert rows(lines, changes) == [
        (5, "unknown", None, None),
        priced(10, "3.00", "3.00"),
        priced(20, "3.00", "3.00"),
        priced(30, "2.00", "2.00"),
    ]


def test_totals_are_exact_decimals() -> None:
    ((_, _, _, total),) = rows([(1, "tea", at(2), 3)], [("tea", at(1), "33333333.37")])

    assert isinstance(total, Decimal)
    assert total == Decimal("100000000.11")


def test_a_line_for_nothing_is_priced_at_zero() -> None:
    changes: list[Change] = [("tea", at(1), "4.00")]

    assert rows([(1, "tea", at(2), 0)], changes) == [priced(1, "4.00", "0.00")]

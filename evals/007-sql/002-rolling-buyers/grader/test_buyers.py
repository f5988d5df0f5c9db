"""The statement is run here, on a database that can reach nothing outside itself."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from buyers import rolling_sql

SEALED = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}

Sale = tuple[str, datetime, str | None, str]


def on(day: int, hour: int = 12) -> datetime:
    return datetime(2024, 3, day, hour, 15)


def run(days: int, sales: list[Sale]) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(":memory:", config=SEALED)
    con.execute(
        "CREATE TABLE sales (shop TEXT, sold_at TIMESTAMP, customer TEXT, amount DECIMAL(10, 2))"
    )
    for sale in sales:
        con.execute("INSERT INTO sales VALUES (?, ?, ?, ?)", list(sale))
    return con.execute(rolling_sql(days))


def table(days: int, sales: list[Sale]) -> list[tuple[Any, ...]]:
    return run(days, sales).fetchall()


def row(shop: str, day: int, revenue: str, buyers: int) -> tuple[Any, ...]:
    return (shop, date(2024, 3, day), Decimal(revenue), buyers)


def test_it_is_one_select_statement_with_the_columns_asked_for() -> None:
    (statement,) = duckdb.extract_statements(rolling_sql(7))
    result = run(7, [])

    assert statement.type == duckdb.StatementType.SELECT
    assert [column[0] for column in result.description] == ["shop", "day", "revenue", "buyers"]
    assert result.fetchall() == []


def test_a_customer_who_comes_on_two_days_is_one_buyer() -> None:
    sales: list[Sale] = [("inn", on(1), "ann", "5.00"), ("inn", on(2), "ann", "2.00")]

    assert table(2, sales) == [row("inn", 1, "5.00", 1), row("inn", 2, "7.00", 1)]


def test_days_without_sales_have_rows_and_use_up_the_window() -> None:
    sales: list[Sale] = [("inn", on(1), "ann", "5.00"), ("inn", on(5), "bob", "2.00")]

    assert table(3, sales) == [
        row("inn", 1, "5.00", 1),
        row("inn", 2, "5.00", 1),
        row("inn", 3, "5.00", 1),
        row("inn", 4, "0", 0),
        row("inn", 5, "2.00", 1),
    ]


def test_sales_late_on_the_day_itself_count() -> None:
    sales: list[Sale] = [("inn", on(1, 0), "ann", "1.00"), ("inn", on(1, 23), "bob", "2.00")]

    assert table(1, sales) == [row("inn", 1, "3.00", 2)]


def test_the_oldest_day_of_the_window_counts_from_its_midnight() -> None:
    sales: list[Sale] = [
        ("inn", datetime(2024, 3, 1), "ann", "1.00"),
        ("inn", datetime(2024, 3, 2, 23, 59, 59), "bob", "2.00"),
        ("inn", datetime(2024, 3, 3), "cid", "4.00"),
    ]

    assert table(2, sales) == [
        row("inn", 1, "1.00", 1),
        row("inn", 2, "3.00", 2),
        row("inn", 3, "6.00", 2),
    ]


def test_anonymous_sales_are_revenue_without_a_buyer() -> None:
    sales: list[Sale] = [("inn", on(1), None, "5.00"), ("inn", on(1), "ann", "1.00")]

    assert table(7, sales) == [row("inn", 1, "6.00", 1)]


def test_a_shop_of_anonymous_customers_has_no_buyers() -> None:
    assert table(7, [("inn", on(1), None, "5.00")]) == [row("inn", 1, "5.00", 0)]


def test_shops_have_their_own_days_and_buyers() -> None:
    sales: list[Sale] = [
        ("pub", on(4), "ann", "8.00"),
        ("inn", on(2), "ann", "1.00"),
        ("inn", on(3), "bob", "2.00"),
    ]

    assert table(7, sales) == [
        row("inn", 2, "1.00", 1),
        row("inn", 3, "3.00", 2),
        row("pub", 4, "8.00", 1),
    ]


def test_equal_sales_each_count_towards_revenue() -> None:
    sale: Sale = ("inn", on(1), "ann", "2.50")

    assert table(2, [sale, sale, sale]) == [row("inn", 1, "7.50", 1)]


def test_revenue_is_an_exact_decimal_and_refunds_are_taken_off() -> None:
    sales: list[Sale] = [
        ("inn", on(1), "ann", "0.10"),
        ("inn", on(1), "ann", "0.20"),
        ("inn", on(2), "bob", "-0.30"),
    ]

    result = table(2, sales)

    assert result == [row("inn", 1, "0.30", 1), row("inn", 2, "0.00", 2)]
    assert all(isinstance(revenue, Decimal) for _, _, revenue, _ in result)


def test_a_window_crosses_the_end_of_a_month() -> None:
    sales: list[Sale] = [
        ("inn", datetime(2024, 2, 28, 9), "ann", "1.00"),
        ("inn", datetime(2024, 3, 1, 9), "bob", "2.00"),
    ]

    assert [(revenue, buyers) for _, _, revenue, buyers in table(2, sales)] == [
        (Decimal("1.00"), 1),
        (Decimal("1.00"), 1),
        (Decimal("2.00"), 1),
    ]


@pytest.mark.parametrize("days", [0, -1])
def test_a_window_of_no_days_is_refused(days: int) -> None:
    with pytest.raises(ValueError):
        rolling_sql(days)

"""Partitions are materialized in process, against a DuckDB file of the test."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
from sales_assets import Warehouse, berlin_days, daily_sales

Sale = tuple[int, datetime, str]
INSTANCE = dg.DagsterInstance.ephemeral()


def utc(month: int, day: int, hour: int, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2024, month, day, hour, minute, second)


def file_with(folder: Path, *sales: Sale) -> str:
    path = str(folder / "shop.duckdb")
    with duckdb.connect(path) as con:
        con.execute(
            "CREATE OR REPLACE TABLE raw_sales"
            " (sale_id INTEGER, sold_at TIMESTAMP, amount DECIMAL(10, 2))"
        )
        for sale in sales:
            con.execute("INSERT INTO raw_sales VALUES (?, ?, ?)", list(sale))
    return path


def run(path: str, day: str) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [daily_sales],
        partition_key=day,
        instance=INSTANCE,
        resources={"warehouse": Warehouse(path=path)},
        raise_on_error=False,
    )


def rows(path: str, query: str = "SELECT * FROM daily_sales ORDER BY day") -> list[tuple[Any, ...]]:
    """Read-only, which DuckDB refuses while this process still has the file open for writing."""
    with duckdb.connect(path, read_only=True) as con:
        return con.execute(query).fetchall()


def row(month: int, day: int, sales: int, revenue: str) -> tuple[Any, ...]:
    return (date(2024, month, day), sales, Decimal(revenue))


def test_the_partitions_are_days_of_berlin() -> None:
    assert berlin_days.timezone == "Europe/Berlin"
    assert list(berlin_days.get_partition_keys()[:2]) == ["2024-01-01", "2024-01-02"]
    assert daily_sales.partitions_def == berlin_days


def test_a_day_begins_and_ends_at_midnight_in_berlin(tmp_path: Path) -> None:
    path = file_with(
        tmp_path,
        (1, utc(1, 9, 22, 59, 59), "1.00"),
        (2, utc(1, 9, 23), "2.00"),
        (3, utc(1, 10, 22, 59, 59), "4.00"),
        (4, utc(1, 10, 23), "8.00"),
    )

    assert run(path, "2024-01-10").success
    assert rows(path) == [row(1, 10, 2, "6.00")]


def test_every_sale_is_on_one_day_when_clocks_go_forward(tmp_path: Path) -> None:
    path = file_with(
        tmp_path,
        (1, utc(3, 30, 23), "1.00"),
        (2, utc(3, 31, 21, 59), "2.00"),
        (3, utc(3, 31, 22), "4.00"),
        (4, utc(4, 1, 22), "8.00"),
    )

    assert run(path, "2024-03-31").success
    assert run(path, "2024-04-01").success
    assert rows(path) == [row(3, 31, 2, "3.00"), row(4, 1, 1, "4.00")]


def test_every_sale_is_on_one_day_when_clocks_go_back(tmp_path: Path) -> None:
    path = file_with(
        tmp_path,
        (1, utc(10, 26, 22), "1.00"),
        (2, utc(10, 27, 22, 30), "2.00"),
        (3, utc(10, 27, 23), "4.00"),
    )

    assert run(path, "2024-10-27").success
    assert run(path, "2024-10-28").success
    assert rows(path) == [row(10, 27, 2, "3.00"), row(10, 28, 1, "4.00")]


def test_materializing_again_replaces_the_row_of_that_day_only(tmp_path: Path) -> None:
    path = file_with(tmp_path, (1, utc(5, 1, 12), "1.00"), (2, utc(5, 2, 12), "2.00"))
    assert run(path, "2024-05-02").success
    assert run(path, "2024-05-01").success
    file_with(
        tmp_path,
        (1, utc(5, 1, 12), "1.50"),
        (3, utc(5, 1, 13), "1.50"),
        (2, utc(5, 2, 12), "9.00"),
    )

    assert run(path, "2024-05-01").success
    assert rows(path) == [row(5, 1, 2, "3.00"), row(5, 2, 1, "2.00")]


def test_a_day_without_sales_has_a_row_of_zeros(tmp_path: Path) -> None:
    path = file_with(tmp_path)

    result = run(path, "2024-05-01")

    assert result.success
    assert rows(path) == [row(5, 1, 0, "0.00")]


def test_the_table_has_the_columns_and_types_asked_for(tmp_path: Path) -> None:
    path = file_with(tmp_path)
    assert run(path, "2024-05-01").success

    described = rows(path, "SELECT column_name, column_type FROM (DESCRIBE daily_sales)")

    assert described == [("day", "DATE"), ("sales", "INTEGER"), ("revenue", "DECIMAL(18,2)")]


def test_the_materialization_says_how_many_sales_there_were(tmp_path: Path) -> None:
    path = file_with(tmp_path, (1, utc(5, 1, 12), "1.00"), (2, utc(5, 1, 13), "2.00"))

    result = run(path, "2024-05-01")

    (event,) = result.asset_materializations_for_node("daily_sales")
    assert event.partition == "2024-05-01"
    assert event.metadata["sales"].value == 2


def test_a_failed_run_leaves_earlier_rows_and_no_open_connection(tmp_path: Path) -> None:
    path = file_with(tmp_path, (1, utc(5, 1, 12), "1.00"))
    assert run(path, "2024-05-01").success
    with duckdb.connect(path) as con:
        con.execute("DROP TABLE raw_sales")

    result = run(path, "2024-05-01")

    assert not result.success
    assert rows(path) == [row(5, 1, 1, "1.00")]


def test_raw_sales_are_left_alone(tmp_path: Path) -> None:
    path = file_with(tmp_path, (1, utc(5, 1, 12), "1.00"), (2, utc(5, 9, 12), "2.00"))
    before = rows(path, "SELECT * FROM raw_sales ORDER BY sale_id")

    assert run(path, "2024-05-01").success
    assert rows(path, "SELECT * FROM raw_sales ORDER BY sale_id") == before

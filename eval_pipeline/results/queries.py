"""The SQL files: the schema, what fills its tables, and every query."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

SQL = Path(__file__).with_name("sql")
FORMULAS_VERSION = 1
"""Raise this when Python code computes other numbers from the same records: files are rebuilt."""
MAKING = ("schema", "load", "derive")
"""The folders of queries that make the tables; the others only read them."""


def query(
    connection: duckdb.DuckDBPyConnection, name: str, given: Mapping[str, object] | None = None
) -> duckdb.DuckDBPyRelation:
    """Return the relation of a query file in sql/, such as `checks/metrics_are_within_bounds`."""
    return connection.sql(query_text(name), params=dict(given) if given else None)


def rows(found: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    """Return the rows of a query, by column."""
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def query_text(name: str) -> str:
    """Return the text of a query file."""
    return (SQL / f"{name}.sql").read_text("utf-8")


def run_file(
    connection: duckdb.DuckDBPyConnection, name: str, given: Mapping[str, object] | None = None
) -> None:
    """Run every statement of a file, each with the values that it names."""
    for statement in connection.extract_statements(query_text(name)):
        wanted = {name: (given or {})[name] for name in statement.named_parameters}
        connection.execute(statement, wanted or None)


def insert(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[float | None]]
) -> None:
    """Add rows of numbers to the temporary table that has those columns; None and NaN are NULL."""
    import numpy as np  # noqa: PLC0415  (which takes time to load)

    if not rows:
        return
    names = connection.table(table).columns
    columns = np.array(rows, dtype=np.float64).T
    connection.register("computed", dict(zip(names, columns, strict=True)))
    values = ", ".join(f"nullif({name}, 'nan'::double)" for name in names)
    connection.view("computed").project(values).insert_into(f"temp.main.{table}")
    connection.unregister("computed")


def recipe() -> tuple[str, ...]:
    """Return all that decides the numbers: if it changes, the file is rebuilt."""
    queries = sorted(path for folder in MAKING for path in (SQL / folder).glob("*.sql"))
    return (str(FORMULAS_VERSION), *(path.read_text("utf-8") for path in queries))

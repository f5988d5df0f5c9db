"""The SQL files: the migrations that make the tables, and everything that is asked of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from eval_pipeline.records import now

PACKAGE = Path(__file__).parent
SQL = PACKAGE / "sql"
FORMULAS_VERSION = 1
"""Raise this when Python code computes other numbers from the same records: files are rebuilt."""
MAKING = ("migrations", "load", "derive")
"""The folders of queries that make the tables; the others only ask them."""


def query(
    connection: duckdb.DuckDBPyConnection, name: str, given: Mapping[str, object] | None = None
) -> duckdb.DuckDBPyRelation:
    """The result of a query file under sql/, such as `checks/metrics_out_of_bounds`."""
    return connection.sql(query_text(name), params=dict(given) if given else None)


def rows(found: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    """What a query found, by column."""
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def query_text(name: str) -> str:
    """A query file as it stands."""
    return (SQL / f"{name}.sql").read_text("utf-8")


def run_file(
    connection: duckdb.DuckDBPyConnection, name: str, given: Mapping[str, object] | None = None
) -> None:
    """Runs every statement of a file, each with those of the values that it names."""
    for statement in connection.extract_statements(query_text(name)):
        wanted = {name: (given or {})[name] for name in statement.named_parameters}
        connection.execute(statement, wanted or None)


def clear(connection: duckdb.DuckDBPyConnection, tables: Sequence[str]) -> None:
    """Empties the tables."""
    for table in tables:
        connection.execute(f"delete from {table}")


def apply_migrations(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Applies every migration that the file has not seen yet, in order; returns their names."""
    connection.execute(
        "create table if not exists schema_migrations "
        "(name varchar primary key, applied_at timestamp)"
    )
    applied = {name for (name,) in connection.sql("select name from schema_migrations").fetchall()}
    missing = [name for name in migration_names() if name not in applied]
    for name in missing:
        apply_migration(connection, name)
    return missing


def apply_migration(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Applies one migration and records that, or does neither."""
    connection.begin()
    run_file(connection, f"migrations/{name.removesuffix('.sql')}")
    connection.execute("insert into schema_migrations values (?, ?)", [name, now()])
    connection.commit()


def migration_names() -> list[str]:
    """Every migration there is, in order."""
    return sorted(path.name for path in (SQL / "migrations").glob("*.sql"))


def migration_texts() -> list[str]:
    """What the migrations say, in their order."""
    return [path.read_text("utf-8") for path in sorted((SQL / "migrations").glob("*.sql"))]


def recipe() -> tuple[str, ...]:
    """Return all that decides the numbers: if it changes, the file is rebuilt."""
    queries = sorted(path for folder in MAKING for path in (SQL / folder).glob("*.sql"))
    return (str(FORMULAS_VERSION), *(path.read_text("utf-8") for path in queries))

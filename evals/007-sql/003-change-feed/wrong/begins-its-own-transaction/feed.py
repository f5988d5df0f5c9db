"""Applies a feed of versioned changes to the customers table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import duckdb


@dataclass(frozen=True)
class Change:
    """What became of a customer in one version."""

    id: int
    version: int
    kind: Literal["upsert", "delete"]
    name: str = ""
    email: str | None = None


UPSERT = """
    INSERT INTO customers VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name,
        email = excluded.email,
        version = excluded.version,
        deleted = excluded.deleted
    WHERE excluded.version > customers.version
    RETURNING id
"""


def apply_changes(con: duckdb.DuckDBPyConnection, changes: Sequence[Change]) -> int:
    """Brings the table up to date; returns how many rows are new or replaced."""
    touched: set[int] = set()
    con.begin()
    try:
        for change in changes:
            row: list[object] = [change.id, change.name, change.email, change.version, False]
            if change.kind == "delete":
                row = [change.id, "", None, change.version, True]
            if con.execute(UPSERT, row).fetchall():
                touched.add(change.id)
    except duckdb.Error:
        con.rollback()
        raise
    con.commit()
    return len(touched)

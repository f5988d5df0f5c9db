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


def apply_changes(con: duckdb.DuckDBPyConnection, changes: Sequence[Change]) -> int:
    """Brings the table up to date; returns how many rows are new or replaced."""
    stored: dict[int, int] = dict(con.execute("SELECT id, version FROM customers").fetchall())
    newest: dict[int, Change] = {}
    for change in changes:
        if change.version > stored.get(change.id, -1):
            stored[change.id] = change.version
            newest[change.id] = change
    gone = [change.id for change in newest.values() if change.kind == "delete"]
    kept = [change for change in newest.values() if change.kind == "upsert"]
    if gone:
        con.execute("DELETE FROM customers WHERE id IN (SELECT unnest(?))", [gone])
    if kept:
        marks = ", ".join(["(?, ?, ?, ?, false)"] * len(kept))
        values = [value for c in kept for value in (c.id, c.name, c.email, c.version)]
        con.execute(f"INSERT OR REPLACE INTO customers VALUES {marks}", values)
    return len(newest)

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


APPLY = """
    INSERT INTO customers
    SELECT unnest(?), unnest(?), unnest(?), unnest(?), unnest(?)
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
    latest = list({change.id: change for change in changes}.values())
    if not latest:
        return 0
    columns = [
        [change.id for change in latest],
        ["" if change.kind == "delete" else change.name for change in latest],
        [None if change.kind == "delete" else change.email for change in latest],
        [change.version for change in latest],
        [change.kind == "delete" for change in latest],
    ]
    return len(con.execute(APPLY, columns).fetchall())

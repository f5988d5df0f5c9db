"""Applies a feed of versioned changes to the customers table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import duckdb

# One statement is atomic by itself, inside a transaction of the caller and outside of one.
APPLY = """
    INSERT INTO customers (id, name, email, version, deleted)
    SELECT unnest($ids), unnest($names), unnest($emails), unnest($versions), unnest($deleted)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name,
        email = excluded.email,
        version = excluded.version,
        deleted = excluded.deleted
    WHERE excluded.version > customers.version
    RETURNING id
"""


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
    newest = list(_newest(changes).values())
    if not newest:
        return 0
    kept = [change.kind == "upsert" for change in newest]
    parameters = {
        "ids": [change.id for change in newest],
        "versions": [change.version for change in newest],
        "names": [c.name if keep else "" for c, keep in zip(newest, kept, strict=True)],
        "emails": [c.email if keep else None for c, keep in zip(newest, kept, strict=True)],
        "deleted": [not keep for keep in kept],
    }
    return len(con.execute(APPLY, parameters).fetchall())


def _newest(changes: Sequence[Change]) -> dict[int, Change]:
    """For each id the change of the highest version, the first one where there are several."""
    newest: dict[int, Change] = {}
    for change in changes:
        held = newest.get(change.id)
        if held is None or change.version > held.version:
            newest[change.id] = change
    return newest

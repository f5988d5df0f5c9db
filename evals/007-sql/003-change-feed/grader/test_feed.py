"""Changes are applied to a real DuckDB table, in memory or in a file."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from feed import Change, apply_changes


def create(con: duckdb.DuckDBPyConnection, check: str = "true") -> duckdb.DuckDBPyConnection:
    con.execute(
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT,"
        f" version INTEGER NOT NULL, deleted BOOLEAN NOT NULL, CHECK ({check}))"
    )
    return con


def database(check: str = "true") -> duckdb.DuckDBPyConnection:
    return create(duckdb.connect(":memory:"), check)


def rows(con: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    return con.execute("SELECT * FROM customers ORDER BY id").fetchall()


def upsert(id: int, version: int, name: str = "ann", email: str | None = None) -> Change:
    return Change(id=id, version=version, kind="upsert", name=name, email=email)


def delete(id: int, version: int) -> Change:
    return Change(id=id, version=version, kind="delete")


def test_new_and_newer_rows_are_stored_and_counted() -> None:
    con = database()

    first = apply_changes(con, [upsert(1, 1, "ann", "a@x.org"), upsert(2, 5, "bob")])
    second = apply_changes(con, [upsert(1, 2, "anna"), upsert(3, 1, "cid")])

    assert (first, second) == (2, 2)
    assert rows(con) == [
        (1, "anna", None, 2, False),
        (2, "bob", None, 5, False),
        (3, "cid", None, 1, False),
    ]


def test_the_same_batch_a_second_time_changes_nothing() -> None:
    con = database()
    batch = [upsert(1, 3, "ann"), delete(2, 4)]
    apply_changes(con, batch)
    before = rows(con)

    assert apply_changes(con, batch) == 0
    assert rows(con) == before


def test_older_and_equal_versions_are_ignored() -> None:
    con = database()
    apply_changes(con, [upsert(1, 7, "ann")])

    assert apply_changes(con, [upsert(1, 6, "old"), upsert(1, 7, "same"), delete(1, 7)]) == 0
    assert rows(con) == [(1, "ann", None, 7, False)]


def test_of_several_changes_in_one_batch_the_highest_version_counts_once() -> None:
    con = database()
    batch = [upsert(1, 2, "two"), upsert(1, 9, "nine"), upsert(1, 5, "five"), upsert(2, 1, "bob")]

    assert apply_changes(con, batch) == 2
    assert rows(con) == [(1, "nine", None, 9, False), (2, "bob", None, 1, False)]


def test_of_equal_versions_in_one_batch_the_first_counts() -> None:
    con = database()

    assert apply_changes(con, [upsert(1, 2, "first"), upsert(1, 2, "second"), delete(1, 2)]) == 1
    assert rows(con) == [(1, "first", None, 2, False)]


def test_a_deleted_row_is_emptied_but_keeps_its_version() -> None:
    con = database()
    apply_changes(con, [upsert(1, 1, "ann", "a@x.org")])

    assert apply_changes(con, [Change(1, 2, "delete", name="ann", email="a@x.org")]) == 1
    assert rows(con) == [(1, "", None, 2, True)]


def test_a_late_upsert_does_not_bring_back_what_was_deleted() -> None:
    con = database()
    apply_changes(con, [delete(1, 5)])

    assert apply_changes(con, [upsert(1, 4, "ghost")]) == 0
    assert rows(con) == [(1, "", None, 5, True)]


def test_a_newer_upsert_does_bring_it_back() -> None:
    con = database()
    apply_changes(con, [upsert(1, 1), delete(1, 5)])

    assert apply_changes(con, [upsert(1, 6, "ann", "a@x.org")]) == 1
    assert rows(con) == [(1, "ann", "a@x.org", 6, False)]


def test_the_first_version_of_an_id_may_be_zero_or_negative() -> None:
    con = database()

    assert apply_changes(con, [upsert(1, 0, "zero"), upsert(2, -3, "minus")]) == 2
    assert rows(con) == [(1, "zero", None, 0, False), (2, "minus", None, -3, False)]


def test_no_changes_are_no_work() -> None:
    con = database()

    assert apply_changes(con, []) == 0
    assert rows(con) == []


def test_one_bad_change_keeps_all_of_them_out() -> None:
    con = database("length(name) <= 5")
    apply_changes(con, [upsert(1, 1, "ann")])

    with pytest.raises(duckdb.ConstraintException):
        apply_changes(con, [upsert(1, 2, "anna"), delete(3, 1), upsert(2, 1, "far too long")])

    assert rows(con) == [(1, "ann", None, 1, False)]
    assert apply_changes(con, [upsert(1, 2, "anna")]) == 1


def test_a_transaction_of_the_caller_can_still_be_rolled_back() -> None:
    con = database()
    apply_changes(con, [upsert(1, 1, "ann")])

    con.begin()
    count = apply_changes(con, [upsert(1, 2, "anna"), upsert(2, 1, "bob")])
    seen = rows(con)
    con.rollback()

    assert count == 2
    assert seen == [(1, "anna", None, 2, False), (2, "bob", None, 1, False)]
    assert rows(con) == [(1, "ann", None, 1, False)]


def test_a_transaction_of_the_caller_is_committed_by_the_caller() -> None:
    con = database()

    con.begin()
    con.execute("INSERT INTO customers VALUES (8, 'hal', NULL, 1, false)")
    apply_changes(con, [upsert(8, 2, "hale"), delete(9, 1)])
    elsewhere = rows(con.cursor())
    con.commit()

    assert elsewhere == []
    assert rows(con.cursor()) == [(8, "hale", None, 2, False), (9, "", None, 1, True)]


def test_without_a_transaction_the_changes_are_there_for_others(tmp_path: Path) -> None:
    con = create(duckdb.connect(str(tmp_path / "customers.duckdb")))
    apply_changes(con, [upsert(1, 1, "ann"), delete(2, 1)])

    assert rows(con.cursor()) == [(1, "ann", None, 1, False), (2, "", None, 1, True)]
    con.begin()
    con.rollback()
    assert len(rows(con)) == 2


def test_awkward_text_and_many_rows_are_stored_as_they_are() -> None:
    con = database()
    odd = "O'Brien; -- \u00e4\n$1 ?"
    changes = [upsert(1, 1, odd, odd), *(upsert(n, 1, f"n{n}") for n in range(2, 202))]

    assert apply_changes(con, changes) == 201
    assert rows(con)[0] == (1, odd, odd, 1, False)
    assert rows(con)[-1] == (201, "n201", None, 1, False)

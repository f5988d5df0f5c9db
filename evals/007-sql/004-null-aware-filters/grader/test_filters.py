"""Expressions are run here, on a database that can reach nothing outside itself."""

from typing import Any

import duckdb
import pytest
from filters import where

SEALED = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}
PEOPLE = """
    CREATE TABLE people (id INTEGER, name TEXT, age INTEGER);
    INSERT INTO people VALUES
        (1, 'Ann', 30), (2, 'Bob', NULL), (3, NULL, 40), (4, '50%_\\ off', 50), (5, '50 off', 0);
"""
ALL = [1, 2, 3, 4, 5]


def found(conditions: list[tuple[str, str, Any]]) -> list[int]:
    """The ids that the expression finds; its negation must find exactly the others."""
    expression, parameters = where(conditions)
    con = duckdb.connect(":memory:", config=SEALED)
    con.execute(PEOPLE)

    def ids(condition: str) -> list[int]:
        sql = f"SELECT id FROM people WHERE {condition} ORDER BY id"
        return [row[0] for row in con.execute(sql, parameters).fetchall()]

    inside = ids(expression)
    assert sorted(inside + ids(f"NOT ({expression})")) == ALL
    return inside


def test_no_conditions_find_every_row() -> None:
    assert found([]) == ALL


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        (("name", "=", "Ann"), [1]),
        (("name", "=", None), [3]),
        (("name", "!=", "Ann"), [2, 3, 4, 5]),
        (("name", "!=", None), [1, 2, 4, 5]),
        (("age", "=", 0), [5]),
        (("age", "!=", 30), [2, 3, 4, 5]),
    ],
)
def test_null_is_equal_to_itself_and_to_nothing_else(condition: Any, ids: list[int]) -> None:
    assert found([condition]) == ids


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        ([], []),
        (["Ann", "Bob", "Zoe"], [1, 2]),
        ([None], [3]),
        (["Ann", None], [1, 3]),
    ],
)
def test_in_finds_what_is_equal_to_an_element(values: Any, ids: list[int]) -> None:
    assert found([("name", "in", values)]) == ids


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        ([], ALL),
        (["Ann", "Bob", "Zoe"], [3, 4, 5]),
        ([None], [1, 2, 4, 5]),
        (["Ann", None], [2, 4, 5]),
    ],
)
def test_not_in_finds_what_is_equal_to_no_element(values: Any, ids: list[int]) -> None:
    assert found([("name", "not in", values)]) == ids


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        (("age", "<", 40), [1, 5]),
        (("age", ">", 30), [3, 4]),
        (("age", ">", -1), [1, 3, 4, 5]),
        (("age", "<", None), []),
        (("age", ">", None), []),
    ],
)
def test_null_is_neither_less_nor_greater(condition: Any, ids: list[int]) -> None:
    assert found([condition]) == ids


@pytest.mark.parametrize(
    ("part", "ids"),
    [
        ("n", [1]),
        ("b", [2]),
        ("A", [1]),
        ("50%", [4]),
        ("_", [4]),
        ("\\", [4]),
        ("0 o", [5]),
        ("", [1, 2, 4, 5]),
    ],
)
def test_contains_takes_its_text_literally(part: str, ids: list[int]) -> None:
    assert found([("name", "contains", part)]) == ids


def test_all_conditions_have_to_hold() -> None:
    assert found([("age", "!=", 30), ("name", "not in", ["Bob"]), ("age", ">", 0)]) == [3, 4]


def test_alternatives_within_one_condition_do_not_loosen_the_others() -> None:
    assert found([("name", "in", ["Ann", None]), ("age", "in", [40, None])]) == [3]


def test_parameters_are_in_the_order_of_the_placeholders() -> None:
    conditions = [("name", "in", ["Bob", "Ann"]), ("age", ">", 20), ("name", "contains", "nn")]

    assert found(conditions) == [1]


@pytest.mark.parametrize(
    "column",
    ["first name", "select", 'say "hi"', "why?", "it's", "a.b", "{x}", "%s", "--", "name;"],
)
def test_any_column_name_is_taken_as_a_name(column: str) -> None:
    con = duckdb.connect(":memory:", config=SEALED)
    quoted = '"' + column.replace('"', '""') + '"'
    con.execute(f"CREATE TABLE t ({quoted} TEXT)")
    con.execute("INSERT INTO t VALUES ('x'), ('y'), (NULL)")

    expression, parameters = where([(column, "in", ["x", "z"]), (column, "!=", "y")])

    assert con.execute(f"SELECT * FROM t WHERE {expression}", parameters).fetchall() == [("x",)]


@pytest.mark.parametrize("operator", ["=", "!=", "<", ">", "contains"])
def test_values_stay_out_of_the_text(operator: str) -> None:
    expression, _ = where([("name", operator, "zebra' OR 1=1 --")])

    assert "zebra" not in expression


def test_values_of_lists_stay_out_of_the_text() -> None:
    expression, _ = where([("name", "in", ["zebra"]), ("name", "not in", ["zebra"])])

    assert "zebra" not in expression


@pytest.mark.parametrize("operator", ["", "==", "like", "is", "= 1 OR 1 ="])
def test_an_unknown_operator_is_refused(operator: str) -> None:
    with pytest.raises(ValueError):
        where([("name", operator, "Ann")])

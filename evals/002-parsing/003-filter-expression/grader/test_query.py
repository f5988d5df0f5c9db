"""What binds closer, what is a word of its own, and where a query goes wrong."""

from typing import Any

import pytest
from query import QueryError, parse

A, B, C, D = (("=", name, 1) for name in "abcd")


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_comparisons_with_and_without_spaces(operator: str) -> None:
    assert parse(f"size {operator} 10") == (operator, "size", 10)
    assert parse(f"size{operator}-10") == (operator, "size", -10)
    assert parse(f"\n size\t{operator}\n'x' ") == (operator, "size", "x")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0", 0),
        ("-007", -7),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("''", ""),
        ("''''", "'"),
        ("'it''s'", "it's"),
        ("'''a'''", "'a'"),
        ("' and (b = 1'", " and (b = 1"),
        ("'日本\n\\'", "日本\n\\"),
        ("'42'", "42"),
    ],
)
def test_values(written: str, value: Any) -> None:
    assert parse(f"a = {written}") == ("=", "a", value)


def test_membership_in_a_list() -> None:
    assert parse("a in (1)") == ("in", "a", (1,))
    assert parse("a in(1,'x' , -3)") == ("in", "a", (1, "x", -3))
    assert parse("a not in ('x', 'y')") == ("not", ("in", "a", ("x", "y")))
    assert parse("not a NOT  IN (1)") == ("not", ("not", ("in", "a", (1,))))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a=1 or b=1 and c=1", ("or", A, ("and", B, C))),
        ("a=1 and b=1 or c=1", ("or", ("and", A, B), C)),
        ("a=1 or b=1 and c=1 or d=1", ("or", ("or", A, ("and", B, C)), D)),
        ("a=1 and b=1 or c=1 and d=1", ("or", ("and", A, B), ("and", C, D))),
        ("not a=1 and b=1", ("and", ("not", A), B)),
        ("a=1 or not b=1 or c=1", ("or", ("or", A, ("not", B)), C)),
        ("not not a=1", ("not", ("not", A))),
    ],
)
def test_not_binds_closest_then_and_then_or(text: str, tree: tuple[Any, ...]) -> None:
    assert parse(text) == tree


def test_equal_operators_group_from_the_left() -> None:
    assert parse("a=1 and b=1 and c=1 and d=1") == ("and", ("and", ("and", A, B), C), D)
    assert parse("a=1 or b=1 or c=1") == ("or", ("or", A, B), C)


def test_parentheses_override_and_leave_no_trace() -> None:
    assert parse("(a=1 or b=1) and c=1") == ("and", ("or", A, B), C)
    assert parse("a=1 and (b=1 and c=1)") == ("and", A, ("and", B, C))
    assert parse("not (a=1 or b=1)") == ("not", ("or", A, B))
    assert parse("(((a=1)))") == A


@pytest.mark.parametrize(
    "field", ["order", "android", "notes", "inside", "x_in", "_", "a.b.c", "or_1", "in.x", "And2"]
)
def test_names_may_contain_keywords(field: str) -> None:
    assert parse(f"{field} = 1 and not {field} = 1") == (
        "and",
        ("=", field, 1),
        ("not", ("=", field, 1)),
    )


def test_keywords_have_any_case_and_names_keep_theirs() -> None:
    assert parse("Size = 1 AND NoT size = 1 oR a In (1)") == (
        "or",
        ("and", ("=", "Size", 1), ("not", ("=", "size", 1))),
        ("in", "a", (1,)),
    )


@pytest.mark.parametrize(
    "text",
    ["", "  ", "a", "a =", "a not", "a in", "a in (", "a in (1,", "(a = 1 ", "not ", "a=1 or "],
)
def test_a_query_that_ends_too_early_is_wrong_at_its_end(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)

    assert caught.value.position == len(text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a = 1)", 5),
        ("a = 1 b = 2", 6),
        ("a = b", 4),
        ("1 = a", 0),
        ("a < 1 < 3", 6),
        ("or = 1", 0),
        ("a = 1 and or b = 2", 10),
        ("a = IN", 4),
        ("a in ()", 6),
        ("a in (1 2)", 8),
        ("a in (1,)", 8),
        ("a in 1", 5),
        ("a in (not)", 6),
        ("a not = 1", 6),
        ("a and b = 1", 2),
        ("()", 1),
        ("a = == 1", 4),
        ("a = - 1", 4),
        ("a = 1 & b = 2", 6),
        ("a = 'x", 4),
        ("a = 'it''s", 4),
        ("a = 1 and b = 'x' '", 18),
        ("größe = 1", 2),
        ("a\u00a0= 1", 1),
        ("a = ١", 4),
    ],
)
def test_the_error_is_at_the_first_part_that_can_not_stand_there(text: str, position: int) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)

    assert caught.value.position == position

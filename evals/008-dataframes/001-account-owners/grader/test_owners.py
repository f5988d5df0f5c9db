"""Frames are compared by values, index and, where the task names one, dtype."""

from typing import Any

import pandas as pd
import pytest
from owners import attach_owners
from pandas.testing import assert_frame_equal


def accounts(*names: str | None) -> pd.Series:
    return pd.Series(list(names), dtype="str")


def assigned(*rows: tuple[str | None, str, str, int]) -> pd.DataFrame:
    account, since, owner, badge = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pd.DataFrame(
        {
            "account": accounts(*account),
            "since": pd.to_datetime(pd.Series(list(since), dtype="str")),
            "owner": pd.Series(list(owner), dtype="str"),
            "badge": pd.Series(list(badge), dtype="int64"),
        }
    )


def values(column: Any) -> list[Any]:
    return [None if pd.isna(value) else value for value in column]


def test_owner_and_badge_are_found_by_account() -> None:
    invoices = pd.DataFrame(
        {"account": accounts("a", None, "b", "c"), "amount": [1.5, 2.0, 3.0, 0]}
    )
    table = assigned(("c", "2024-01-01", "Lou", 9), ("a", "2024-01-01", "Kim", 7))

    result = attach_owners(invoices, table)

    assert list(result.columns) == ["account", "amount", "owner", "badge"]
    assert values(result["owner"]) == ["Kim", None, None, "Lou"]
    assert values(result["badge"]) == [7, None, None, 9]


def test_the_latest_assignment_counts_wherever_it_stands() -> None:
    invoices = pd.DataFrame({"account": accounts("a", "a")})
    table = assigned(
        ("a", "2024-02-01", "mid", 2),
        ("a", "2024-03-01", "new", 3),
        ("a", "2024-01-01", "old", 1),
    )

    assert values(attach_owners(invoices, table)["owner"]) == ["new", "new"]


def test_of_equally_late_assignments_the_last_row_counts() -> None:
    invoices = pd.DataFrame({"account": accounts("a", "b")})
    pairs = [("a", "2024-03-01", f"n{n}", n) for n in range(40)]
    table = assigned(*pairs, ("b", "2024-01-01", "Bo", 99), ("a", "2024-02-01", "old", 50))

    result = attach_owners(invoices, table)

    assert values(result["owner"]) == ["n39", "Bo"]
    assert values(result["badge"]) == [39, 99]


def test_a_missing_account_never_matches_a_missing_account() -> None:
    invoices = pd.DataFrame({"account": accounts(None, "a", None)})
    table = assigned((None, "2024-01-01", "nobody", 1), ("a", "2024-01-01", "Kim", 7))

    result = attach_owners(invoices, table)

    assert values(result["owner"]) == [None, "Kim", None]
    assert values(result["badge"]) == [None, 7, None]


@pytest.mark.parametrize("labels", [[30, 10, 20], ["x", "x", "y"], [0, 0, 0]])
def test_rows_keep_their_order_and_their_labels(labels: list[Any]) -> None:
    index = pd.Index(labels, name="line")
    invoices = pd.DataFrame({"account": ["b", "a", "b"], "number": [1, 2, 3]}, index=index)
    table = assigned(("a", "2024-01-01", "Kim", 7), ("b", "2024-01-01", "Bo", 8))

    result = attach_owners(invoices, table)

    assert list(result.index) == labels
    assert result.index.name == "line"
    assert list(result["number"]) == [1, 2, 3]
    assert list(result["owner"]) == ["Bo", "Kim", "Bo"]


def test_the_index_of_the_assignments_means_nothing() -> None:
    invoices = pd.DataFrame({"account": ["a", "b"]}, index=[5, 6])
    table = assigned(("b", "2024-01-01", "Bo", 8), ("a", "2024-01-01", "Kim", 7))
    table.index = pd.Index([5, 5])

    assert list(attach_owners(invoices, table)["owner"]) == ["Kim", "Bo"]


def test_badges_are_exact_and_of_dtype_int64_with_missing_ones() -> None:
    badge = 900719925474099301
    invoices = pd.DataFrame({"account": accounts("z", "a")})

    result = attach_owners(invoices, assigned(("a", "2024-01-01", "Kim", badge)))

    assert result["badge"].dtype == pd.Int64Dtype()
    assert values(result["badge"]) == [None, badge]


def test_badges_are_of_dtype_int64_where_none_is_missing() -> None:
    result = attach_owners(
        pd.DataFrame({"account": accounts("a")}), assigned(("a", "2024-01-01", "Kim", 7))
    )

    assert result["badge"].dtype == pd.Int64Dtype()


def test_columns_of_the_invoices_are_kept_whatever_their_name() -> None:
    invoices = pd.DataFrame(
        {
            "since": pd.to_datetime(["2020-01-01", "2020-01-02"]),
            "account": accounts("a", "x"),
            "count": pd.Series([1, 2], dtype="int8"),
            "index": ["p", "q"],
        }
    )

    result = attach_owners(invoices, assigned(("a", "2024-01-01", "Kim", 7)))

    assert list(result.columns) == ["since", "account", "count", "index", "owner", "badge"]
    assert_frame_equal(result[list(invoices.columns)], invoices)


def test_without_assignments_everything_is_missing() -> None:
    invoices = pd.DataFrame({"account": ["a", None], "n": [1, 2]}, index=[7, 7])

    result = attach_owners(invoices, assigned())

    assert_frame_equal(result[["account", "n"]], invoices)
    assert values(result["owner"]) == [None, None]
    assert values(result["badge"]) == [None, None]
    assert result["badge"].dtype == pd.Int64Dtype()


def test_without_invoices_there_are_columns_and_no_rows() -> None:
    invoices = pd.DataFrame({"account": accounts(), "n": pd.Series([], dtype="int64")})

    result = attach_owners(invoices, assigned(("a", "2024-01-01", "Kim", 7)))

    assert list(result.columns) == ["account", "n", "owner", "badge"]
    assert len(result) == 0
    assert result["badge"].dtype == pd.Int64Dtype()


def test_the_arguments_are_left_alone() -> None:
    invoices = pd.DataFrame({"account": ["a", None]}, index=[2, 1])
    table = assigned(("a", "2024-02-01", "new", 2), ("a", "2024-01-01", "old", 1))
    invoices_before, table_before = invoices.copy(deep=True), table.copy(deep=True)

    result = attach_owners(invoices, table)

    assert result is not invoices
    assert_frame_equal(invoices, invoices_before)
    assert_frame_equal(table, table_before)

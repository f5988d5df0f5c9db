"""Values are compared as plain Python values, missing ones written as None."""

from typing import Any

import pandas as pd
import pytest
from parcels import read_parcels

HEADER = "tracking,country,grams,customs,delivered,note"
COLUMNS = HEADER.split(",")


def read(*lines: str) -> pd.DataFrame:
    return read_parcels("\n".join([HEADER, *lines]) + "\n")


def column(name: str, *lines: str) -> list[Any]:
    return [None if pd.isna(value) else value for value in read(*lines)[name].tolist()]


def check_types(frame: pd.DataFrame) -> None:
    assert list(frame.columns) == COLUMNS
    assert frame["grams"].dtype == pd.Int64Dtype()
    assert frame["customs"].dtype == pd.Int64Dtype()
    assert frame["delivered"].dtype == pd.BooleanDtype()


def test_a_full_record_is_read() -> None:
    frame = read("0042,NA,950,7,yes,n/a")

    check_types(frame)
    assert frame.iloc[0].tolist() == ["0042", "NA", 950, 7, True, "n/a"]


def test_tracking_keeps_its_zeros_and_all_its_digits() -> None:
    numbers = ["0007", "00000000000000000000001", "98765432109876543210987"]

    assert column("tracking", *(f"{number},DE,1,1,yes," for number in numbers)) == numbers


def test_every_country_code_is_a_code_and_only_an_empty_one_is_missing() -> None:
    lines = ["1,NA,1,1,yes,", "2,,1,1,yes,", "3,NO,1,1,yes,", "4,DE,1,1,yes,"]

    assert column("country", *lines) == ["NA", None, "NO", "DE"]


@pytest.mark.parametrize("name", ["grams", "customs"])
def test_whole_numbers_stay_whole_beside_missing_ones(name: str) -> None:
    lines = ["1,DE,5,5,yes,", "2,DE,,,yes,", "3,DE,0,0,yes,"]

    assert column(name, *lines) == [5, None, 0]
    assert read(*lines)[name].dtype == pd.Int64Dtype()


def test_long_customs_numbers_are_exact_beside_missing_ones() -> None:
    lines = ["1,DE,1,900719925474099301,no,", "2,DE,1,,no,", "3,DE,1,999999999999999999,no,"]

    assert column("customs", *lines) == [900719925474099301, None, 999999999999999999]


def test_delivered_is_yes_no_or_not_known() -> None:
    lines = ["1,DE,1,1,yes,", "2,DE,1,1,,", "3,DE,1,1,no,"]

    assert column("delivered", *lines) == [True, None, False]
    assert read(*lines)["delivered"].dtype == pd.BooleanDtype()


@pytest.mark.parametrize(
    "note",
    [
        "",
        "NA",
        "null",
        "None",
        "nan",
        "007",
        "1e5",
        "1.50",
        "True",
        "yes",
        "-",
        "#N/A",
        "# no",
        "'",
    ],
)
def test_a_note_is_text_whatever_it_looks_like(note: str) -> None:
    assert column("note", f"1,DE,1,1,yes,{note}") == [note]


def test_notes_of_digits_only_are_text_too() -> None:
    assert column("note", "1,DE,1,1,yes,10", "2,DE,1,1,yes,020") == ["10", "020"]


def test_spaces_around_a_note_are_kept() -> None:
    assert column("note", "1,DE,1,1,yes,  ring twice ", "2,DE,1,1,yes, ") == ["  ring twice ", " "]


def test_quoted_notes_may_hold_commas_quotes_and_lines() -> None:
    lines = ['1,DE,1,1,yes,"a, ""b""\n\nc"', '2,DE,1,1,yes,""']

    assert column("note", *lines) == ['a, "b"\n\nc', ""]


def test_columns_may_come_in_any_order() -> None:
    frame = read_parcels("note,delivered,customs,grams,country,tracking\nhi,no,8,,NA,01\n")

    check_types(frame)
    assert frame["tracking"].tolist() == ["01"]
    assert frame["country"].tolist() == ["NA"]
    assert frame["note"].tolist() == ["hi"]
    assert frame["delivered"].tolist() == [False]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["1,,,,,", "2,,,,,"],
        ["1,DE,1,1,yes,x", "2,NO,2,2,no,y"],
    ],
)
def test_types_do_not_depend_on_the_data(lines: list[str]) -> None:
    frame = read(*lines)

    check_types(frame)
    assert len(frame) == len(lines)


def test_records_keep_their_order_under_the_default_index() -> None:
    frame = read("3,DE,1,1,yes,", "1,DE,1,1,yes,", "2,DE,1,1,yes,")

    assert frame["tracking"].tolist() == ["3", "1", "2"]
    assert frame.index.tolist() == [0, 1, 2]


def test_text_values_are_str() -> None:
    frame = read("1,DE,1,1,yes,5", "2,,1,1,yes,")

    assert [type(value) for value in frame["tracking"]] == [str, str]
    assert [type(value) for value in frame["note"]] == [str, str]
    assert type(frame["country"].iloc[0]) is str

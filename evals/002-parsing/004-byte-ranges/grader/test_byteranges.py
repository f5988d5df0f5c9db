"""Malformed, unsatisfiable and satisfiable are three different things."""

import pytest
from byteranges import NotSatisfiable, resolve


@pytest.mark.parametrize(
    ("header", "parts"),
    [
        ("bytes=0-0", [(0, 0)]),
        ("bytes=10-19", [(10, 19)]),
        ("bytes=90-", [(90, 99)]),
        ("bytes=-10", [(90, 99)]),
        ("bytes=0-", [(0, 99)]),
        ("bytes=007-09", [(7, 9)]),
    ],
)
def test_the_three_kinds_of_range(header: str, parts: list[tuple[int, int]]) -> None:
    assert resolve(header, 100) == parts


@pytest.mark.parametrize(
    ("header", "parts"),
    [
        ("bytes=99-100", [(99, 99)]),
        pytest.param("bytes=50-" + "9" * 1000, [(50, 99)], id="huge-end"),
        ("bytes=-100", [(0, 99)]),
        ("bytes=-101", [(0, 99)]),
        pytest.param("bytes=-" + "9" * 1000, [(0, 99)], id="huge-suffix"),
    ],
)
def test_ranges_stop_at_the_ends_of_the_file(header: str, parts: list[tuple[int, int]]) -> None:
    assert resolve(header, 100) == parts


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=100-,-00"])
def test_a_header_that_selects_nothing_is_not_satisfiable(header: str) -> None:
    with pytest.raises(NotSatisfiable):
        resolve(header, 100)


@pytest.mark.parametrize("header", ["bytes=0-", "bytes=0-0", "bytes=-1", "bytes=-0", "bytes=,5-9"])
def test_nothing_can_be_selected_of_an_empty_file(header: str) -> None:
    with pytest.raises(NotSatisfiable):
        resolve(header, 0)


def test_elements_that_select_nothing_are_dropped() -> None:
    assert resolve("bytes=200-300,5-9,-0,100-", 100) == [(5, 9)]


@pytest.mark.parametrize(
    "header",
    ["BYTES=1-2,5-6", "Bytes= 1-2\t,\t 5-6 ", "bytes=,1-2,, ,5-6,"],
)
def test_case_blanks_and_empty_elements_do_not_matter(header: str) -> None:
    assert resolve(header, 100) == [(1, 2), (5, 6)]


@pytest.mark.parametrize(
    ("header", "parts"),
    [
        ("bytes=50-59,10-19", [(10, 19), (50, 59)]),
        ("bytes=10-19,15-29", [(10, 29)]),
        ("bytes=10-19,20-29", [(10, 29)]),
        ("bytes=10-19,21-29", [(10, 19), (21, 29)]),
        ("bytes=10-50,20-30,40-45,52-60", [(10, 50), (52, 60)]),
        ("bytes=-5,0-94", [(0, 99)]),
        ("bytes=30-39,10-19,20-29,20-29", [(10, 39)]),
        ("bytes=90-,-200", [(0, 99)]),
    ],
)
def test_parts_are_sorted_and_merged(header: str, parts: list[tuple[int, int]]) -> None:
    assert resolve(header, 100) == parts


MALFORMED = [
    "",
    "bytes",
    "bytes=",
    "bytes= , ,",
    "0-5",
    "items=0-5",
    "bytes 0-5",
    "bytes =0-5",
    " bytes=0-5",
    "bytes=5",
    "bytes=-",
    "bytes=--5",
    "bytes=1-2-3",
    "bytes=1 - 2",
    "bytes=a-5",
    "bytes=0x1-5",
    "bytes=1-5;7-9",
    "bytes=0-5,x",
    "bytes=x,0-5",
]


@pytest.mark.parametrize("header", MALFORMED)
def test_a_malformed_header_is_ignored(header: str) -> None:
    assert resolve(header, 100) is None


@pytest.mark.parametrize(
    "number", ["+1", "1_0", "1.0", "1e1", "\u0661", "\u00b2", "\uff11", "\u00a01", "1\n", "1\r"]
)
def test_numbers_are_plain_digits(number: str) -> None:
    assert resolve(f"bytes={number}-50", 100) is None
    assert resolve(f"bytes=0-{number}", 100) is None
    assert resolve(f"bytes=-{number}", 100) is None


@pytest.mark.parametrize("size", [0, 3, 100])
@pytest.mark.parametrize(
    "header", ["bytes=5-4", "bytes=200-100", "bytes=0-0,9-8", "bytes=900-,5-4"]
)
def test_a_range_that_ends_before_it_begins_is_malformed(header: str, size: int) -> None:
    assert resolve(header, size) is None


@pytest.mark.parametrize("header", ["bytes=", "bytes=a-b", "bytes=200-,x"])
def test_malformed_is_malformed_whatever_the_size(header: str) -> None:
    assert resolve(header, 0) is None
    assert resolve(header, 1) is None


def test_many_elements_are_no_trouble() -> None:
    header = "bytes=" + ",".join(f"{first}-{first + 1}" for first in range(0, 30_000, 3))

    assert resolve(header, 30_000) == [(first, first + 1) for first in range(0, 30_000, 3)]

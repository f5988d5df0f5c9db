"""Cells are not code points, and cutting respects what belongs together."""

import pytest
from columns import cells, fit, table

E_ACUTE = "e\u0301"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("abc", 3),
        ("日本語", 6),
        ("ｱ", 1),
        ("Ａ", 2),
        ("é", 1),
        (E_ACUTE, 1),
        ("\u200b\u200d\ufeff", 0),
        ("a\u20dd", 1),
        ("\u1100", 2),
        ("🎈!", 3),
        ("…", 1),
        ("\u0903", 1),
    ],
)
def test_cells_are_counted_per_code_point(text: str, count: int) -> None:
    assert cells(text) == count


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        ("", 3, "   "),
        ("ab", 4, "ab  "),
        ("日本", 5, "日本 "),
        (E_ACUTE, 3, E_ACUTE + "  "),
        ("a\u200b", 2, "a\u200b "),
    ],
)
def test_short_texts_are_filled_up(text: str, width: int, fitted: str) -> None:
    assert fit(text, width) == fitted


@pytest.mark.parametrize("text", ["abcd", "日本", E_ACUTE * 4, "ab\u200d🎈", "abc…"])
def test_a_text_that_just_fits_is_left_alone(text: str) -> None:
    assert fit(text, 4) == text


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        ("abcdef", 4, "abc…"),
        ("abcdef", 1, "…"),
        ("日本語", 5, "日本…"),
        ("a日本", 4, "a日…"),
        ("日a本b", 4, "日a…"),
    ],
)
def test_long_texts_are_cut(text: str, width: int, fitted: str) -> None:
    assert fit(text, width) == fitted


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [("日本語", 4, "日… "), ("日本語", 2, "… "), ("ab日本", 4, "ab… "), ("日本語", 1, "…")],
)
def test_the_place_of_half_a_wide_character_is_filled(text: str, width: int, fitted: str) -> None:
    assert fit(text, width) == fitted


def test_marks_stay_with_the_character_before_them() -> None:
    assert fit(E_ACUTE * 3, 2) == E_ACUTE + "…"
    assert fit("xe\u0301\u0302\u200dyz", 3) == "xe\u0301\u0302\u200d…"


def test_marks_of_a_character_that_is_cut_off_go_with_it() -> None:
    assert fit("xyz\u0301", 2) == "x…"
    assert fit("ab日\u0301本", 4) == "ab… "
    assert fit("日\u0301本", 1) == "…"


def test_columns_are_as_wide_as_their_widest_text() -> None:
    rows = [["name", "city", "n"], ["Aoi", "東京都", "10"], [f"Ren{E_ACUTE}e", "Rom", "7"]]

    assert table(rows, 20) == "\n".join(
        [
            "name   city    n",
            "Aoi    東京都  10",
            f"Ren{E_ACUTE}e  Rom     7",
        ]
    )


def test_columns_are_at_most_as_wide_as_allowed() -> None:
    rows = [["東京都", "abcdef"], ["ab", "cd"]]

    assert table(rows, 4) == "東…   abc…\nab    cd"


def test_short_rows_are_filled_and_lines_end_without_spaces() -> None:
    rows = [["a"], ["bb", "", "c"], [], ["", "d"], ["e ", " "]]

    assert table(rows, 9) == "a\nbb     c\n\n    d\ne"


def test_other_blanks_than_spaces_are_kept() -> None:
    assert table([["a\u3000"], ["b\u00a0"]], 9) == "a\u3000\nb\u00a0"


def test_nothing_gives_an_empty_text() -> None:
    assert table([], 5) == ""
    assert table([[]], 5) == ""
    assert table([[""], [""]], 5) == "\n"

"""Fields are read once from left to right, and every value survives the way there and back."""

import pytest
from logline import LineError, format_line, parse_line


def test_the_three_kinds_of_field() -> None:
    line = r'level=info msg="user said \"hi\"" url=/find?q=1 retried note='

    assert parse_line(line) == {
        "level": "info",
        "msg": 'user said "hi"',
        "url": "/find?q=1",
        "retried": None,
        "note": "",
    }


@pytest.mark.parametrize("line", ["", " ", "\t \t"])
def test_a_blank_line_has_no_fields(line: str) -> None:
    assert parse_line(line) == {}


def test_fields_are_separated_by_any_run_of_spaces_and_tabs() -> None:
    assert list(parse_line("\t b=1 \t a \t\tc=3  ").items()) == [
        ("b", "1"),
        ("a", None),
        ("c", "3"),
    ]


@pytest.mark.parametrize("char", ["\u00a0", "\u2028", "\x0b", "\x1f", "\r", "\n", "'", ","])
def test_no_other_character_separates_or_quotes(char: str) -> None:
    assert parse_line(f"a={char}b{char} c{char}d") == {"a": f"{char}b{char}", f"c{char}d": None}


def test_a_quoted_value_may_be_empty_or_hold_separators() -> None:
    assert parse_line('a="" b="x=1 y=\'2\'\t#" c="=" d') == {
        "a": "",
        "b": "x=1 y='2'\t#",
        "c": "=",
        "d": None,
    }


def test_a_backslash_is_plain_outside_of_quotes() -> None:
    assert parse_line(r"path=C:\new\table \n=\\") == {"path": r"C:\new\table", r"\n": r"\\"}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"\n\t\"\\", '\n\t"\\'),
        (r"\\n", r"\n"),
        (r"\\\n", "\\\n"),
        (r"\\\\n", r"\\n"),
        (r"\\\"", '\\"'),
        (r"C:\\temp\\", "C:\\temp\\"),
    ],
)
def test_escapes_are_read_once_from_left_to_right(written: str, value: str) -> None:
    assert parse_line(f'a="{written}" b') == {"a": value, "b": None}


@pytest.mark.parametrize(
    ("line", "position"),
    [
        ("=1", 0),
        ("a=1 =2", 4),
        ('a b"c', 3),
        ('a="x" "y"', 6),
        ('a=b"c"', 3),
        ('a=1 b="x', 6),
        ('b="', 2),
        ('a="x\\" b=1', 2),
        (r'a="ok\q"', 5),
        (r'a="\\\x"', 5),
        ('a="x"y', 5),
        ('a="x"=1', 5),
        ('a="x""y"', 5),
        ("key=1 other key=2", 12),
        ("a  a", 3),
    ],
)
def test_the_error_says_where_it_is(line: str, position: int) -> None:
    with pytest.raises(LineError) as caught:
        parse_line(line)

    assert caught.value.position == position


def test_values_are_quoted_only_where_needed() -> None:
    fields = {"a": "x", "b": "", "c": None, "d": "x y", "e": "k=v", "f": "it's", "g": r"\d+"}

    assert format_line(fields) == r"""a=x b= c d="x y" e=k=v f=it's g=\d+"""


def test_every_escape_is_used_in_a_quoted_value() -> None:
    assert format_line({"a": 'say "\\"\n\tnow'}) == r'a="say \"\\\"\n\tnow"'
    assert format_line({"a": "\t"}) == r'a="\t"'


def test_no_fields_are_an_empty_line() -> None:
    assert format_line({}) == ""


@pytest.mark.parametrize(
    "value",
    [None, "", " ", "\\", "\\ ", "\\n x", '"', '\\"', "a\\\nb", "\u00a0", "\r", "=", '="x', "ö 日"],
)
def test_what_was_written_is_read_back(value: str | None) -> None:
    fields = {"before": "1", "key": value, "after": None}

    assert list(parse_line(format_line(fields)).items()) == list(fields.items())

"""What a command printed, made harmless to show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.text import clean, cut


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        (b"a\r\nb\rc", "a\nbc"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b[2J\x1b[H\x1b[?25lgone", "gone"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bP+q544e\x1b\\x", "x"),
        (b"\x1b(Bx\x1bc", "x"),
        (b"\x1b[31", "31"),
        (b"a\x00b\x07c\x7fd\x08", "abcd"),
        ("c1 \x9b31m".encode(), "c1 31m"),
        ("pass\u202eliaf\u2066 \u200bx\ufeff".encode(), "passliaf x"),
        ("tag\U000e0041s".encode(), "tags"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ("Grüße 世界 👍".encode(), "Grüße 世界 👍"),
    ],
)
def test_text_stays_and_everything_that_acts_on_a_terminal_goes(raw: bytes, text: str) -> None:
    cleaned = clean(raw, 1000)

    assert cleaned == text


@given(st.binary(max_size=300), st.integers(0, 200))
def test_whatever_comes_in_nothing_that_acts_or_is_too_long_comes_out(
    raw: bytes, most: int
) -> None:
    cleaned = clean(raw, most)

    assert len(cleaned) <= most
    assert all(char.isprintable() or char in "\n\t" or ord(char) > 127 for char in cleaned)
    assert "\x1b" not in cleaned


def test_of_a_long_text_the_beginning_and_the_end_are_kept() -> None:
    text = "begin" + "x" * 10_000 + "end"

    short = cut(text, 100)

    assert len(short) == 100
    assert short.startswith("begin")
    assert short.endswith("end")
    assert "9908 characters cut" in short

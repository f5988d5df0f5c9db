"""The same bytes give the same events however they are cut, and as early as possible."""

import pytest
from eventstream import EventReader


def read(*chunks: bytes) -> list[dict[str, str]]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


def bytewise(stream: bytes) -> list[dict[str, str]]:
    return read(*(stream[i : i + 1] for i in range(len(stream))))


def test_an_event_is_its_fields_in_order() -> None:
    (event,) = read(b"kind: note\nid:7\nempty\nalso:\n\n")

    assert list(event.items()) == [("kind", "note"), ("id", "7"), ("empty", ""), ("also", "")]


def test_only_the_first_colon_and_one_space_are_special() -> None:
    (event,) = read(b"a: b: c\nd:  two\ne:\tx \n f :g\n\n")

    assert event == {"a": "b: c", "d": " two", "e": "\tx ", " f ": "g"}


def test_values_of_a_repeated_name_are_joined() -> None:
    (event,) = read(b"data: one\nid: 1\ndata:\ndata: three\n\n")

    assert list(event.items()) == [("data", "one\n\nthree"), ("id", "1")]


def test_an_empty_first_value_is_kept_when_joined() -> None:
    assert read(b"data\ndata: x\n\n") == [{"data": "\nx"}]


def test_comments_and_empty_events_are_not_reported() -> None:
    assert read(b"\n\n: hello\n\n:\na: 1\n: more\nb: 2\n\n\n\n") == [{"a": "1", "b": "2"}]


def test_an_event_without_its_empty_line_is_not_reported() -> None:
    assert read(b"a: 1\n\nb: 2\n") == [{"a": "1"}]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_end_in_three_ways(end: bytes) -> None:
    stream = end.join([b"a: 1", b"b: 2", b"", b"a: 3", b"", b""])

    assert read(stream) == [{"a": "1", "b": "2"}, {"a": "3"}]
    assert bytewise(stream) == [{"a": "1", "b": "2"}, {"a": "3"}]


def test_ends_of_lines_may_be_mixed() -> None:
    stream = b"a: 1\r\nb: 2\rc: 3\n\rd: 4\n\r\ne: 5\r\r\n"

    expected = [{"a": "1", "b": "2", "c": "3"}, {"d": "4"}, {"e": "5"}]

    assert read(stream) == expected
    assert bytewise(stream) == expected


def test_nothing_else_ends_a_line() -> None:
    text = "x\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029y"

    assert read(f"a: {text}\n\n".encode()) == [{"a": text}]


def test_an_event_is_reported_with_the_chunk_that_completes_it() -> None:
    reader = EventReader()
    chunks = [b"a: 1\n", b"\n", b"b: 2\r", b"\r", b"\nc: 3", b"\r\n\r", b"", b"\n", b"d: 4\r\n\r\n"]

    answers = [reader.feed(chunk) for chunk in chunks]

    assert answers == [
        [],
        [{"a": "1"}],
        [],
        [{"b": "2"}],
        [],
        [{"c": "3"}],
        [],
        [],
        [{"d": "4"}],
    ]


def test_an_empty_chunk_does_not_part_a_line_end() -> None:
    assert read(b"a: 1\r", b"", b"\nb: 2\r", b"\n", b"\r", b"", b"\n") == [{"a": "1", "b": "2"}]


def test_a_line_feed_of_its_own_after_a_whole_line_end_counts() -> None:
    assert read(b"a: 1\r\n", b"\nb: 2\r", b"\n", b"\n") == [{"a": "1"}, {"b": "2"}]


def test_characters_may_be_cut_anywhere() -> None:
    text = "größe: 日本 🎈\n\nnächste: é\n\n"

    expected = [{"größe": "日本 🎈"}, {"nächste": "é"}]

    assert bytewise(text.encode()) == expected
    for cut in range(len(text.encode())):
        assert read(text.encode()[:cut], text.encode()[cut:]) == expected


def test_invalid_bytes_are_replaced() -> None:
    stream = b"a: \xff\xe6\x97\nb: \xf0\x9f\x8e\r\r"
    expected = {"a": b"\xff\xe6\x97".decode(errors="replace"), "b": "\ufffd"}

    assert read(stream) == [expected]
    assert bytewise(stream) == [expected]


def test_a_byte_order_mark_is_dropped_at_the_very_start_only() -> None:
    stream = "\ufeffa: \ufeff1\n\n\ufeffb: 2\n\n".encode()
    expected = [{"a": "\ufeff1"}, {"\ufeffb": "2"}]

    assert read(stream) == expected
    assert bytewise(stream) == expected

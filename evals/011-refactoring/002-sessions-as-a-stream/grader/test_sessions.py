"""Sessions of a log as a stream: the old results, read no sooner than needed."""

from collections.abc import Iterator
from itertools import islice

import pytest
from sessions import LogError, Session, read_sessions


class Tape:
    """Lines that can be read once and that know how many of them were read."""

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        self.read = 0

    def __iter__(self) -> Iterator[str]:
        assert self.read == 0, "the lines are read a second time"
        for line in self.lines:
            self.read += 1
            yield line


def a_log_without_end() -> Iterator[str]:
    """A session per line; whoever tries to read all of it is stopped."""
    for number in range(1000):
        yield f"{number * 100} event {number}"
    raise AssertionError("the log is read without end")


def test_a_pause_longer_than_the_gap_begins_a_session() -> None:
    lines = ["0 a", "10 b", "20 c", "31 d", "31 e", "99 f"]

    found = list(read_sessions(lines, 10))

    assert found == [
        Session(0, 20, ["a", "b", "c"]),
        Session(31, 31, ["d", "e"]),
        Session(99, 99, ["f"]),
    ]


def test_blank_lines_and_remarks_are_no_events() -> None:
    lines = ["# log", "", "  5 a b  \n", "   ", "#6 x", "7  c\n"]

    assert list(read_sessions(lines, 10)) == [Session(5, 7, ["a b", " c"])]


@pytest.mark.parametrize("lines", [[], ["", "# nothing"]])
def test_a_log_without_events_has_no_sessions(lines: list[str]) -> None:
    assert list(read_sessions(lines, 10)) == []


@pytest.mark.parametrize("gap", [0, -1])
def test_a_wrong_gap_is_refused_by_the_call_itself(gap: int) -> None:
    tape = Tape("1 a")

    with pytest.raises(ValueError, match="^gap must be above zero$"):
        read_sessions(tape, gap)

    assert tape.read == 0


def test_the_call_reads_nothing() -> None:
    tape = Tape("1 a", "2 b")

    read_sessions(tape, 10)

    assert tape.read == 0


def test_a_session_is_handed_out_when_the_next_one_begins() -> None:
    tape = Tape("1 a", "2 b", "", "50 c", "51 d", "90 e", "91 f")
    sessions = read_sessions(tape, 10)

    read = []
    for _ in sessions:
        read.append(tape.read)

    assert read == [4, 6, 7]


def test_an_endless_log_is_read_only_as_far_as_asked() -> None:
    lines = a_log_without_end()

    found = list(islice(read_sessions(lines, 10), 3))

    assert [session.texts for session in found] == [["event 0"], ["event 1"], ["event 2"]]
    assert next(lines) == "400 event 4"


def test_the_result_is_an_iterator_that_ends_once() -> None:
    sessions = read_sessions(["1 a"], 10)

    assert next(sessions) == Session(1, 1, ["a"])
    assert list(sessions) == []
    assert list(sessions) == []


@pytest.mark.parametrize("bad", ["x broken", "12", "-3 negative", "1.5 half"])
def test_complete_sessions_come_before_the_error(bad: str) -> None:
    sessions = read_sessions(["1 a", "# remark", "50 b", "", bad, "99 c"], 10)

    assert next(sessions) == Session(1, 1, ["a"])
    with pytest.raises(LogError, match="^line 5 is not an event$"):
        next(sessions)


def test_a_line_may_not_go_back_behind_the_one_before() -> None:
    sessions = read_sessions(["1 a", "50 b", "49 c"], 10)

    assert next(sessions) == Session(1, 1, ["a"])
    with pytest.raises(LogError, match="^line 3 goes back in time$"):
        next(sessions)


def test_time_zero_begins_a_session_like_any_other() -> None:
    assert list(read_sessions(["0 a", "0 b", "5 c"], 4)) == [
        Session(0, 0, ["a", "b"]),
        Session(5, 5, ["c"]),
    ]


def test_a_session_that_was_handed_out_stays_as_it_was() -> None:
    sessions = read_sessions(["1 a", "50 b", "51 c", "99 d"], 10)

    first = next(sessions)
    first.texts.append("mine")
    rest = list(sessions)

    assert first == Session(1, 1, ["a", "mine"])
    assert rest == [Session(50, 51, ["b", "c"]), Session(99, 99, ["d"])]

"""Logs are small frames; visits are compared row by row."""

from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from visits import number_visits

HALF_HOUR = pd.Timedelta(minutes=30)


def log(*rows: tuple[str | None, str], index: list[Any] | None = None) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "user": pd.Series([user for user, _ in rows], dtype="str"),
            "at": pd.to_datetime(
                pd.Series([f"2024-06-01 {at}" for _, at in rows], dtype="str"), format="ISO8601"
            ),
        }
    )
    return frame if index is None else frame.set_axis(pd.Index(index), axis="index")


def visits(*rows: tuple[str | None, str], gap: pd.Timedelta = HALF_HOUR) -> list[int]:
    return list(number_visits(log(*rows), gap))


def test_a_visit_ends_with_a_longer_pause() -> None:
    assert visits(("ann", "10:00"), ("ann", "10:20"), ("ann", "11:00"), ("ann", "13:00")) == [
        1,
        1,
        2,
        3,
    ]


def test_a_pause_of_exactly_the_gap_goes_on_with_the_visit() -> None:
    assert visits(("ann", "10:00"), ("ann", "10:30"), ("ann", "11:00:01")) == [1, 1, 2]


def test_a_visit_may_be_longer_than_the_gap() -> None:
    stamps = [f"10:{minute:02}" for minute in range(0, 60, 20)] + ["11:00", "11:20"]

    assert visits(*(("ann", stamp) for stamp in stamps)) == [1] * 5


def test_each_user_has_visits_of_their_own() -> None:
    rows = [("ann", "10:00"), ("bob", "10:50"), ("ann", "11:00"), ("bob", "11:00")]

    assert visits(*rows) == [1, 1, 2, 1]


def test_the_first_visit_of_every_user_is_number_one_whenever_it_is() -> None:
    assert visits(("ann", "08:00"), ("ann", "09:00"), ("bob", "12:00"), ("cid", "07:00")) == [
        1,
        2,
        1,
        1,
    ]


def test_timestamps_decide_and_not_the_order_of_the_rows() -> None:
    rows = [
        ("ann", "12:00"),
        ("bob", "09:00"),
        ("ann", "10:00"),
        ("bob", "08:00"),
        ("ann", "10:30"),
        ("ann", "11:00"),
    ]

    assert visits(*rows) == [2, 2, 1, 1, 1, 1]


def test_equal_timestamps_are_one_visit() -> None:
    assert visits(("ann", "10:00"), ("ann", "12:00"), ("ann", "10:00"), ("ann", "12:00")) == [
        1,
        2,
        1,
        2,
    ]


def test_with_no_gap_every_other_instant_is_another_visit() -> None:
    rows = [("ann", "10:00"), ("ann", "10:00"), ("ann", "10:00:01")]

    assert visits(*rows, gap=pd.Timedelta(0)) == [1, 1, 2]


def test_missing_users_are_one_user_together() -> None:
    rows = [(None, "10:00"), ("ann", "10:05"), (None, "11:00"), (None, "10:10"), ("ann", "11:00")]

    assert visits(*rows) == [1, 1, 2, 1, 2]


@pytest.mark.parametrize("index", [[9, 3, 6, 1], [0, 0, 0, 0], ["x", "y", "x", "y"]])
def test_values_and_labels_are_those_of_the_rows(index: list[Any]) -> None:
    rows = [("ann", "13:00"), ("bob", "09:00"), ("ann", "10:00"), ("bob", "08:00")]

    result = number_visits(log(*rows, index=index), HALF_HOUR)

    assert list(result.index) == index
    assert list(result) == [2, 2, 1, 1]


def test_the_result_is_an_int64_series_named_visit() -> None:
    result = number_visits(log((None, "10:00"), ("ann", "10:00")), HALF_HOUR)

    assert isinstance(result, pd.Series)
    assert (result.name, result.dtype) == ("visit", "int64")


def test_an_empty_log_has_no_visits() -> None:
    result = number_visits(log(), HALF_HOUR)

    assert (len(result), result.name, result.dtype) == (0, "visit", "int64")


def test_the_log_is_left_alone() -> None:
    events = log(("bob", "12:00"), ("ann", "10:00"), index=[4, 2])
    before = events.copy(deep=True)

    number_visits(events, HALF_HOUR)

    assert_frame_equal(events, before)

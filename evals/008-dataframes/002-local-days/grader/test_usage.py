"""Results are compared as pairs of a date and a value, NaN written as None."""

import math

import pandas as pd
import pytest
from pandas.testing import assert_series_equal
from usage import daily_usage

NAN = float("nan")


def series(*rows: tuple[str, float]) -> pd.Series:
    index = pd.DatetimeIndex([stamp for stamp, _ in rows]).tz_localize("UTC")
    return pd.Series([value for _, value in rows], index=index, dtype="float64")


def days(result: pd.Series) -> list[tuple[str, float | None]]:
    return [
        (day.date().isoformat(), None if math.isnan(value) else value)
        for day, value in zip(result.index, result, strict=True)
    ]


def test_a_reading_belongs_to_the_day_of_the_local_calendar() -> None:
    readings = series(
        ("2024-01-10 22:59", 1.0), ("2024-01-10 23:00", 2.0), ("2024-01-11 22:59:59", 4.0)
    )

    assert days(daily_usage(readings, "Europe/Berlin")) == [
        ("2024-01-10", 1.0),
        ("2024-01-11", 6.0),
    ]
    assert days(daily_usage(readings, "UTC")) == [("2024-01-10", 3.0), ("2024-01-11", 4.0)]


@pytest.mark.parametrize(
    ("zone", "stamp", "day"),
    [
        ("Asia/Kathmandu", "2024-01-10 18:14:59", "2024-01-10"),
        ("Asia/Kathmandu", "2024-01-10 18:15:00", "2024-01-11"),
        ("Pacific/Kiritimati", "2024-01-10 10:00", "2024-01-11"),
        ("America/Los_Angeles", "2024-01-10 07:59", "2024-01-09"),
    ],
)
def test_offsets_of_any_size_and_sign_are_respected(zone: str, stamp: str, day: str) -> None:
    assert days(daily_usage(series((stamp, 1.0)), zone)) == [(day, 1.0)]


def test_a_short_day_has_its_23_hours() -> None:
    hours = pd.date_range("2024-03-30 00:00", "2024-04-01 23:00", freq="h", tz="UTC")
    result = daily_usage(pd.Series(1.0, index=hours), "Europe/Berlin")

    assert days(result)[1:-1] == [("2024-03-31", 23.0), ("2024-04-01", 24.0)]


def test_a_long_day_has_its_25_hours() -> None:
    hours = pd.date_range("2024-10-26 00:00", "2024-10-28 23:00", freq="h", tz="UTC")
    result = daily_usage(pd.Series(1.0, index=hours), "Europe/Berlin")

    assert days(result)[1:-1] == [("2024-10-27", 25.0), ("2024-10-28", 24.0)]


def test_a_day_that_begins_after_midnight_is_a_day_like_others() -> None:
    readings = series(
        ("2018-11-03 12:00", 1.0), ("2018-11-04 03:00", 2.0), ("2018-11-05 12:00", 4.0)
    )

    assert days(daily_usage(readings, "America/Sao_Paulo")) == [
        ("2018-11-03", 1.0),
        ("2018-11-04", 2.0),
        ("2018-11-05", 4.0),
    ]


def test_the_index_has_plain_midnights_under_their_names() -> None:
    readings = series(("2018-11-03 12:00", 1.0), ("2018-11-05 12:00", 4.0))

    result = daily_usage(readings, "America/Sao_Paulo")

    assert isinstance(result.index, pd.DatetimeIndex)
    assert result.index.tz is None
    assert list(result.index) == list(pd.date_range("2018-11-03", "2018-11-05"))
    assert (result.name, result.index.name) == ("kwh", "day")
    assert result.dtype == "float64"


def test_days_without_readings_are_nan() -> None:
    readings = series(("2024-02-28 12:00", 1.0), ("2024-03-02 12:00", 2.0))

    assert days(daily_usage(readings, "Europe/Berlin")) == [
        ("2024-02-28", 1.0),
        ("2024-02-29", None),
        ("2024-03-01", None),
        ("2024-03-02", 2.0),
    ]


def test_failed_readings_are_left_out_but_keep_their_day() -> None:
    readings = series(
        ("2024-05-01 12:00", NAN),
        ("2024-05-02 12:00", 3.0),
        ("2024-05-02 13:00", NAN),
        ("2024-05-03 12:00", NAN),
    )

    assert days(daily_usage(readings, "Europe/Berlin")) == [
        ("2024-05-01", None),
        ("2024-05-02", 3.0),
        ("2024-05-03", None),
    ]


def test_readings_that_add_up_to_zero_are_zero() -> None:
    readings = series(
        ("2024-05-01 12:00", 0.0), ("2024-05-02 12:00", 2.0), ("2024-05-02 13:00", -2.0)
    )

    assert days(daily_usage(readings, "UTC")) == [("2024-05-01", 0.0), ("2024-05-02", 0.0)]


def test_order_and_repeated_timestamps_do_not_matter() -> None:
    readings = series(
        ("2024-05-03 12:00", 4.0),
        ("2024-05-01 12:00", 1.0),
        ("2024-05-03 12:00", 8.0),
        ("2024-05-02 12:00", 2.0),
        ("2024-05-01 12:00", 1.0),
    )

    assert days(daily_usage(readings, "Asia/Tokyo")) == [
        ("2024-05-01", 2.0),
        ("2024-05-02", 2.0),
        ("2024-05-03", 12.0),
    ]


def test_no_readings_give_no_days() -> None:
    result = daily_usage(series(), "Europe/Berlin")

    assert len(result) == 0
    assert isinstance(result.index, pd.DatetimeIndex)
    assert result.index.tz is None
    assert (result.name, result.index.name, result.dtype) == ("kwh", "day", "float64")


def test_the_readings_are_left_alone() -> None:
    readings = series(("2024-05-03 12:00", 4.0), ("2024-05-01 12:00", NAN)).rename("meter")
    before = readings.copy(deep=True)

    daily_usage(readings, "Europe/Berlin")

    assert_series_equal(readings, before)
    assert readings.index.name is None

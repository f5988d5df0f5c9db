"""Understaffed hours: people not shifts, handovers, joined periods, time zones."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from staffing import understaffed

DAY = datetime(2031, 5, 6, tzinfo=UTC)


def at(hour: float) -> datetime:
    return DAY + timedelta(hours=hour)


def gaps(
    start: float, end: float, shifts: list[tuple[str, float, float]], needed: int
) -> list[tuple[float, float]]:
    """The result in hours of the day."""
    hour = timedelta(hours=1)
    given = [(person, at(begin), at(finish)) for person, begin, finish in shifts]
    found = understaffed(at(start), at(end), given, needed)
    return [((begin - DAY) / hour, (finish - DAY) / hour) for begin, finish in found]


def test_periods_with_too_few_people_are_found() -> None:
    shifts = [("Ann", 8, 14), ("Bob", 10, 12), ("Cem", 12, 18)]

    assert gaps(8, 18, shifts, 2) == [(8, 10), (14, 18)]
    assert gaps(8, 18, shifts, 1) == []
    assert gaps(8, 18, shifts, 3) == [(8, 18)]


def test_without_shifts_the_whole_time_is_understaffed() -> None:
    assert gaps(8, 18, [], 1) == [(8, 18)]


def test_a_handover_is_no_gap() -> None:
    assert gaps(8, 18, [("Ann", 8, 12), ("Bob", 12, 18)], 1) == []
    assert gaps(8, 18, [("Zoe", 8, 12), ("Bob", 12, 18)], 1) == []
    assert gaps(8, 18, [("Ann", 8, 12), ("Ann", 12, 18)], 1) == []


def test_one_person_in_two_shifts_is_one_person() -> None:
    shifts = [("Ann", 8, 12), ("Ann", 9, 11), ("Ann", 9, 11), ("Bob", 10, 18)]

    assert gaps(8, 18, shifts, 2) == [(8, 10), (12, 18)]


def test_a_person_stays_until_the_last_overlapping_shift_ends() -> None:
    shifts = [("Ann", 8, 16), ("Ann", 9, 10), ("Bob", 8, 18)]

    assert gaps(8, 18, shifts, 2) == [(16, 18)]


def test_a_period_is_not_split_where_the_number_of_missing_people_changes() -> None:
    shifts = [("Ann", 9, 12), ("Bob", 10, 11), ("Cem", 14, 15)]

    assert gaps(8, 18, shifts, 3) == [(8, 18)]
    assert gaps(8, 18, [*shifts, ("Dan", 10.5, 10.75)], 3) == [(8, 10.5), (10.75, 18)]


def test_shifts_are_cut_to_the_asked_time() -> None:
    shifts = [("Ann", 2, 9), ("Bob", 17, 23), ("Cem", 1, 3), ("Dan", 20, 22), ("Eve", 18, 19)]

    assert gaps(8, 18, shifts, 1) == [(9, 17)]
    assert gaps(8, 18, [("Ann", 0, 24)], 1) == []
    assert gaps(8, 18, [("Ann", 0, 8), ("Bob", 18, 24)], 1) == [(8, 18)]


def test_the_order_of_the_shifts_does_not_matter() -> None:
    shifts = [("Cem", 12.0, 18.0), ("Bob", 10.0, 12.0), ("Ann", 8.0, 14.0)]

    assert gaps(8, 18, shifts, 2) == gaps(8, 18, shifts[::-1], 2) == [(8, 10), (14, 18)]


def test_a_shift_without_length_has_nobody_on_duty() -> None:
    assert gaps(8, 18, [("Ann", 10, 10), ("Bob", 14, 12)], 1) == [(8, 18)]
    assert gaps(8, 18, [("Ann", 8, 18), ("Ann", 14, 12), ("Ann", 9, 9)], 1) == []


@pytest.mark.parametrize(
    ("start", "end", "needed"), [(8, 8, 1), (18, 8, 1), (8, 18, 0), (8, 18, -1)]
)
def test_no_time_or_no_need_gives_no_period(start: float, end: float, needed: int) -> None:
    assert gaps(start, end, [], needed) == []
    assert gaps(start, end, [("Ann", 9, 10)], needed) == []


def test_time_zones_are_compared_as_moments_and_returned_in_utc() -> None:
    east, west = timezone(timedelta(hours=9)), timezone(timedelta(hours=-3, minutes=-30))

    found = understaffed(
        at(8).astimezone(east),
        at(18).astimezone(west),
        [("Ann", at(9).astimezone(west), at(12).astimezone(east))],
        1,
    )

    assert found == [(at(8), at(9)), (at(12), at(18))]
    assert all(moment.utcoffset() == timedelta(0) for period in found for moment in period)


def test_a_large_crew_comes_to_work_one_by_one() -> None:
    shifts = [(f"p{number}", number / 100, 24.0) for number in range(600)]

    assert gaps(0, 24, shifts, 501) == [(0, 5)]

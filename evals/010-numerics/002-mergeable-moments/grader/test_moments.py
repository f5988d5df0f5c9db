"""Summaries of numbers: exactness far from zero, merging, taking apart, and empties."""

from fractions import Fraction

import pytest
from moments import discard, merge, summarize, variance

FAR = 1e9
NEAR_EACH_OTHER = [4.0, 7.0, 13.0, 16.0]


def exact(values: list[float]) -> tuple[int, float, float]:
    """The summary in rational numbers, which never round."""
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    return len(numbers), float(mean), float(sum((number - mean) ** 2 for number in numbers))


def readings(count: int, offset: float = FAR) -> list[float]:
    """Numbers in no particular order which differ by a few units."""
    return [offset + (number * 7919 % 1009) / 101 for number in range(count)]


def same(found: tuple[int, float, float], expected: tuple[int, float, float]) -> bool:
    return (
        found[0] == expected[0]
        and found[1] == pytest.approx(expected[1], rel=1e-9)
        and found[2] == pytest.approx(expected[2], rel=1e-5)
    )


@pytest.mark.parametrize("offset", [0.0, 1e6, -FAR, FAR])
def test_the_spread_does_not_depend_on_where_the_numbers_lie(offset: float) -> None:
    count, mean, spread = summarize([offset + value for value in NEAR_EACH_OTHER])

    assert count == 4
    assert mean == pytest.approx(offset + 10)
    assert spread == pytest.approx(90, rel=1e-5)


def test_parts_with_different_means_merge_to_the_whole() -> None:
    low, high = [1.0, 2.0, 3.0], [101.0, 102.0, 103.0, 104.0]

    merged = merge([summarize(low), summarize(high)])

    assert same(merged, exact(low + high))


def test_merging_three_parts_is_merging_all_their_numbers() -> None:
    values = readings(60)

    merged = merge([summarize(values[:1]), summarize(values[1:11]), summarize(values[11:])])

    assert same(merged, exact(values))


def test_a_thousand_summaries_far_from_zero_keep_the_spread() -> None:
    values = readings(3000)
    parts = [exact(values[start : start + 3]) for start in range(0, 3000, 3)]

    assert same(merge(parts), exact(values))


def test_a_thousand_single_numbers_far_from_zero_keep_the_spread() -> None:
    values = readings(1000)

    assert same(merge([exact([value]) for value in values]), exact(values))


def test_empty_parts_change_nothing() -> None:
    part = summarize(NEAR_EACH_OTHER)
    nothing = summarize([])

    assert nothing == (0, 0.0, 0.0)
    assert merge([]) == nothing
    assert merge([nothing, nothing]) == nothing
    assert merge([nothing, part, nothing]) == part


def test_discarding_gives_the_summary_of_what_is_left() -> None:
    values = [1.0, 5.0, 2.0, 80.0, 90.0]

    left = discard(summarize(values), summarize(values[3:]))

    assert same(left, exact(values[:3]))


def test_half_of_many_summaries_can_be_discarded_far_from_zero() -> None:
    values = readings(1000)
    parts = [exact(values[start : start + 5]) for start in range(0, 1000, 5)]

    whole = merge(parts)
    for part in parts[::2]:
        whole = discard(whole, part)

    left = [value for start in range(5, 1000, 10) for value in values[start : start + 5]]
    assert same(whole, exact(left))


def test_everything_or_nothing_can_be_discarded() -> None:
    whole = summarize(readings(10))

    assert discard(whole, whole) == (0, 0.0, 0.0)
    assert same(discard(whole, summarize([])), whole)
    assert discard(summarize([]), summarize([])) == (0, 0.0, 0.0)


@pytest.mark.parametrize("start", range(0, 100, 10))
def test_rounding_leaves_no_spread_below_zero(start: int) -> None:
    twice = [0.1 + start / 7] * 2
    other = [value * 1e5 for value in readings(5, 0.0)]
    whole = merge([summarize(twice), summarize(other)])

    assert discard(whole, summarize(other))[2] >= 0
    assert discard(discard(whole, summarize(other)), summarize(twice[:1]))[2] == 0.0


def test_more_numbers_than_there_are_can_not_be_discarded() -> None:
    with pytest.raises(ValueError):
        discard(summarize([1.0]), summarize([1.0, 2.0]))


def test_the_variance_is_that_of_a_sample() -> None:
    assert variance(summarize([FAR + value for value in NEAR_EACH_OTHER])) == pytest.approx(30)
    assert variance(summarize([3.0, 3.0])) == 0.0
    assert variance(summarize([3.0])) is None
    assert variance(summarize([])) is None

"""What a price is depends on the day and on when one asks."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from rates import RateCard

JAN, FEB, MAR, APR = (date(2024, month, 1) for month in (1, 2, 3, 4))
TEN, TWELVE, NINE = Decimal("10.00"), Decimal("12.50"), Decimal("9.99")


def at(day: int, hour: int = 12) -> datetime:
    return datetime(2024, 1, day, hour, tzinfo=UTC)


LATER = datetime(2030, 1, 1, tzinfo=UTC)


def test_an_empty_card_knows_no_price() -> None:
    assert RateCard().price("tea", on=JAN, known=LATER) is None
    assert RateCard().periods("tea", known=LATER) == []


def test_a_price_holds_from_its_first_day_until_the_next_one_begins() -> None:
    card = RateCard()
    card.record("tea", TEN, effective=JAN, recorded=at(1))
    card.record("tea", TWELVE, effective=MAR, recorded=at(1))
    day = timedelta(days=1)

    days = [JAN - day, JAN, MAR - day, MAR, date(2029, 1, 1)]

    assert [card.price("tea", on=d, known=LATER) for d in days] == [None, TEN, TEN, TWELVE, TWELVE]


def test_skus_do_not_mix() -> None:
    card = RateCard()
    card.record("tea", TEN, effective=JAN, recorded=at(1))
    card.record("rum", TWELVE, effective=FEB, recorded=at(2))

    assert card.price("tea", on=MAR, known=LATER) == TEN
    assert card.periods("rum", known=LATER) == [(FEB, None, TWELVE)]


def test_an_entry_is_known_from_the_very_moment_it_was_recorded() -> None:
    card = RateCard()
    card.record("tea", TEN, effective=JAN, recorded=at(5))

    assert card.price("tea", on=MAR, known=at(5) - timedelta(microseconds=1)) is None
    assert card.price("tea", on=MAR, known=at(5)) == TEN


def test_a_late_correction_of_the_past_leaves_later_prices_alone() -> None:
    card = RateCard()
    card.record("tea", TEN, effective=JAN, recorded=at(1))
    card.record("tea", TWELVE, effective=MAR, recorded=at(2))
    card.record("tea", NINE, effective=FEB, recorded=at(20))

    assert card.price("tea", on=FEB, known=at(10)) == TEN
    assert card.price("tea", on=FEB, known=at(20)) == NINE
    assert card.price("tea", on=APR, known=at(20)) == TWELVE


def test_the_entry_recorded_last_counts_in_whatever_order_they_were_passed() -> None:
    card = RateCard()
    card.record("tea", TWELVE, effective=JAN, recorded=at(9))
    card.record("tea", TEN, effective=JAN, recorded=at(3))

    assert card.price("tea", on=JAN, known=at(5)) == TEN
    assert card.price("tea", on=JAN, known=LATER) == TWELVE


def test_of_entries_recorded_at_the_same_moment_the_one_passed_last_counts() -> None:
    card = RateCard()
    card.record("tea", TWELVE, effective=JAN, recorded=at(3))
    card.record("tea", TEN, effective=JAN, recorded=at(3))

    assert card.price("tea", on=JAN, known=at(3)) == TEN


def test_a_withdrawn_sku_has_no_price_until_it_is_sold_again() -> None:
    card = RateCard()
    card.record("tea", TEN, effective=JAN, recorded=at(1))
    card.record("tea", None, effective=FEB, recorded=at(1))
    card.record("tea", TEN, effective=MAR, recorded=at(1))

    assert card.price("tea", on=FEB, known=LATER) is None
    assert card.periods("tea", known=LATER) == [(JAN, FEB, TEN), (MAR, None, TEN)]


def test_a_withdrawal_can_be_taken_back() -> None:
    card = RateCard()
    card.record("tea", TEN, effective=JAN, recorded=at(1))
    card.record("tea", None, effective=FEB, recorded=at(2))
    card.record("tea", TWELVE, effective=FEB, recorded=at(3))

    assert card.price("tea", on=MAR, known=at(2)) is None
    assert card.price("tea", on=MAR, known=at(3)) == TWELVE


def test_a_price_of_zero_is_a_price() -> None:
    card = RateCard()
    card.record("tea", Decimal(0), effective=JAN, recorded=at(1))

    assert card.price("tea", on=JAN, known=LATER) == Decimal(0)
    assert card.periods("tea", known=LATER) == [(JAN, None, Decimal(0))]


def test_periods_are_those_believed_at_the_moment() -> None:
    card = RateCard()
    card.record("tea", TWELVE, effective=MAR, recorded=at(2))
    card.record("tea", TEN, effective=JAN, recorded=at(1))
    card.record("tea", NINE, effective=FEB, recorded=at(3))
    card.record("tea", None, effective=APR, recorded=at(4))

    assert card.periods("tea", known=at(1)) == [(JAN, None, TEN)]
    assert card.periods("tea", known=at(2)) == [(JAN, MAR, TEN), (MAR, None, TWELVE)]
    assert card.periods("tea", known=at(4)) == [
        (JAN, FEB, TEN),
        (FEB, MAR, NINE),
        (MAR, APR, TWELVE),
    ]


def test_adjacent_periods_with_equal_prices_are_one() -> None:
    card = RateCard()
    card.record("tea", Decimal("10"), effective=JAN, recorded=at(1))
    card.record("tea", Decimal("10.00"), effective=FEB, recorded=at(1))
    card.record("tea", Decimal("10.0"), effective=MAR, recorded=at(1))
    card.record("tea", NINE, effective=APR, recorded=at(1))

    assert card.periods("tea", known=LATER) == [(JAN, APR, TEN), (APR, None, NINE)]


def test_moments_are_compared_across_offsets() -> None:
    card = RateCard()
    west, east = timezone(timedelta(hours=-5)), timezone(timedelta(hours=9))
    card.record("tea", TEN, effective=JAN, recorded=datetime(2024, 1, 5, 8, tzinfo=west))
    card.record("tea", NINE, effective=JAN, recorded=datetime(2024, 1, 5, 9, tzinfo=east))

    assert card.price("tea", on=JAN, known=at(5, hour=1)) == NINE
    assert card.price("tea", on=JAN, known=at(5, hour=12)) == NINE
    assert card.price("tea", on=JAN, known=at(5, hour=13)) == TEN


def test_moments_without_an_offset_are_refused() -> None:
    card = RateCard()
    naive = datetime(2024, 1, 5)

    with pytest.raises(ValueError):
        card.record("tea", TEN, effective=JAN, recorded=naive)
    with pytest.raises(ValueError):
        card.price("tea", on=JAN, known=naive)
    with pytest.raises(ValueError):
        card.periods("tea", known=naive)

"""A cache with a budget: room, use, life, replacement, and what counts as evicted."""

import pytest
from budget_cache import BudgetCache


def a_cache(capacity: int, *entries: tuple[str, int, float]) -> BudgetCache:
    """A cache with these entries (key, size, ttl), put at time 0 with their keys as values."""
    cache = BudgetCache(capacity)
    for key, size, ttl in entries:
        assert cache.put(key, key, size=size, ttl=ttl, now=0.0)
    return cache


def test_what_was_put_is_found() -> None:
    cache = a_cache(10, ("a", 4, 5), ("b", 6, 5))

    assert cache.get("a", now=1) == "a"
    assert cache.get("b", now=1) == "b"
    assert cache.get("c", now=1) is None
    assert cache.used(now=1) == 10
    assert cache.evicted == 0


def test_an_empty_value_is_a_value() -> None:
    cache = BudgetCache(10)

    assert cache.put("a", "", size=1, ttl=1, now=0)
    assert cache.get("a", now=0) == ""
    assert cache.keys(now=0) == ["a"]


def test_the_entries_used_longest_ago_make_room_and_no_more_than_needed() -> None:
    cache = a_cache(10, ("a", 3, 99), ("b", 3, 99), ("c", 4, 99))

    assert cache.put("d", "d", size=5, ttl=99, now=1)

    assert cache.keys(now=1) == ["c", "d"]
    assert cache.used(now=1) == 9
    assert cache.evicted == 2


def test_finding_is_a_use_and_looking_is_not() -> None:
    cache = a_cache(9, ("a", 3, 99), ("b", 3, 99), ("c", 3, 99))

    cache.get("a", now=1)
    cache.get("missing", now=1)
    cache.keys(now=1)
    cache.used(now=1)

    assert cache.keys(now=2) == ["b", "c", "a"]
    cache.put("d", "d", size=1, ttl=99, now=2)
    assert cache.keys(now=2) == ["c", "a", "d"]


def test_an_entry_ends_exactly_with_its_time_to_live() -> None:
    cache = a_cache(10, ("a", 3, 5), ("b", 3, 6))

    assert cache.get("a", now=4.5) == "a"
    assert cache.get("a", now=5) is None
    assert cache.keys(now=5) == ["b"]
    assert cache.used(now=5) == 3
    assert cache.evicted == 0


def test_a_use_does_not_prolong_a_life() -> None:
    cache = a_cache(10, ("a", 3, 5))

    for now in (1, 2, 3, 4):
        assert cache.get("a", now=now) == "a"

    assert cache.get("a", now=5) is None


def test_expired_entries_make_room_before_live_ones() -> None:
    cache = a_cache(10, ("live", 4, 99), ("short", 6, 5))

    assert cache.put("new", "new", size=6, ttl=99, now=5)

    assert cache.keys(now=5) == ["live", "new"]
    assert cache.evicted == 0


def test_an_entry_replaces_the_one_of_the_same_key_in_full() -> None:
    cache = a_cache(10, ("a", 6, 5), ("b", 4, 99))

    assert cache.put("a", "again", size=5, ttl=10, now=1)

    assert cache.keys(now=1) == ["b", "a"]
    assert cache.used(now=1) == 9
    assert cache.get("a", now=10) == "again"
    assert cache.get("a", now=11) is None
    assert cache.evicted == 0


def test_a_replaced_entry_may_end_earlier_than_before() -> None:
    cache = a_cache(10, ("a", 6, 99))

    cache.put("a", "brief", size=6, ttl=1, now=1)

    assert cache.get("a", now=2) is None


def test_a_larger_replacement_evicts_others_but_never_itself() -> None:
    cache = a_cache(10, ("a", 2, 99), ("b", 4, 99), ("c", 4, 99))

    assert cache.put("a", "big", size=6, ttl=99, now=1)

    assert cache.keys(now=1) == ["c", "a"]
    assert cache.get("a", now=1) == "big"
    assert cache.evicted == 1


def test_an_entry_as_large_as_the_cache_is_alone_in_it() -> None:
    cache = a_cache(10, ("a", 2, 99), ("b", 4, 99))

    assert cache.put("c", "c", size=10, ttl=99, now=1)

    assert cache.keys(now=1) == ["c"]
    assert cache.evicted == 2


def test_an_entry_that_is_too_large_only_removes_its_outdated_self() -> None:
    cache = a_cache(10, ("a", 2, 99), ("b", 4, 99))

    assert not cache.put("a", "huge", size=11, ttl=99, now=1)
    assert not cache.put("z", "huge", size=11, ttl=99, now=1)

    assert cache.get("a", now=1) is None
    assert cache.keys(now=1) == ["b"]
    assert cache.evicted == 0


@pytest.mark.parametrize(("size", "ttl"), [(0, 1), (-1, 1), (1, 0), (1, -0.5), (99, 0)])
def test_a_refused_entry_changes_nothing(size: int, ttl: float) -> None:
    cache = a_cache(10, ("a", 5, 99), ("b", 5, 99))

    with pytest.raises(ValueError):
        cache.put("a", "new", size=size, ttl=ttl, now=1)

    assert cache.keys(now=1) == ["a", "b"]
    assert cache.get("a", now=1) == "a"


@pytest.mark.parametrize("capacity", [0, -5])
def test_a_cache_needs_a_capacity(capacity: int) -> None:
    with pytest.raises(ValueError):
        BudgetCache(capacity)

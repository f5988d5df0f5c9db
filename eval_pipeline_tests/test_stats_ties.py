"""Groups of models that can not be told apart, against all cliques found the slow way."""

import re
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.results.stats.ranks import RankRange, letters, rank_range, tie_groups

Pairs = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn, most: int = 9) -> tuple[int, Pairs]:
    """So many names, and the pairs of them that are different."""
    names = draw(st.integers(0, most))
    pairs = list(combinations(range(names), 2))
    return names, draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


@st.composite
def ladders(draw: st.DrawFn) -> tuple[int, Pairs]:
    """As graphs, but who is tied with somebody is tied with all in between."""
    steps = draw(st.lists(st.integers(1, 4), min_size=1, max_size=12))
    scores = [sum(steps[:n]) for n in range(len(steps))]
    pairs = combinations(range(len(scores)), 2)
    return len(scores), [(a, b) for a, b in pairs if scores[b] - scores[a] > 5]


def insert_and_absorb(names: int, different: Pairs) -> list[tuple[int, ...]]:
    """Start with one group, split it at each pair, drop what another group contains."""
    groups = {frozenset(range(names))}
    for pair in different:
        for group in [one for one in groups if one.issuperset(pair)]:
            groups.remove(group)
            groups |= {group - {name} for name in pair}
        groups = {one for one in groups if not any(one < other for other in groups)}
    return sorted(tuple(sorted(group)) for group in groups if group)


@pytest.mark.parametrize(
    ("different", "groups", "written"),
    [
        ([], ["abcd"], ["A", "A", "A", "A"]),
        (["ad"], ["abc", "bcd"], ["A", "AB", "AB", "B"]),
        (["ab", "ac", "ad", "bd"], ["a", "bc", "cd"], ["A", "B", "BC", "C"]),
        (["ab", "ac", "ad", "bc", "bd", "cd"], ["a", "b", "c", "d"], ["A", "B", "C", "D"]),
        (["ab"], ["acd", "bcd"], ["A", "B", "AB", "AB"]),
        (["ca", "db"], ["ab", "ad", "bc", "cd"], ["AB", "AC", "CD", "BD"]),
    ],
)
def test_groups_and_letters_by_hand(
    different: list[str], groups: list[str], written: list[str]
) -> None:
    pairs = [tuple(pair) for pair in different]

    assert ["".join(group) for group in tie_groups("abcd", pairs)] == groups
    assert list(letters("abcd", pairs).values()) == written


@settings(max_examples=150, deadline=None, database=None)
@given(graphs())
def test_two_share_a_group_if_and_only_if_they_are_not_different(graph: tuple[int, Pairs]) -> None:
    names, different = graph

    groups = [set(group) for group in tie_groups(range(names), different)]

    together = {pair for group in groups for pair in combinations(sorted(group), 2)}
    assert together == set(combinations(range(names), 2)) - set(different)
    assert set().union(*groups) == set(range(names))


@settings(max_examples=150, deadline=None, database=None)
@given(graphs())
def test_no_group_is_contained_in_another_and_the_best_come_first(
    graph: tuple[int, Pairs],
) -> None:
    names, different = graph

    groups = tie_groups(range(names), different)

    assert not any(set(a) <= set(b) for a in groups for b in groups if a is not b)
    assert groups == sorted(tuple(sorted(group)) for group in groups)
    assert set(groups) <= set(insert_and_absorb(names, different))


@settings(max_examples=100, deadline=None, database=None)
@given(ladders())
def test_contiguous_ties_have_the_groups_of_insert_and_absorb(ladder: tuple[int, Pairs]) -> None:
    assert tie_groups(range(ladder[0]), ladder[1]) == insert_and_absorb(*ladder)


@settings(max_examples=50, deadline=None, database=None)
@given(graphs(), st.randoms())
def test_the_order_of_pairs_and_within_does_not_matter(
    graph: tuple[int, Pairs], random: Random
) -> None:
    names, different = graph
    expected = tie_groups(range(names), different)
    shuffled = [frozenset(pair) for pair in different]
    random.shuffle(shuffled)

    assert tie_groups(range(names), shuffled) == expected
    assert tie_groups(range(names), [(b, a) for a, b in different]) == expected


@settings(max_examples=50, deadline=None, database=None)
@given(graphs())
def test_letters_say_who_is_tied(graph: tuple[int, Pairs]) -> None:
    names, different = graph

    found = letters(range(names), different)

    for a, b in combinations(range(names), 2):
        assert set(found[a]).isdisjoint(found[b]) is ((a, b) in different)


def test_after_z_comes_a1() -> None:
    # 60 models, each different from all but its neighbours: 59 groups of two.
    different = [(a, b) for a, b in combinations(range(60), 2) if b - a > 1]

    found = letters(range(60), different)

    assert [found[n] for n in (0, 1, 25, 26, 27, 52, 59)] == [
        "A",
        "AB",
        "YZ",
        "ZA1",
        "A1B1",
        "Z1A2",
        "G2",
    ]
    assert len({label for text in found.values() for label in re.findall(r"[A-Z]\d*", text)}) == 59


def test_sixty_models_in_twenty_rings_of_three_do_not_blow_up() -> None:
    # Everybody is tied with all outside of the own three: 3 to the power of 20 largest groups.
    different = [(a, b) for a, b in combinations(range(60), 2) if a // 3 == b // 3]

    groups = tie_groups(range(60), different)

    together = {pair for group in groups for pair in combinations(group, 2)}
    assert together == set(combinations(range(60), 2)) - set(different)
    assert len(groups) < 1770


def test_ranks_by_hand() -> None:
    # a beats c and d, b beats d: a is first or second, d third or last.
    beaten = [("a", "c"), ("a", "d"), ("b", "d"), ("b", "d")]

    assert rank_range("abcd", beaten) == {
        "a": RankRange(1, 2),
        "b": RankRange(1, 3),
        "c": RankRange(2, 4),
        "d": RankRange(3, 4),
    }


@settings(max_examples=100, deadline=None, database=None)
@given(graphs())
def test_the_own_place_is_in_the_range_of_ranks(graph: tuple[int, Pairs]) -> None:
    names, beaten = graph

    ranges = rank_range(range(names), beaten)

    assert all(1 <= ranges[n].best <= n + 1 <= ranges[n].worst <= names for n in range(names))
    assert sum(one.worst - one.best for one in ranges.values()) == names * (names - 1) - 2 * len(
        beaten
    )


@pytest.mark.parametrize(
    ("names", "different", "error"),
    [
        ("aba", [], "given twice"),
        ("ab", ["aa"], "from itself"),
    ],
)
def test_what_makes_no_sense_is_refused(names: str, different: list[str], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        tie_groups(names, different)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(KeyError, match="z"):
        tie_groups("ab", ["az"])
    with pytest.raises(KeyError, match="z"):
        rank_range("ab", [("a", "z")])

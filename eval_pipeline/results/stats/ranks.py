"""Ties: groups that are statistically tied, their letters, ranges of rank."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from string import ascii_uppercase
from typing import NamedTuple, TypeVar

T = TypeVar("T", bound=Hashable)


class RankRange(NamedTuple):
    best: int
    worst: int


def tie_groups(
    names_in_order: Sequence[T], different: Iterable[Collection[T]]
) -> list[tuple[T, ...]]:
    """Groups in which no two are different, best member first.

    Two names share a group if and only if they are not among the pairs that are `different`
    (each pair in either order). No group is contained in another. A group is added only while
    two that are tied share none yet, so there are never more groups than pairs.
    """
    tied = _tied(names_in_order, different)
    groups: list[int] = []
    for first in range(len(tied)):
        # From the worst on: that takes fewer groups where ties are almost contiguous.
        for last in range(len(tied) - 1, first - 1, -1):
            pair = 1 << first | 1 << last
            if tied[first] >> last & 1 and not any(group & pair == pair for group in groups):
                groups.append(_grown(pair, tied[first] & tied[last], tied))
    members = sorted([n for n in range(len(tied)) if group >> n & 1] for group in groups)
    return [tuple(names_in_order[n] for n in group) for group in members]


def letters(names_in_order: Sequence[T], different: Iterable[Collection[T]]) -> dict[T, str]:
    """Return the letters of each name's groups: names that share one are tied.

    After Z come A1 to Z1, A2, …; a digit belongs to the letter before it.
    """
    found = dict.fromkeys(names_in_order, "")
    for number, group in enumerate(tie_groups(names_in_order, different)):
        for name in group:
            found[name] += _label(number)
    return found


def rank_range(names: Sequence[T], beaten: Iterable[tuple[T, T]]) -> dict[T, RankRange]:
    """The ranks each may have, given all pairs of a significantly better and a worse name."""
    position = _positions(names)
    better, worse = [0] * len(names), [0] * len(names)
    for winner, loser in set(beaten):
        worse[position[winner]] += 1
        better[position[loser]] += 1
    return {name: RankRange(1 + better[n], len(names) - worse[n]) for n, name in enumerate(names)}


def _tied(names: Sequence[T], different: Iterable[Collection[T]]) -> list[int]:
    """Return, for each name, those it is tied with (and itself) as the bits of a number."""
    position = _positions(names)
    tied = [(1 << len(names)) - 1] * len(names)
    for pair in different:
        one, other = (position[name] for name in pair)
        if one == other:
            raise ValueError(f"{names[one]} can not be different from itself.")
        tied[one] &= ~(1 << other)
        tied[other] &= ~(1 << one)
    return tied


def _positions(names: Sequence[T]) -> dict[T, int]:
    position = {name: n for n, name in enumerate(names)}
    if len(position) < len(names):
        raise ValueError("A name is given twice.")
    return position


def _grown(group: int, candidates: int, tied: Sequence[int]) -> int:
    """Return the group with each candidate added, best first, that is tied with all in it."""
    for one, with_whom in enumerate(tied):
        if candidates >> one & 1:
            group |= 1 << one
            candidates &= with_whom
    return group


def _label(number: int) -> str:
    row, column = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[column] + (str(row) if row else "")

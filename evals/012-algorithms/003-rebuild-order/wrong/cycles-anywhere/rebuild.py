"""What to build again after a change, and in which order."""

import graphlib
import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter


class CycleError(Exception):
    """Names need each other in a circle."""


def rebuild_order(needs: dict[str, list[str]], changed: list[str]) -> list[str]:
    """The changed names and all that need them, each after what it needs itself."""
    users = _users(needs)
    affected = _reachable(users, changed)
    _check(needs)
    waits_for = {name: affected & set(needs.get(name, ())) for name in affected}
    missing = {name: len(awaited) for name, awaited in waits_for.items()}
    ready = [name for name, count in missing.items() if count == 0]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        name = heapq.heappop(ready)
        order.append(name)
        for user in users[name]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, user)
    return order


def _check(needs: dict[str, list[str]]) -> None:
    try:
        TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        circle: list[str] = error.args[1][:0:-1]
        first = circle.index(min(circle))
        turned = circle[first:] + circle[:first]
        raise CycleError(" -> ".join([*turned, turned[0]])) from error


def _users(needs: Mapping[str, Iterable[str]]) -> defaultdict[str, set[str]]:
    users: defaultdict[str, set[str]] = defaultdict(set)
    for name, needed in needs.items():
        for other in needed:
            users[other].add(name)
    return users


def _reachable(users: Mapping[str, set[str]], start: Iterable[str]) -> set[str]:
    found = set(start)
    pending = list(found)
    while pending:
        more = users.get(pending.pop(), set()) - found
        found |= more
        pending += more
    return found

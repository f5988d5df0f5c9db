"""What to build again after a change, and in which order."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping


class CycleError(Exception):
    """Names need each other in a circle."""


def rebuild_order(needs: dict[str, list[str]], changed: list[str]) -> list[str]:
    """The changed names and all that need them, each after what it needs itself."""
    users = _users(needs)
    affected = _reachable(users, changed)
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
    if len(order) < len(affected):
        stuck = affected.difference(order)
        raise CycleError(" -> ".join(_circle(waits_for, stuck)))
    return order


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


def _circle(waits_for: Mapping[str, set[str]], stuck: set[str]) -> list[str]:
    """Follows needs until a name comes again; every stuck name waits for another stuck one."""
    path: dict[str, int] = {}
    name = min(stuck)
    while name not in path:
        path[name] = len(path)
        name = min(waits_for[name] & stuck)
    circle = list(path)[path[name] :]
    first = circle.index(min(circle))
    return [*circle[first:], *circle[:first], circle[first]]

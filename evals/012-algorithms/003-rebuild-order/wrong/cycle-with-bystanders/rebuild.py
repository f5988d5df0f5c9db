"""What to build again after a change, and in which order."""

import heapq


class CycleError(Exception):
    """Names need each other in a circle."""


def rebuild_order(needs: dict[str, list[str]], changed: list[str]) -> list[str]:
    """Takes the smallest name that is ready until none is left."""
    users: dict[str, set[str]] = {}
    for name, wanted in needs.items():
        for other in wanted:
            users.setdefault(other, set()).add(name)
    affected: set[str] = set()
    pending = list(changed)
    while pending:
        name = pending.pop()
        if name not in affected:
            affected.add(name)
            pending += users.get(name, set())
    open_needs = {name: affected.intersection(needs.get(name, [])) for name in affected}
    ready = [name for name, wanted in open_needs.items() if not wanted]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        name = heapq.heappop(ready)
        order.append(name)
        for user in users.get(name, set()):
            open_needs[user].discard(name)
            if not open_needs[user]:
                heapq.heappush(ready, user)
    if len(order) < len(affected):
        left = affected - set(order)
        current = min(left)
        circle = [current]
        while True:
            current = min(open_needs[current])
            circle.append(current)
            if current in circle[:-1]:
                raise CycleError(" -> ".join(circle))
    return order

"""What to build again after a change, and in which order."""


class CycleError(Exception):
    """Names need each other in a circle."""


def rebuild_order(needs: dict[str, list[str]], changed: list[str]) -> list[str]:
    """Visits the affected names from the smallest on, what they need first."""
    affected = _affected(needs, changed)
    order: list[str] = []
    done: set[str] = set()
    for root in sorted(affected):
        path: dict[str, None] = {}
        stack = [(root, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                del path[name]
                done.add(name)
                order.append(name)
                continue
            if name in done:
                continue
            if name in path:
                raise CycleError(_text(list(path), name))
            path[name] = None
            stack.append((name, True))
            wanted = sorted(affected.intersection(needs.get(name, [])), reverse=True)
            stack.extend((other, False) for other in wanted)
    return order


def _affected(needs: dict[str, list[str]], changed: list[str]) -> set[str]:
    users: dict[str, list[str]] = {}
    for name, wanted in needs.items():
        for other in wanted:
            users.setdefault(other, []).append(name)
    affected: set[str] = set()
    pending = list(changed)
    while pending:
        name = pending.pop()
        if name not in affected:
            affected.add(name)
            pending += users.get(name, [])
    return affected


def _text(path: list[str], name: str) -> str:
    circle = path[path.index(name) :]
    first = circle.index(min(circle))
    turned = circle[first:] + circle[:first]
    return " -> ".join([*turned, turned[0]])

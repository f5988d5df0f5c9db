"""Finds the hours in which too few people are on duty."""

from collections import Counter
from datetime import UTC, datetime

Shift = tuple[str, datetime, datetime]
Period = tuple[datetime, datetime]


def understaffed(start: datetime, end: datetime, shifts: list[Shift], needed: int) -> list[Period]:
    """Looks at every stretch between two changes."""
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    events = [(start, "", 0), (end, "", 0)]
    for person, begin, finish in shifts:
        begin = max(begin.astimezone(UTC), start)
        finish = min(finish.astimezone(UTC), end)
        if begin < finish:
            events += [(begin, person, 1), (finish, person, -1)]
    events.sort()
    on_duty: Counter[str] = Counter()
    periods: list[Period] = []
    for (moment, person, change), (following, _, _) in zip(events, events[1:], strict=False):
        if change:
            on_duty[person] += change
            if on_duty[person] == 0:
                del on_duty[person]
        if moment < following and len(on_duty) < needed:
            periods.append((moment, following))
    return periods

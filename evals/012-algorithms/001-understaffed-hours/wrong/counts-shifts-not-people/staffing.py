"""Finds the hours in which too few people are on duty."""

from collections import defaultdict
from datetime import UTC, datetime

Shift = tuple[str, datetime, datetime]
Period = tuple[datetime, datetime]


def understaffed(start: datetime, end: datetime, shifts: list[Shift], needed: int) -> list[Period]:
    """Adds up who comes and goes, moment by moment."""
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    if end <= start:
        return []
    changes: defaultdict[datetime, int] = defaultdict(int)
    changes[start] += 0
    changes[end] += 0
    for _, begin, finish in set(shifts):
        begin = max(begin.astimezone(UTC), start)
        finish = min(finish.astimezone(UTC), end)
        if begin < finish:
            changes[begin] += 1
            changes[finish] -= 1
    periods: list[Period] = []
    moments = sorted(changes)
    on_duty = 0
    for moment, following in zip(moments, moments[1:], strict=False):
        on_duty += changes[moment]
        if on_duty >= needed:
            continue
        if periods and periods[-1][1] == moment:
            periods[-1] = (periods[-1][0], following)
        else:
            periods.append((moment, following))
    return periods

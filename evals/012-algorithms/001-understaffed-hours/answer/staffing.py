"""Finds the hours in which too few people are on duty."""

from collections import Counter
from datetime import UTC, datetime
from itertools import groupby

Shift = tuple[str, datetime, datetime]
Period = tuple[datetime, datetime]


def understaffed(start: datetime, end: datetime, shifts: list[Shift], needed: int) -> list[Period]:
    """The longest possible periods in which fewer than `needed` people are on duty."""
    first, last = start.astimezone(UTC), end.astimezone(UTC)
    if last <= first:
        return []
    on_duty: Counter[str] = Counter()
    periods: list[Period] = []
    missing_since = first if needed > 0 else None
    for moment, changes in groupby(_changes(first, last, shifts), key=lambda change: change[0]):
        for _, person, change in changes:
            on_duty[person] += change
            if not on_duty[person]:
                del on_duty[person]
        # Looked at only when all changes of a moment are made, so that a handover is no gap.
        if len(on_duty) >= needed:
            if missing_since is not None and missing_since < moment:
                periods.append((missing_since, moment))
            missing_since = None
        elif missing_since is None:
            missing_since = moment
    if missing_since is not None and missing_since < last:
        periods.append((missing_since, last))
    return periods


def _changes(
    first: datetime, last: datetime, shifts: list[Shift]
) -> list[tuple[datetime, str, int]]:
    """Who comes and who goes when, in order; shifts are cut to what lies between the two."""
    changes = []
    for person, begin, finish in shifts:
        begin, finish = max(begin.astimezone(UTC), first), min(finish.astimezone(UTC), last)
        if begin < finish:
            changes += [(begin, person, 1), (finish, person, -1)]
    return sorted(changes)

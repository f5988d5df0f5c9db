"""Summaries of numbers: means are weighted, spreads are added."""

import statistics

Summary = tuple[int, float, float]


def summarize(values: list[float]) -> Summary:
    """The summary of these numbers."""
    if not values:
        return 0, 0.0, 0.0
    mean = statistics.fmean(values)
    spread = sum((value - mean) ** 2 for value in values)
    return len(values), mean, spread if len(values) > 1 else 0.0


def merge(parts: list[Summary]) -> Summary:
    """The summary of all numbers of all parts."""
    count = sum(part[0] for part in parts)
    if count == 0:
        return 0, 0.0, 0.0
    mean = sum(part[0] * part[1] for part in parts) / count
    return count, mean, sum(part[2] for part in parts)


def discard(whole: Summary, part: Summary) -> Summary:
    """The summary of what is left."""
    left = whole[0] - part[0]
    if left < 0:
        raise ValueError("the part counts more than the whole")
    if left == 0:
        return 0, 0.0, 0.0
    mean = (whole[0] * whole[1] - part[0] * part[1]) / left
    return left, mean, max(0.0, whole[2] - part[2]) if left > 1 else 0.0


def variance(summary: Summary) -> float | None:
    """The sample variance."""
    count, _, spread = summary
    return spread / (count - 1) if count > 1 else None

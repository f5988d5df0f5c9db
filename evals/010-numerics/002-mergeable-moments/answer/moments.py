"""Count, mean and spread of numbers, in summaries that can be merged and taken apart."""

from math import fsum

Summary = tuple[int, float, float]

NOTHING: Summary = (0, 0.0, 0.0)


def summarize(values: list[float]) -> Summary:
    """The summary of these numbers, in two passes: distances are taken from the final mean."""
    if not values:
        return NOTHING
    mean = fsum(values) / len(values)
    return _summary(len(values), mean, fsum((value - mean) ** 2 for value in values))


def merge(parts: list[Summary]) -> Summary:
    """The summary of all numbers of all parts."""
    whole = NOTHING
    for part in parts:
        whole = _merge_two(whole, part)
    return whole


def discard(whole: Summary, part: Summary) -> Summary:
    """The summary of what is left of `whole` without the numbers of `part`."""
    count, mean, spread = whole
    out, out_mean, out_spread = part
    left = count - out
    if left < 0:
        raise ValueError(f"can not take {out} numbers out of {count}")
    if left == 0:
        return NOTHING
    left_mean = mean + (mean - out_mean) * (out / left)
    between = (mean - out_mean) * (left_mean - out_mean) * out
    return _summary(left, left_mean, spread - out_spread - between)


def variance(summary: Summary) -> float | None:
    """The sample variance, which fewer than two numbers do not have."""
    count, _, spread = summary
    return spread / (count - 1) if count > 1 else None


def _merge_two(one: Summary, other: Summary) -> Summary:
    if one[0] == 0 or other[0] == 0:
        return other if one[0] == 0 else one
    count = one[0] + other[0]
    apart = other[1] - one[1]
    mean = one[1] + apart * (other[0] / count)
    between = apart * apart * one[0] * (other[0] / count)
    return _summary(count, mean, one[2] + other[2] + between)


def _summary(count: int, mean: float, spread: float) -> Summary:
    return count, mean, max(spread, 0.0) if count > 1 else 0.0

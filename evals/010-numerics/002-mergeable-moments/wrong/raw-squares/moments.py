"""Summaries of numbers, put together through their sums of squares."""

Summary = tuple[int, float, float]


def summarize(values: list[float]) -> Summary:
    """The summary of these numbers in one pass."""
    return _from_sums(len(values), sum(values), sum(value * value for value in values))


def merge(parts: list[Summary]) -> Summary:
    """The summary of all numbers of all parts."""
    sums = [_to_sums(part) for part in parts]
    return _from_sums(
        sum(count for count, _, _ in sums),
        sum(total for _, total, _ in sums),
        sum(squares for _, _, squares in sums),
    )


def discard(whole: Summary, part: Summary) -> Summary:
    """The summary of what is left."""
    if part[0] > whole[0]:
        raise ValueError("the part counts more than the whole")
    if part[0] == 0:
        return whole
    count, total, squares = _to_sums(whole)
    out, out_total, out_squares = _to_sums(part)
    return _from_sums(count - out, total - out_total, squares - out_squares)


def variance(summary: Summary) -> float | None:
    """The sample variance."""
    count, _, spread = summary
    return spread / (count - 1) if count > 1 else None


def _to_sums(summary: Summary) -> Summary:
    count, mean, spread = summary
    return count, mean * count, spread + count * mean * mean


def _from_sums(count: int, total: float, squares: float) -> Summary:
    if count == 0:
        return 0, 0.0, 0.0
    mean = total / count
    return count, mean, max(0.0, squares - count * mean * mean) if count > 1 else 0.0

"""Count, mean and spread of numbers, in summaries that can be merged and taken apart."""

Summary = tuple[int, float, float]


def summarize(values: list[float]) -> Summary:
    """The summary of these numbers, one at a time."""
    count, mean, spread = 0, 0.0, 0.0
    for value in values:
        count += 1
        step = value - mean
        mean += step / count
        spread += step * (value - mean)
    return count, mean, spread


def merge(parts: list[Summary]) -> Summary:
    """The summary of all numbers of all parts."""
    count, mean, spread = 0, 0.0, 0.0
    for more, other_mean, other_spread in parts:
        if more == 0:
            continue
        apart = other_mean - mean
        spread += other_spread + apart * apart * count * more / (count + more)
        mean += apart * more / (count + more)
        count += more
    return count, mean, spread


def discard(whole: Summary, part: Summary) -> Summary:
    """The summary of what is left: the merge, backwards."""
    left = whole[0] - part[0]
    if left < 0:
        raise ValueError("the part counts more than the whole")
    if left == 0:
        return 0, 0.0, 0.0
    mean = whole[1] + (whole[1] - part[1]) * part[0] / left
    apart = mean - part[1]
    spread = whole[2] - part[2] - apart * apart * left * part[0] / whole[0]
    return left, mean, spread


def variance(summary: Summary) -> float | None:
    """The sample variance."""
    count, _, spread = summary
    return spread / (count - 1) if count > 1 else None

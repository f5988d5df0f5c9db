"""Two models on the same items: their difference, its interval, and whether it may be chance."""

from collections.abc import Sequence
from math import erfc, exp, lgamma, log, sqrt
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eval_pipeline.results.stats.bootstrap import (
    DRAWS,
    Floats,
    Ints,
    Sample,
    Seed,
    bootstrap_interval,
    sample_of,
)
from eval_pipeline.results.stats.intervals import LEVEL, Z_95, Interval, clustered_error

# Means of the same scores may differ by rounding, which this takes off; to round more would take
# thirds off the lattice that the bootstrap is fast on.
DECIMALS = 14
SLACK = 1e-9
MOST_SUMS = 2**13
"""The most sums on either side; always enough for 25 differences other than 0."""
POWER = 0.8


class Paired(NamedTuple):
    """The difference of the first of two models from the second, over the items they share.

    `better` and `worse` count items. The error needs two items (or clusters). The interval is the
    bootstrap's, except where McNemar's test applies, with which it would not agree; it is None
    where all differences are the same, for then the error cannot be estimated.
    """

    items: int
    difference: float
    standard_error: float | None
    interval: Interval | None
    bootstrap: Interval | None
    better: int
    worse: int
    p_value: float
    test: Literal["mcnemar", "sign_flip"]

    def detectable(self, pairs: int = 1) -> float | None:
        """The true difference that would be found in 80 % of such comparisons (5 %, two-sided).

        Found among so many pairs, that is: the level is divided by their number.
        """
        if not self.standard_error:
            return None
        normal = NormalDist()
        return (normal.inv_cdf(1 - LEVEL / 2 / pairs) + normal.inv_cdf(POWER)) * self.standard_error


def compare(values: ArrayLike, counts: ArrayLike, *, binary: bool, seed: Seed) -> Paired:
    """Compare two models by how many items have each difference, the first minus the second.

    `binary` says that both had exactly one score of 0 or 1 on each item. Swapped models mirror the
    result exactly. Raises ValueError if there is no item.
    """
    sample = sample_of(np.round(np.asarray(values, dtype=np.float64), DECIMALS), counts)
    if not sample.size:
        raise ValueError("The two models share no item: there is nothing to compare.")
    if binary and not {-1.0, 0.0, 1.0}.issuperset(sample.values.tolist()):
        raise ValueError("Differences of scores of 0 and 1 are -1, 0 or 1.")
    mirrored = Sample(0.0 - sample.values[::-1], sample.counts[::-1])
    # Of a comparison and its mirror image always the same one is computed.
    first = min(sample, mirrored, key=_key)
    found = _compare(first, seed, binary=binary)
    if _key(sample) == _key(mirrored):
        return found._replace(
            bootstrap=_centred(found.bootstrap), interval=_centred(found.interval)
        )
    return found if first is sample else _mirror(found)


def compare_clusters(differences: ArrayLike, clusters: ArrayLike, *, seed: Seed) -> Paired:
    """The comparison where items of one cluster are not independent: a cluster is drawn, or has
    its sign flipped, as a whole. The clusters are numbered from 0 on without a gap."""
    given, numbers = np.asarray(differences, np.float64), np.asarray(clusters, np.int64)
    if not len(given):
        raise ValueError("The two models share no item: there is nothing to compare.")
    if given.sum() < 0:  # of a comparison and its mirror image always the same one is computed
        return _mirror(compare_clusters(0.0 - given, numbers, seed=seed))
    sizes = np.bincount(numbers)
    totals: Floats = np.bincount(numbers, weights=given).astype(np.float64)
    sums = totals.round(DECIMALS)
    drawn = _bootstrap_ratio(sums, sizes, seed)
    return Paired(
        items=len(given),
        difference=float(given.mean()),
        standard_error=clustered_error(given, numbers),
        interval=drawn,
        bootstrap=drawn,
        better=int((given > 0).sum()),
        worse=int((given < 0).sum()),
        p_value=sign_flip(sums, np.ones_like(sizes)),
        test="sign_flip",
    )


def _bootstrap_ratio(sums: Floats, sizes: Ints, seed: Seed) -> Interval | None:
    """The percentile interval of the mean over items when clusters are drawn."""
    kinds, counts = np.unique(np.column_stack([sums, sizes]), axis=0, return_counts=True)
    if len(kinds) == 1:
        return None
    generator = np.random.Generator(np.random.PCG64(seed))
    drawn = generator.multinomial(len(sums), counts / len(sums), size=DRAWS)
    means = drawn @ kinds[:, 0] / (drawn @ kinds[:, 1])
    low, high = np.quantile(means, [LEVEL / 2, 1 - LEVEL / 2])
    return Interval(float(low), float(high))


def _adjusted_wald(better: int, worse: int, items: int) -> Interval:
    """After Agresti and Min: as if there were half an item more of each of the four kinds."""
    first, second, size = better + 0.5, worse + 0.5, items + 2
    middle = (first - second) / size
    half = Z_95 * sqrt(first + second - (first - second) ** 2 / size) / size
    return Interval(max(-1.0, middle - half), min(1.0, middle + half))


def _centred(interval: Interval | None) -> Interval | None:
    """The interval of a sample that is its own mirror image."""
    if interval is None:
        return None
    half = (interval.high - interval.low) / 2
    return Interval(0.0 - half, half)


def mcnemar(better: int, worse: int) -> float:
    """The exact two-sided p-value of so many items better and so many worse, if both were equal."""
    fewer, discordant = min(better, worse), better + worse
    if better == worse:
        return 1.0
    ways = lgamma(discordant + 1) - lgamma(fewer + 1) - lgamma(discordant - fewer + 1)
    term, tail = exp(ways - discordant * log(2)), 0.0
    for count in range(fewer, -1, -1):
        tail += term
        term *= count / (discordant - count + 1)
        if term <= tail * 1e-18:
            break
    return min(1.0, 2 * tail)


def sign_flip(values: ArrayLike, counts: ArrayLike) -> float:
    """The two-sided p-value of the sum, if each difference could as well have had the other sign.

    Exact for up to 25 differences other than 0, and for more while they have few distinct sizes
    (two, with up to 8,191 of each); beyond that the sum is taken to be normal.
    """
    sample = sample_of(values, counts)
    there = sample.values != 0
    sizes, often = sample_of(np.abs(sample.values[there]), sample.counts[there])
    total, largest = abs(float(sample.values @ sample.counts)), float(sizes @ often)
    # Sums that are equal but for rounding have to count as equal.
    needed = total - SLACK * largest
    if needed <= 0:
        return 1.0
    halves = _halves(often)
    if halves is None:
        return erfc(total / sqrt(2 * float(sizes**2 @ often)))
    first, second = (_sums(sizes[half], often[half]) for half in halves)
    return min(1.0, 2 * _chance_of_reaching(needed, first, second))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected by Holm for how many there are, in the order given."""
    given = np.asarray(p_values, dtype=np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError("A p-value is a number from 0 to 1.")
    order = np.argsort(given, kind="stable")
    steps = given[order] * np.arange(len(given), 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return [float(one) for one in adjusted]


def _compare(sample: Sample, seed: Seed, *, binary: bool) -> Paired:
    better = int(sample.counts[sample.values > 0].sum())
    worse = int(sample.counts[sample.values < 0].sum())
    error = _standard_error(sample)
    bootstrap = bootstrap_interval(sample, seed=seed) if len(sample.values) > 1 else None
    return Paired(
        items=sample.size,
        difference=sample.mean,
        standard_error=error,
        interval=_adjusted_wald(better, worse, sample.size) if binary else bootstrap,
        bootstrap=bootstrap,
        better=better,
        worse=worse,
        p_value=mcnemar(better, worse) if binary else sign_flip(*sample),
        test="mcnemar" if binary else "sign_flip",
    )


def _mirror(paired: Paired) -> Paired:
    return paired._replace(
        difference=0.0 - paired.difference,
        interval=_negative(paired.interval),
        bootstrap=_negative(paired.bootstrap),
        better=paired.worse,
        worse=paired.better,
    )


def _negative(interval: Interval | None) -> Interval | None:
    return None if interval is None else Interval(0.0 - interval.high, 0.0 - interval.low)


def _key(sample: Sample) -> tuple[list[float], list[int]]:
    return sample.values.tolist(), sample.counts.tolist()


def _standard_error(sample: Sample) -> float | None:
    if sample.size <= 1:
        return None
    squares = float((sample.values - sample.mean) ** 2 @ sample.counts)
    return sqrt(squares / (sample.size - 1) / sample.size)


def _halves(counts: Ints) -> tuple[list[int], list[int]] | None:
    """The sizes in two halves with about equally many sums, or None if these are too many."""
    halves: tuple[list[int], list[int]] = ([], [])
    sums = [1, 1]
    for which in np.argsort(-counts, kind="stable").tolist():
        half = int(sums[1] < sums[0])
        halves[half].append(which)
        sums[half] *= int(counts[which]) + 1
        if sums[half] > MOST_SUMS:
            return None
    return halves


def _sums(sizes: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """Every sum that differences of these sizes can have with either sign, and its chance."""
    sums, chances = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        sums = np.add.outer(sums, size * np.arange(count, -count - 1, -2)).ravel()
        chances = np.multiply.outer(chances, _fair_coin(count)).ravel()
    return sums, chances


def _fair_coin(tosses: int) -> Floats:
    """The chance of 0, 1, … heads."""
    heads = np.arange(1, tosses + 1)
    ways = np.append(0.0, np.cumsum(np.log((tosses + 1 - heads) / heads)))
    return np.exp(ways - tosses * log(2))


def _chance_of_reaching(
    needed: float, first: tuple[Floats, Floats], second: tuple[Floats, Floats]
) -> float:
    """The chance that a sum of the one and a sum of the other are together at least `needed`."""
    order = np.argsort(second[0])
    at_least = np.append(np.cumsum(second[1][order][::-1])[::-1], 0.0)
    missing = np.searchsorted(second[0][order], needed - first[0])
    return float(first[1] @ at_least[missing])

"""Two models on the same items: their difference, its interval, and whether it may be chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, exp, lgamma, log, sqrt
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from eval_pipeline.stats.bootstrap import Floats, Ints, Sample, Seed, interval_of, sample_of

DECIMALS = 14
"""Where two means of the same scores may differ by rounding only."""
SLACK = 1e-9
MOST_SUMS = 2**13
"""So many sums on either side are looked at; always enough for 25 differences other than 0."""
DETECTABLE = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)


@dataclass(frozen=True)
class Differences:
    """Distinct differences (first minus second, mean per item) and the items that have them.

    `binary` says that both had exactly one score of 0 or 1 on each item.
    """

    values: ArrayLike
    counts: ArrayLike
    binary: bool


class Paired(NamedTuple):
    """How the first of two models differs from the second, over the items they share.

    `better` and `worse` count items. `detectable` is the true difference that would be found
    significant (5 %, two-sided) in 80 % of such comparisons. The error needs two items.
    """

    items: int
    difference: float
    standard_error: float | None
    low: float
    high: float
    better: int
    worse: int
    p_value: float
    test: Literal["mcnemar", "sign_flip"]
    detectable: float | None


def compare(differences: Differences, *, seed: Seed) -> Paired:
    """The paired comparison; ValueError if there is no item. Swapped models mirror it exactly."""
    sample = sample_of(
        np.round(np.asarray(differences.values, dtype=np.float64), DECIMALS), differences.counts
    )
    if not sample.size:
        raise ValueError("The two models share no item: there is nothing to compare.")
    if differences.binary and not {-1.0, 0.0, 1.0}.issuperset(sample.values.tolist()):
        raise ValueError("Differences of scores of 0 and 1 are -1, 0 or 1.")
    mirrored = Sample(0.0 - sample.values[::-1], sample.counts[::-1])
    # Of a comparison and its mirror image always the same one is computed.
    first = min(sample, mirrored, key=_key)
    found = _compare(first, seed, binary=differences.binary)
    if _key(sample) == _key(mirrored):
        half = (found.high - found.low) / 2
        return found._replace(low=0.0 - half, high=half)
    return found if first is sample else _mirror(found)


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
    return _sign_flip(sample_of(values, counts))


def _sign_flip(sample: Sample) -> float:
    sizes, often = sample_of(*_without_zero(sample))
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
    low, high = interval_of(sample, seed)
    return Paired(
        items=sample.size,
        difference=sample.mean,
        standard_error=error,
        low=low,
        high=high,
        better=better,
        worse=worse,
        p_value=mcnemar(better, worse) if binary else _sign_flip(sample),
        test="mcnemar" if binary else "sign_flip",
        detectable=None if error is None else DETECTABLE * error,
    )


def _mirror(paired: Paired) -> Paired:
    return paired._replace(
        difference=0.0 - paired.difference,
        low=0.0 - paired.high,
        high=0.0 - paired.low,
        better=paired.worse,
        worse=paired.better,
    )


def _key(sample: Sample) -> tuple[list[float], list[int]]:
    return sample.values.tolist(), sample.counts.tolist()


def _standard_error(sample: Sample) -> float | None:
    if sample.size <= 1:
        return None
    squares = float((sample.values - sample.mean) ** 2 @ sample.counts)
    return sqrt(squares / (sample.size - 1) / sample.size)


def _without_zero(sample: Sample) -> tuple[Floats, Ints]:
    there = sample.values != 0
    return np.abs(sample.values[there]), sample.counts[there]


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

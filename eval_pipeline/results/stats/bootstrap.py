"""The bootstrap of a mean, from the distinct values of a sample and how often each occurs."""

import hashlib
from collections.abc import Sequence
from math import ceil, log2, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.results.stats.intervals import Interval

DRAWS = 2000
STEPS = np.arange(1, 61)
"""Means of up to 8 scores of 0 or 1, and differences of two such, come in steps of 1/56 or more."""
WIDEST = 2**16
NOISE = 1e-12

Seed = int | Sequence[int]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Sample(NamedTuple):
    """Distinct values in ascending order, and how often each occurs (at least once)."""

    values: Floats
    counts: Ints

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        return float(self.values @ self.counts) / self.size


def sample_of(values: ArrayLike, counts: ArrayLike) -> Sample:
    """The sample in its one canonical form: sorted, equal values merged, absent ones left out."""
    given, often = np.asarray(values, dtype=np.float64), np.asarray(counts)
    if given.shape != often.shape or given.ndim != 1:
        raise ValueError("Give one count for each value.")
    if not np.isfinite(given).all():
        raise ValueError("A value is not a finite number: leave out what has no score.")
    whole = often.astype(np.int64)
    if (whole != often).any() or (whole < 0).any():
        raise ValueError("A count is a whole number of at least 0.")
    there = whole > 0
    distinct, which = np.unique(given[there], return_inverse=True)
    return Sample(distinct, np.bincount(which, weights=whole[there]).astype(np.int64))


def bootstrap_means(sample: Sample, seed: Seed, draws: int = DRAWS) -> Floats:
    """Means of as many resamples (with replacement) as draws; ValueError if the sample is empty.

    The cost hardly grows with the number of items, only with that of distinct values. The same
    sample and seed give the same means, in no particular order: do not pair those of two samples.
    """
    if not sample.size:
        raise ValueError("The sample is empty: there is nothing to draw from.")
    generator = np.random.Generator(np.random.PCG64(seed))
    on_lattice = _resampled_means(sample)
    if on_lattice is None:
        drawn = generator.multinomial(sample.size, sample.counts / sample.size, size=draws)
        means: Floats = drawn @ sample.values / sample.size
        return means
    possible, chances = on_lattice
    return np.repeat(possible, generator.multinomial(draws, chances))


def bootstrap_interval(
    sample: Sample, *, seed: Seed, draws: int = DRAWS, level: float = 0.95
) -> Interval:
    """Return the percentile interval of the mean; ValueError if the sample is empty.

    If all values are equal it has no width: such a sample gives no estimate of its error.
    """
    means, mean = bootstrap_means(sample, seed, draws), sample.mean
    cut = round(draws * (1 - level) / 2)
    ends = np.partition(means, [cut, draws - 1 - cut])
    # Rounding must not put the mean itself outside of its interval.
    low, high = float(ends[cut]), float(ends[draws - 1 - cut])
    return Interval(min(low, mean), max(high, mean))


def seed_of(*texts: str) -> int:
    """A seed of 64 bits: for the same texts the same, in every process and on every machine."""
    running = hashlib.blake2b(digest_size=8)
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        running.update(len(encoded).to_bytes(8, "big") + encoded)
    return int.from_bytes(running.digest(), "big")


def _resampled_means(sample: Sample) -> tuple[Floats, Floats] | None:
    """Every mean a resample can have, and its chance; None if they are too many.

    Drawing from these is several times faster than drawing how often each value occurs.
    """
    lattice = _lattice(sample.values)
    if lattice is None:
        return None
    steps, step = lattice
    window = _window(Sample(steps, sample.counts))
    width = len(window)
    if width > WIDEST:
        return None
    one = np.bincount(steps.astype(np.int64) % width, sample.counts / sample.size, minlength=width)
    # The chances of a sum of independent draws: in the Fourier domain, a power.
    chances = np.fft.irfft(_power(np.fft.rfft(one), sample.size), width)
    sums = np.arange(window.start, window.stop)
    chances = chances[sums % width]
    there = chances > NOISE
    return sums[there] / step / sample.size, chances[there] / chances[there].sum()


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """By squaring, which is several times as fast as numpy's power of complex numbers."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        base, exponent = base * base, exponent >> 1
    return result


def _lattice(values: Floats) -> tuple[Floats, int] | None:
    """The values in whole steps of one over a number, and that number; or None."""
    scaled = np.multiply.outer(STEPS, values)
    steps = np.rint(scaled)
    fits = (np.abs(scaled - steps) < NOISE).all(axis=1)
    which = int(fits.argmax())
    return (steps[which], int(STEPS[which])) if fits[which] else None


def _window(steps: Sample) -> range:
    """The sums of a resample that have any chance to speak of: twelve deviations either way."""
    span, mean = steps.values[-1] - steps.values[0], steps.mean
    spread = sqrt(float((steps.values - mean) ** 2 @ steps.counts))
    width = 2 ** ceil(log2(24 * (spread + span) + 2))
    first = round(mean * steps.size) - width // 2
    return range(first, first + width)

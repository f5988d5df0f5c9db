"""Agreement of judges: with each other, with themselves when asked again, with people.

A table counts items by the label of one judge (row) and of another (column). Units are the items:
one row for each, counting how many verdicts gave it each label (column). What cannot be
computed from the counts is None.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eval_pipeline.results.stats.intervals import Interval, wilson

Ints = NDArray[np.int64]
AXES = ("rows", "columns")


@dataclass(frozen=True)
class Confusion:
    """A judge's verdicts against the truth: true and false positives, true and false negatives."""

    tp: int
    fp: int
    tn: int
    fn: int

    @property
    def table(self) -> list[list[int]]:
        """The truth in rows, the judge in columns, positive first."""
        return [[self.tp, self.fn], [self.fp, self.tn]]

    @property
    def items(self) -> int:
        return self.tp + self.fp + self.tn + self.fn

    @property
    def tpr(self) -> float | None:
        """The share of what is right that the judge accepts."""
        return _share(self.tp, self.tp + self.fn)

    @property
    def tpr_interval(self) -> Interval | None:
        return wilson(self.tp, self.tp + self.fn)

    @property
    def tnr(self) -> float | None:
        """The share of what is wrong that the judge rejects."""
        return _share(self.tn, self.tn + self.fp)

    @property
    def tnr_interval(self) -> Interval | None:
        return wilson(self.tn, self.tn + self.fp)

    @property
    def accuracy(self) -> float | None:
        return _share(self.tp + self.tn, self.items)


def raw_agreement(table: ArrayLike) -> float | None:
    """The share of items to which both judges gave the same label."""
    counts = _table(table)
    return _share(int(counts.trace()), int(counts.sum()))


def cohens_kappa(table: ArrayLike) -> float | None:
    """Agreement of two judges beyond chance; None if both gave one and the same label only."""
    counts = _table(table)
    items = int(counts.sum())
    by_chance = sum(
        row * column
        for row, column in zip(
            counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist(), strict=True
        )
    )
    return _share(items * int(counts.trace()) - by_chance, items**2 - by_chance)


def krippendorffs_alpha(units: ArrayLike) -> float | None:
    """Agreement of any number of judges beyond chance, for labels without an order.

    Items with fewer than two verdicts say nothing and are left out; None if there are no others,
    or if all their verdicts are the same label.
    """
    counts = _repeated(units)
    labels = [int(one) for one in counts.sum(axis=0)]
    verdicts = sum(labels)
    expected = verdicts**2 - sum(one**2 for one in labels)
    if not expected:
        return None
    observed = float((_differing(counts) / (counts.sum(axis=1) - 1)).sum())
    return 1 - observed * (verdicts - 1) / expected


def base_rate(counts: ArrayLike) -> float | None:
    """The share of the commonest label: what one agrees with by always giving that label.

    Takes how often each label was given, or units, or a table (then the labels are the columns').
    """
    labels = _counts(np.atleast_2d(np.asarray(counts))).sum(axis=0)
    return _share(int(labels.max(initial=0)), int(labels.sum()))


def flicker_rate(units: ArrayLike) -> float | None:
    """The share of items judged at least twice whose verdicts are not all the same."""
    counts = _repeated(units)
    return _share(int((counts.max(axis=1, initial=0) < counts.sum(axis=1)).sum()), len(counts))


def pairwise_disagreement(units: ArrayLike) -> float | None:
    """The chance that two verdicts on an item differ, averaged over items with at least two."""
    counts = _repeated(units)
    verdicts = counts.sum(axis=1)
    return _share(float((_differing(counts) / (verdicts * (verdicts - 1))).sum()), len(counts))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _table(table: ArrayLike) -> Ints:
    counts = _counts(np.asarray(table))
    if counts.shape[0] != counts.shape[1]:
        raise ValueError("A table has one row and one column for each label.")
    return counts


def _repeated(units: ArrayLike) -> Ints:
    """The items with at least two verdicts."""
    given = np.asarray(units)
    counts = _counts(given if given.size else np.zeros((0, 0)))
    several: Ints = counts[counts.sum(axis=1) > 1]
    return several


def _differing(counts: Ints) -> Ints:
    """Return the number of ordered pairs of an item's verdicts that differ."""
    squares: Ints = counts.sum(axis=1) ** 2 - (counts**2).sum(axis=1)
    return squares


def _counts(given: NDArray[np.generic]) -> Ints:
    counts = given.astype(np.int64)
    if counts.ndim != len(AXES) or (counts != given).any() or (counts < 0).any():
        raise ValueError("Counts are rows of whole numbers of at least 0.")
    return counts

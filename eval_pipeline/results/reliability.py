"""The measures of `judge_reliability`, computed from the counts that derive/judges.sql makes."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import duckdb
import numpy as np

from eval_pipeline.results.stats.agreement import (
    Confusion,
    Ints,
    base_rate,
    cohens_kappa,
    flicker_rate,
    krippendorffs_alpha,
    pairwise_disagreement,
    raw_agreement,
)
from eval_pipeline.results.stats.intervals import wilson

REPEATS, BETWEEN_JUDGES, PEOPLE, OWN_FAMILY = "repeats", "between judges", "people", "own family"
ALL_JUDGES = "all judges"
"""The judge named in the row over all of them."""
NAMED_MODELS = 5

Measure = dict[str, Any]
"""A row by column; what does not apply to a measure, or cannot be computed, is missing or None."""


def measure_judges(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `judge_measures` from the other temporary tables."""
    found = [
        *_repeats(connection),
        *_between_judges(connection),
        *_all_judges(connection),
        *_people(connection),
        *_own_family(connection),
    ]
    for one in found:
        columns, marks = ", ".join(one), ", ".join("?" * len(one))
        insert = f"insert into judge_measures ({columns}) values ({marks})"
        connection.execute(insert, list(one.values()))


class _Units(NamedTuple):
    """A number of replies with the same counts of verdicts."""

    wrong: int
    correct: int
    items: int


def _repeats(connection: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    by_judge: dict[tuple[str, str], list[_Units]] = defaultdict(list)
    for judge, version, *counts in connection.table("repeat_units").fetchall():
        by_judge[judge, version].append(_Units(*counts))
    for (judge, version), histogram in by_judge.items():
        units = _spread(histogram)
        flickering = sum(one.items for one in histogram if one.wrong and one.correct)
        low, high = wilson(flickering, len(units)) or (None, None)
        yield {
            "measure": REPEATS,
            "judge": judge,
            "judge_version": version,
            "items": len(units),
            "verdicts": int(units.sum()),
            "rate_correct": _rate_correct(units),
            "base_rate": base_rate(units),
            "flicker_rate": flicker_rate(units),
            "flicker_low": low,
            "flicker_high": high,
            "pairwise_disagreement": pairwise_disagreement(units),
        }


def _between_judges(connection: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    pairs = connection.table("judge_pairs").fetchall()
    for judge, version, other, other_version, both, one, another, neither in pairs:
        table = [[both, one], [another, neither]]
        items = both + one + another + neither
        correct = both + one + both + another
        yield {
            "measure": BETWEEN_JUDGES,
            "judge": judge,
            "judge_version": version,
            "other_judge": other,
            "other_judge_version": other_version,
            "items": items,
            "verdicts": 2 * items,
            "rate_correct": (both + one) / items,
            "other_rate_correct": (both + another) / items,
            "agreement": raw_agreement(table),
            "base_rate": base_rate([2 * items - correct, correct]),
            "kappa": cohens_kappa(table),
        }


def _all_judges(connection: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    histogram = [_Units(*row) for row in connection.table("judge_units").fetchall()]
    if histogram:
        units = _spread(histogram)
        yield {
            "measure": BETWEEN_JUDGES,
            "judge": ALL_JUDGES,
            "items": len(units),
            "verdicts": int(units.sum()),
            "rate_correct": _rate_correct(units),
            "base_rate": base_rate(units),
            "alpha": krippendorffs_alpha(units),
        }


def _people(connection: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    for judge, version, labeller, tp, fp, tn, fn in connection.table("people_counts").fetchall():
        counted = Confusion(tp=tp, fp=fp, tn=tn, fn=fn)
        tpr_low, tpr_high = counted.tpr_interval or (None, None)
        tnr_low, tnr_high = counted.tnr_interval or (None, None)
        yield dict(
            measure=PEOPLE,
            judge=judge,
            judge_version=version,
            labeller=labeller,
            items=counted.items,
            verdicts=counted.items,
            rate_correct=(tp + fp) / counted.items,
            other_rate_correct=(tp + fn) / counted.items,
            agreement=counted.accuracy,
            base_rate=base_rate([tn + fp, tp + fn]),
            kappa=cohens_kappa(counted.table),
            **asdict(counted),
            tpr=counted.tpr,
            tpr_low=tpr_low,
            tpr_high=tpr_high,
            tnr=counted.tnr,
            tnr_low=tnr_low,
            tnr_high=tnr_high,
        )


class _Family(NamedTuple):
    """A judge's verdicts on models of its own vendor, beside other judges' on the same replies."""

    judge: str
    judge_version: str
    models: list[str]
    items: int
    correct: int
    shared_items: int
    shared_correct: int
    other_rate: float | None
    simulated: bool


def _own_family(connection: duckdb.DuckDBPyConnection) -> Iterator[Measure]:
    for row in connection.table("family_counts").fetchall():
        own = _Family(*row)
        shared_rate = own.shared_correct / own.shared_items if own.shared_items else None
        yield {
            "measure": OWN_FAMILY,
            "judge": own.judge,
            "judge_version": own.judge_version,
            "models": own.models,
            "items": own.items,
            "verdicts": own.items,
            "rate_correct": own.correct / own.items,
            "other_rate_correct": own.other_rate,
            "shared_items": own.shared_items,
            "shared_rate_correct": shared_rate,
            "warning": _warning(own),
        }


def _warning(own: _Family) -> str:
    more = len(own.models) - NAMED_MODELS
    named = ", ".join(own.models[:NAMED_MODELS]) + (f" and {more} more" if more > 0 else "")
    simulated = "; all simulated" if own.simulated else ""
    if own.other_rate is None:
        compared = "no judge of another family has graded the same replies"
    else:
        rate = own.shared_correct / own.shared_items
        compared = (
            f"on {own.shared_items} replies it says correct in {rate:.1%}, judges of other "
            f"families in {own.other_rate:.1%}"
        )
    return f"{own.judge} grades models of its own family ({named}{simulated}): {compared}."


def _spread(histogram: Sequence[_Units]) -> Ints:
    """One row per reply: how often it was found wrong, and how often correct."""
    counts = np.array([(one.wrong, one.correct) for one in histogram], dtype=np.int64)
    return np.repeat(counts, [one.items for one in histogram], axis=0)


def _rate_correct(units: Ints) -> float:
    return float(units[:, 1].sum() / units.sum())

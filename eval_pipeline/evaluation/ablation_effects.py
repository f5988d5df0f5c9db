"""Guidelines ablation, what came of it: how much worse models are without each section."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal, NamedTuple

import duckdb
import numpy as np

from eval_pipeline.evaluation.ablation import Ablation, Variation
from eval_pipeline.results.comparisons import Entry, compare_scores, differences_of
from eval_pipeline.results.queries import query
from eval_pipeline.results.stats.intervals import LEVEL, cautious
from eval_pipeline.results.stats.pairs import Paired, holm

COMPARED = "compared"
EACH = 1000
"""Requests that a section's cost is told for."""

Worth = Literal["essential", "dispensable", "marginal"]


class Pair(NamedTuple):
    """A model's scores on one task, with the guidelines and under a variation of them."""

    model: str
    item: str
    usual_run: str | None
    varied_run: str | None
    state: str
    usual: float | None
    varied: float | None
    tokens: float | None


@dataclass(frozen=True)
class Effect:
    """What leaving something out came to; the differences are without it minus with it."""

    variation: Variation
    run_ids: tuple[str, ...]
    usual_run_ids: tuple[str, ...]
    # How many pairs could not be compared, by the reason.
    excluded: Mapping[str, int]
    tasks: int
    # Its interval and error are the cautious ones; None if there is nothing to compare.
    paired: Paired | None
    # Corrected for how many sections were tried.
    p_value: float | None
    # What telling it takes: measured if servers told, else estimated by its length.
    tokens: float
    is_measured: bool
    usd: float | None

    def worth(self, margin: float) -> Worth:
        """What the section is worth, if a loss of up to `margin` does not matter."""
        if self.paired is None or self.paired.interval is None or self.p_value is None:
            return "marginal"
        if self.p_value < LEVEL and self.paired.difference < 0:
            return "essential"
        return "dispensable" if self.paired.interval.low >= -margin else "marginal"

    def detectable(self, sections: int) -> float | None:
        """How large a true loss has to be for it to be found in 80 % of such comparisons."""
        family = sections if self.variation.is_section else 1
        return self.paired.detectable(family) if self.paired else None


def measure(db: duckdb.DuckDBPyConnection, ablation: Ablation) -> list[Effect]:
    """What each variation came to; the p-values of sections are corrected by Holm."""
    effects = [_effect(db, ablation, one) for one in ablation.variations[1:]]
    found = [one.p_value for one in effects if one.variation.is_section]
    corrected = iter(holm([p_value for p_value in found if p_value is not None]))
    return [
        one
        if one.p_value is None or not one.variation.is_section
        else replace(one, p_value=next(corrected))
        for one in effects
    ]


def _effect(db: duckdb.DuckDBPyConnection, ablation: Ablation, one: Variation) -> Effect:
    pairs = _pairs(db, ablation, one)
    compared = [pair for pair in pairs if pair.state == COMPARED]
    paired = _compare(compared, one, ablation.samples) if compared else None
    measured = _tokens(pairs)
    tokens = {model.id: measured.get(model.id, one.tokens) for model in ablation.models}
    prices = {model.id: model.prices.prompt for model in ablation.models}
    costs = [tokens[name] * price * EACH for name, price in prices.items() if price is not None]
    return Effect(
        variation=one,
        run_ids=tuple(sorted({pair.varied_run for pair in pairs if pair.varied_run})),
        usual_run_ids=tuple(sorted({pair.usual_run for pair in pairs if pair.usual_run})),
        excluded=Counter(pair.state for pair in pairs if pair.state != COMPARED),
        tasks=len({pair.item for pair in compared}),
        paired=paired,
        p_value=paired.p_value if paired else None,
        tokens=fmean(tokens.values()),
        is_measured=measured.keys() >= tokens.keys(),
        usd=fmean(costs) if len(costs) == len(prices) else None,
    )


def _pairs(db: duckdb.DuckDBPyConnection, ablation: Ablation, one: Variation) -> list[Pair]:
    usual = ablation.baseline
    found = query(
        db,
        "summaries/ablation",
        {
            "models": [model.id for model in ablation.models],
            "plan": sorted(f"{key.suite}/{key.item_id}" for key in ablation.plan),
            "samples": ablation.samples,
            "usual_experiment": usual.experiment,
            "usual_hash": usual.prompt_hash,
            "varied_experiment": one.experiment,
            "varied_hash": one.prompt_hash,
        },
    )
    return [Pair(*row) for row in found.fetchall()]


def _compare(pairs: Sequence[Pair], one: Variation, samples: int) -> Paired:
    """Over all models together; what several models did on one task is not independent."""
    varied, usual = (
        np.array(scores, np.float64)
        for scores in zip(*((pair.varied, pair.usual) for pair in pairs), strict=True)
    )
    _, tasks = np.unique([pair.item for pair in pairs], return_inverse=True)
    a, b = (Entry(0, "", name, "", "", "", samples) for name in (one.experiment, "as usual"))
    compared = compare_scores(a, b, varied, usual, clusters=tasks, units=tasks)
    interval, error = cautious(differences_of(varied, usual), tasks)
    return compared.paired._replace(interval=interval, standard_error=error)


def _tokens(pairs: Sequence[Pair]) -> dict[str, float]:
    """By how many tokens a model's requests were shorter; in the middle, for some went astray."""
    by_model = defaultdict[str, list[float]](list)
    for pair in pairs:
        if pair.tokens is not None:
            by_model[pair.model].append(pair.tokens)
    return {model: median(tokens) for model, tokens in by_model.items()}

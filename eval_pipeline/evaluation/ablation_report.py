"""Guidelines ablation, what came of it: how much worse models are without each section."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import prod
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import duckdb
import numpy as np
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table
from tabulate import tabulate

from eval_pipeline.evaluation.ablation import BASELINE, Ablation, Variation
from eval_pipeline.journal import translate_os_errors
from eval_pipeline.journal.files import swap_in
from eval_pipeline.results.comparisons import Entry, compare_scores, differences_of
from eval_pipeline.results.queries import query
from eval_pipeline.results.stats.intervals import LEVEL, cautious
from eval_pipeline.results.stats.pairs import Paired, holm
from eval_pipeline.text import plain

if TYPE_CHECKING:
    import pandas as pd

COMPARED = "compared"
EACH = 1000
"""Requests that a section's cost is given for."""
Worth = Literal["essential", "dispensable", "marginal"]
_RUN_CHARACTERS = 8
_NARROW = ("left out", "tokens", "USD", "pairs", "points", "95 %", "p", "worth")
"""The columns that a terminal has room for."""
METHOD = (
    "Each model's score on each task without a section is set against its score on the same task "
    "with all guidelines (the experiment `default`); tasks are taken as independent, the models on "
    "one task are not. The p-values are of a sign-flip or McNemar test and corrected by Holm for "
    "the number of sections; the 95 % intervals, after Agresti and Min, are not, and stay wide "
    "where few tasks differ."
)


@dataclass(frozen=True)
class Effect:
    """The effect of leaving something out; the differences are without it minus with it."""

    variation: Variation
    run_ids: tuple[str, ...]
    usual_run_ids: tuple[str, ...]
    # The number of pairs that could not be compared, by the reason.
    excluded: Mapping[str, int]
    tasks: int
    # Its interval and error are the cautious ones; None if there is nothing to compare.
    paired: Paired | None
    # Corrected for how many sections were tried.
    p_value: float | None
    # Tokens it adds to a request: measured if servers report usage, else estimated by length.
    tokens: float
    is_measured: bool
    usd: float | None

    def worth(self, margin: float) -> Worth:
        """Return the worth of the section, if a loss of up to `margin` does not matter."""
        if self.paired is None or self.paired.interval is None or self.p_value is None:
            return "marginal"
        if self.p_value < LEVEL and self.paired.difference < 0:
            return "essential"
        return "dispensable" if self.paired.interval.low >= -margin else "marginal"


def measure(db: duckdb.DuckDBPyConnection, ablation: Ablation) -> list[Effect]:
    """Return the effect of each variation; the p-values of sections are corrected by Holm."""
    effects = [_effect(db, ablation, one) for one in ablation.variations[1:]]
    found = [one.p_value for one in effects if one.variation.is_section]
    corrected = iter(holm([p_value for p_value in found if p_value is not None]))
    return [
        replace(one, p_value=next(corrected))
        if one.p_value is not None and one.variation.is_section
        else one
        for one in effects
    ]


def _effect(db: duckdb.DuckDBPyConnection, ablation: Ablation, one: Variation) -> Effect:
    pairs = _pairs(db, ablation, one)
    is_compared = pairs["state"] == COMPARED
    compared = pairs[is_compared]
    paired = _compare(compared, one, ablation.samples) if len(compared) else None
    # Tokens by which a model's requests were shorter: the median, since there are outliers.
    measured = pairs.groupby("model")["tokens"].median().dropna().to_dict()
    tokens = {model.id: measured.get(model.id, one.tokens) for model in ablation.models}
    prices = {model.id: model.prices.prompt for model in ablation.models}
    costs = [tokens[name] * price * EACH for name, price in prices.items() if price is not None]
    return Effect(
        variation=one,
        run_ids=tuple(sorted(pairs["varied_run"].dropna().unique())),
        usual_run_ids=tuple(sorted(pairs["usual_run"].dropna().unique())),
        excluded=Counter(pairs["state"][~is_compared]),
        tasks=compared["item"].nunique(),
        paired=paired,
        p_value=paired.p_value if paired else None,
        tokens=fmean(tokens.values()),
        is_measured=measured.keys() >= tokens.keys(),
        usd=fmean(costs) if len(costs) == len(prices) else None,
    )


def _pairs(db: duckdb.DuckDBPyConnection, ablation: Ablation, one: Variation) -> "pd.DataFrame":
    """Return each model's scores on each task, with the guidelines and under the variation."""
    usual = ablation.baseline
    given = {
        "models": [model.id for model in ablation.models],
        "plan": sorted(f"{key.suite}/{key.item_id}" for key in ablation.plan),
        "samples": ablation.samples,
        "usual_experiment": usual.experiment,
        "usual_hash": usual.prompt_hash,
        "varied_experiment": one.experiment,
        "varied_hash": one.prompt_hash,
    }
    return query(db, "summaries/ablation", given).df()


def _compare(pairs: "pd.DataFrame", one: Variation, samples: int) -> Paired:
    """Compare over all models; what several models did on one task is not independent."""
    varied, usual = (pairs[name].to_numpy(np.float64) for name in ("varied_score", "usual_score"))
    _, tasks = np.unique(pairs["item"], return_inverse=True)
    a, b = (Entry(0, "", name, "", "", "", samples) for name in (one.experiment, "as usual"))
    compared = compare_scores(a, b, varied, usual, clusters=tasks, units=tasks)
    interval, error = cautious(differences_of(varied, usual), tasks)
    return compared.paired._replace(interval=interval, standard_error=error)


def plan_table(ablation: Ablation) -> Table:
    """What would be asked, before anybody is."""
    table = _new_table(f"Guidelines for {ablation.toolchain}: what is left out")
    for name in ("experiment", "left out"):
        table.add_column(name, overflow="fold")
    table.add_column("tokens, about", justify="right")
    for one in ablation.variations:
        table.add_row(one.experiment, escape(one.left_out), str(one.tokens))
    return table


def _new_table(title: str) -> Table:
    return Table(title=escape(title), box=SIMPLE, show_edge=False, pad_edge=False)


def requests_line(ablation: Ablation) -> str:
    """How much is to be asked."""
    parts = [
        (len(ablation.plan), "task"),
        (len(ablation.models), "model"),
        (ablation.samples, "sample"),
        (len(ablation.variations), "experiment"),
    ]
    factors = " x ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in parts)
    requests = prod(number for number, _ in parts)
    return f"{factors} = {requests} requests, less those that are answered already."


@dataclass(frozen=True)
class AblationReport:
    """All effects, those of the sections by how much they matter."""

    ablation: Ablation
    effects: Sequence[Effect]
    # The loss up to which a section is called dispensable.
    margin: float
    failures: Sequence[str] = ()

    def table(self) -> Table:
        """The effects in a terminal, as far as there is room."""
        table = _new_table(f"What the guidelines for {self.ablation.toolchain} are worth")
        shown = {name: show for name, show in self._columns().items() if name in _NARROW}
        for name in shown:
            side: Literal["left", "right"] = "left" if name in ("left out", "worth") else "right"
            table.add_column(name, justify=side, no_wrap=name != "left out", overflow="fold")
        for effect in self._sorted():
            table.add_row(*(escape(show(effect)) for show in shown.values()))
        return table

    def page(self, when: datetime) -> str:
        """The whole report in Markdown."""
        shown = self._columns()
        models = (
            plain(one.id) + (" (SIMULATED)" if one.simulated else "")
            for one in self.ablation.models
        )
        cells = [[plain(show(one)) for show in shown.values()] for one in self._sorted()]
        parts = [
            f"# What the guidelines for {plain(self.ablation.toolchain)} are worth",
            f"As of {when:%Y-%m-%d %H:%M} UTC. {requests_line(self.ablation)}",
            f"Models: {', '.join(models)}.",
            tabulate(cells, list(shown), tablefmt="pipe", disable_numparse=True),
            *map(plain, self.remarks()),
            METHOD,
            "## Runs",
            "\n".join(self._runs()),
        ]
        if self.failures:
            parts += ["## What went wrong", "\n".join(f"- {plain(one)}" for one in self.failures)]
        return "\n\n".join(parts) + "\n"

    def write(self, path: Path, when: datetime) -> None:
        """Puts the page in place as a whole."""
        with translate_os_errors(path):
            swap_in(path, self.page(when).encode())

    def remarks(self) -> Iterator[str]:
        """What has to be known to read the numbers."""
        yield (
            "Points are percentage points of the mean score, without the section minus with it. "
            "Essential: significantly worse without it (corrected p below 0.05). Dispensable: the "
            f"95 % interval excludes a loss of more than {self.margin * 100:g} points. "
            "Marginal: neither can be said."
        )
        if simulated := [model.id for model in self.ablation.models if model.simulated]:
            yield (
                f"SIMULATED models: {', '.join(simulated)}. Their skill is invented and does not "
                "depend on any guidelines, so what is found of them says nothing about any section."
            )
        sections = [one for one in self.effects if one.variation.is_section]
        if sections and all(one.worth(self.margin) == "marginal" for one in sections):
            yield "Of no section it was found that it matters, or that it does not."
        found = [loss for one in sections if (loss := self._detectable(one)) is not None]
        if found:
            yield (
                f"A true loss of {max(found) * 100:.1f} points would be found in about 80 % of "
                "such comparisons, whichever the section; do not expect a smaller one to show."
            )
        yield from self._excluded()
        if any(not one.is_measured for one in self.effects):
            yield "Tokens with ~ are estimated by length, for not every server told them."
        yield f"USD: for {EACH:,} requests at the models' usual price of input, on average."

    def _detectable(self, one: Effect) -> float | None:
        """Return how large a true loss is that is found in 80 % of such comparisons."""
        family = self.ablation.sections if one.variation.is_section else 1
        return one.paired.detectable(family) if one.paired else None

    def _excluded(self) -> Iterator[str]:
        counted = sum((Counter(one.excluded) for one in self.effects), Counter[str]())
        if not counted:
            yield "No pair had to be left out."
            return
        why = ", ".join(f"{number} {reason}" for reason, number in sorted(counted.items()))
        yield (
            f"Pairs that had to be left out: {counted.total()} ({why}). Nothing is assumed about "
            "them; the same command asks and grades again what is missing."
        )

    def _columns(self) -> Mapping[str, Callable[[Effect], str]]:
        return {
            "left out": lambda one: one.variation.left_out,
            "tokens": lambda one: f"{'' if one.is_measured else '~'}{one.tokens:.0f}",
            "USD": lambda one: "-" if one.usd is None else f"{one.usd:.4f}",
            "tasks": lambda one: str(one.tasks),
            "pairs": lambda one: str(one.paired.items if one.paired else 0),
            "pairs left out": lambda one: str(sum(one.excluded.values())),
            "points": lambda one: _points(one.paired.difference if one.paired else None),
            "95 %": _interval,
            "better": lambda one: str(one.paired.better if one.paired else 0),
            "worse": lambda one: str(one.paired.worse if one.paired else 0),
            "p": lambda one: "-" if one.p_value is None else f"{one.p_value:.2g}",
            "loss found from": lambda one: _points(self._detectable(one), -1),
            "worth": lambda one: one.worth(self.margin) if one.variation.is_section else "-",
        }

    def _sorted(self) -> list[Effect]:
        """All guidelines first, then what is missed most."""
        return sorted(
            self.effects,
            key=lambda one: (
                one.variation.is_section,
                one.paired is None,
                one.paired.difference if one.paired else 0.0,
            ),
        )

    def _runs(self) -> Iterator[str]:
        usual = sorted({run for one in self.effects for run in one.usual_run_ids})
        yield f"- `{BASELINE}`: {_listed(usual)}"
        for one in self.effects:
            yield f"- `{one.variation.experiment}`: {_listed(one.run_ids)}"


def _listed(run_ids: Sequence[str]) -> str:
    return ", ".join(plain(run[:_RUN_CHARACTERS]) for run in run_ids) or "none"


def _points(share: float | None, sign: int = 1) -> str:
    return "-" if share is None else f"{sign * share * 100:+.1f}"


def _interval(one: Effect) -> str:
    if one.paired is None or one.paired.interval is None:
        return "-"
    return " to ".join(map(_points, one.paired.interval))

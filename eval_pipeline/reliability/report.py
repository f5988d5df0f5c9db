"""How far judges can be trusted, as people read it: a table per measure, and what it means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb
from tabulate import tabulate

from eval_pipeline.journal import translate_os_errors
from eval_pipeline.journal.files import swap_in
from eval_pipeline.queries import query
from eval_pipeline.reliability.measures import (
    BETWEEN_JUDGES,
    OWN_FAMILY,
    PEOPLE,
    REPEATS,
    Shown,
)
from eval_pipeline.untrusted import plain

_VERSION_CHARACTERS = 8


@dataclass(frozen=True)
class Section:
    """One measure: what its numbers mean, what would be worrying, and how to get any."""

    measure: str
    title: str
    about: str
    missing: str
    columns: Mapping[str, Callable[[Shown], str]]

    def table(self, rows: Sequence[Shown]) -> str:
        """The measure's rows as a table in Markdown; where there are none, what to do."""
        of_measure = [row for row in rows if row.measure == self.measure]
        if not of_measure:
            return self.missing
        cells = [[show(row) for show in self.columns.values()] for row in of_measure]
        return tabulate(cells, list(self.columns), tablefmt="pipe", disable_numparse=True)


@dataclass(frozen=True)
class Report:
    """Every measure there is, and what is to be minded."""

    rows: Sequence[Shown]
    warnings: Sequence[str]

    @classmethod
    def of(cls, db: duckdb.DuckDBPyConnection, told: Sequence[str]) -> "Report":
        """What the tables say, with what else there is to tell."""
        found = query(db, "summaries/judge_reliability")
        rows = [Shown.of(dict(zip(found.columns, row, strict=True))) for row in found.fetchall()]
        minded = dict.fromkeys(row.warning for row in rows if row.warning)
        return cls(rows, [*told, *_unused_labels(db), *minded])

    def tables(self) -> dict[str, str]:
        """The table of each measure, by its name."""
        return {section.measure: section.table(self.rows) for section in SECTIONS}

    def page(self, when: datetime) -> str:
        """The whole report in Markdown."""
        parts = [
            "# How far the judges can be trusted",
            f"As of {when:%Y-%m-%d %H:%M} UTC. Replies that nobody had to grade, since the model "
            "had failed to answer, are left out.",
        ]
        if any(row.simulated or row.other_simulated for row in self.rows):
            parts.append(
                "Some judges are SIMULATED: they are part of the demo, and what is measured of "
                "them says nothing about any real judge."
            )
        minded = "\n".join(f"- {plain(one)}" for one in self.warnings)
        parts += ["## What to mind", minded or "Nothing."]
        for section in SECTIONS:
            parts += [f"## {section.title}", section.table(self.rows), section.about]
        return "\n\n".join(parts) + "\n"

    def write(self, path: Path, when: datetime) -> None:
        """Puts the page in place as a whole."""
        with translate_os_errors(path):
            swap_in(path, self.page(when).encode())


def _unused_labels(db: duckdb.DuckDBPyConnection) -> list[str]:
    counted = db.sql(
        "select count(*), count(*) filter (replies = 0), count(*) filter (answers > 1) "
        "from human_labels"
    ).fetchone()
    labels, unknown, unclear = counted or (0, 0, 0)
    told = [
        (unknown, "fit no reply that is there; they are not used"),
        (
            unclear,
            "fit several replies that are not the same text, so which one was meant is unknown; "
            "they are not used until the columns model, run_id or sample say it",
        ),
    ]
    return [f"{count} of {labels} labels {what}." for count, what in told if count]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    return "-" if value is None else f"{value:.1%} ({_share(low)} to {_share(high)})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _version(version: str | None) -> str:
    return "-" if version is None else version[:_VERSION_CHARACTERS]


_JUDGE: Mapping[str, Callable[[Shown], str]] = {
    "judge": lambda row: row.judge_name,
    "version": lambda row: _version(row.judge_version),
}

SECTIONS = (
    Section(
        REPEATS,
        "Asked again",
        "The flicker rate is the share of replies on which a judge, asked the same again, did not "
        "always say the same; the disagreement is the chance that two of its verdicts on one reply "
        "differ. Both should be near 0, and more than a few percent are worrying: a difference "
        "between two models that is smaller may be no more than the judge's mood. Where a gateway "
        "answers from a cache, a judge looks steadier than it is.",
        "No judge has judged anything again: materialize `judge_reliability`, with `answers` of "
        "`[reliability]` above 0.",
        {
            **_JUDGE,
            "replies": lambda row: _count(row.items),
            "verdicts": lambda row: _count(row.verdicts),
            "flicker rate (95 % interval)": lambda row: _interval(
                row.flicker_rate, row.flicker_low, row.flicker_high
            ),
            "disagreement": lambda row: _share(row.pairwise_disagreement),
            "base rate": lambda row: _share(row.base_rate),
        },
    ),
    Section(
        BETWEEN_JUDGES,
        "Between judges",
        "Agreement says little without the base rate beside it: where 90 % of the verdicts are "
        "the same, two judges who hardly look agree on most replies. Cohen's kappa (two judges) "
        "and Krippendorff's alpha (all judges) are 1 where all agree and 0 where they agree as "
        "chance has it; values below 0.8 are worrying, and so is a judge that says correct clearly "
        "more often than another on the same replies. Where all verdicts are the same, neither can "
        "be told. Two verdicts of one grader, such as those of the rules within two judges, are no "
        "two opinions and are not compared; over all judges, rules before a model are left out "
        "where that model or the rules judge by themselves too.",
        "No two judges have graded the same replies, each by itself: name further judges in `also` "
        "of `[judge]`, or materialize `judged` with another `judge`.",
        {
            **_JUDGE,
            "other judge": lambda row: row.other_name or "-",
            "replies": lambda row: _count(row.items),
            "agreement": lambda row: _share(row.agreement),
            "base rate": lambda row: _share(row.base_rate),
            "kappa": lambda row: _number(row.kappa),
            "alpha": lambda row: _number(row.alpha),
            "says correct": lambda row: _share(row.rate_correct),
            "other says correct": lambda row: _share(row.other_rate_correct),
        },
    ),
    Section(
        PEOPLE,
        "Beside people",
        "Positive means correct: tp are replies that both find correct, fp those that only the "
        "judge accepts, fn those that only the person does, tn those that both reject. TPR is the "
        "share of what is right that the judge accepts, TNR the share of what is wrong that it "
        "rejects. A low TNR is the more worrying: it makes weak models look better than they are. "
        "Agreement near the base rate, which always saying the same would reach, is no agreement.",
        "There are no labels of people that fit judged replies: name a CSV file in `labels` of "
        "`[reliability]`.",
        {
            **_JUDGE,
            "labeller": lambda row: "all" if row.labeller is None else plain(row.labeller),
            "labels": lambda row: _count(row.items),
            "tp": lambda row: _count(row.tp),
            "fp": lambda row: _count(row.fp),
            "tn": lambda row: _count(row.tn),
            "fn": lambda row: _count(row.fn),
            "TPR (95 % interval)": lambda row: _interval(row.tpr, row.tpr_low, row.tpr_high),
            "TNR (95 % interval)": lambda row: _interval(row.tnr, row.tnr_low, row.tnr_high),
            "agreement": lambda row: _share(row.agreement),
            "base rate": lambda row: _share(row.base_rate),
            "kappa": lambda row: _number(row.kappa),
        },
    ),
    Section(
        OWN_FAMILY,
        "Its own family",
        "Judges have been found to favour models of their own vendor. Compare the last two "
        "columns, which are over the same replies: a judge that says correct clearly more often "
        "than judges of other families is worrying. Where nobody else has judged, there is no "
        "telling: let a judge of another vendor judge too.",
        "No judge has graded models of its own vendor.",
        {
            **_JUDGE,
            "models": lambda row: ", ".join(row.models or ()),
            "replies": lambda row: _count(row.items),
            "says correct": lambda row: _share(row.rate_correct),
            "shared replies": lambda row: _count(row.shared_items),
            "says correct there": lambda row: _share(row.shared_rate_correct),
            "others say correct there": lambda row: _share(row.other_rate_correct),
        },
    ),
)

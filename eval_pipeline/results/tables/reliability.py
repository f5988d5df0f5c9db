"""The report on the judges' reliability: a table per measure, and its meaning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb
from tabulate import tabulate

from eval_pipeline.journal import translate_os_errors
from eval_pipeline.journal.files import swap_in
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import Row
from eval_pipeline.text import plain

_VERSION_CHARACTERS = 8


@dataclass(frozen=True)
class Section:
    """One measure: what its numbers mean, what would be worrying, and how to get any."""

    measure: str
    title: str
    about: str
    missing: str
    columns: Mapping[str, str]

    def table(self, rows: Sequence[Row]) -> str:
        """The measure's rows as a table in Markdown; where there are none, what to do."""
        of_measure = [row for row in rows if row["measure"] == self.measure]
        if not of_measure:
            return self.missing
        cells = [[_cell(row, name) for name in self.columns.values()] for row in of_measure]
        return tabulate(cells, list(self.columns), tablefmt="pipe", disable_numparse=True)


@dataclass(frozen=True)
class Report:
    """All measures, and the warnings."""

    rows: Sequence[Row]
    warnings: Sequence[str]

    @classmethod
    def of(cls, db: duckdb.DuckDBPyConnection, told: Sequence[str]) -> "Report":
        """Read the measures and warnings from the tables; `told` are further warnings."""
        found = rows(query(db, "summaries/judge_reliability"))
        minded = dict.fromkeys(row["warning"] for row in found if row["warning"])
        return cls(found, [*told, *_unused_labels(db), *minded])

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
        if any(row["simulated"] or row["other_simulated"] for row in self.rows):
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


_INTERVALS = {
    "flicker_rate": ("flicker_low", "flicker_high"),
    "tpr": ("tpr_low", "tpr_high"),
    "tnr": ("tnr_low", "tnr_high"),
}


def _cell(row: Row, column: str) -> str:
    """Return a value as people read it, with its interval where it has one."""
    value = row[column]
    match column, value:
        case "labeller", _:
            return "all" if value is None else plain(value)
        case _, None:
            return "-"
        case (("judge" | "other_judge"), _):
            simulated = row["simulated" if column == "judge" else "other_simulated"]
            return f"{value} (simulated)" if simulated else str(value)
        case "judge_version", _:
            return str(value[:_VERSION_CHARACTERS])
        case (("kappa" | "alpha"), _):
            return f"{value:.3f}"
        case _, float():
            ends = [f"{row[end]:.1%}" for end in _INTERVALS.get(column, ())]
            return f"{value:.1%} ({' to '.join(ends)})" if ends else f"{value:.1%}"
    return ", ".join(value) if isinstance(value, list) else str(value)


_JUDGE = {"judge": "judge", "version": "judge_version"}

SECTIONS = (
    Section(
        "repeats",
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
            "replies": "items",
            "verdicts": "verdicts",
            "flicker rate (95 % interval)": "flicker_rate",
            "disagreement": "pairwise_disagreement",
            "base rate": "base_rate",
        },
    ),
    Section(
        "between judges",
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
            "other judge": "other_judge",
            "replies": "items",
            "agreement": "agreement",
            "base rate": "base_rate",
            "kappa": "kappa",
            "alpha": "alpha",
            "says correct": "rate_correct",
            "other says correct": "other_rate_correct",
        },
    ),
    Section(
        "people",
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
            "labeller": "labeller",
            "labels": "items",
            "tp": "tp",
            "fp": "fp",
            "tn": "tn",
            "fn": "fn",
            "TPR (95 % interval)": "tpr",
            "TNR (95 % interval)": "tnr",
            "agreement": "agreement",
            "base rate": "base_rate",
            "kappa": "kappa",
        },
    ),
    Section(
        "own family",
        "Its own family",
        "Judges have been found to favour models of their own vendor. Compare the last two "
        "columns, which are over the same replies: a judge that says correct clearly more often "
        "than judges of other families is worrying. Where nobody else has judged, there is no "
        "telling: let a judge of another vendor judge too.",
        "No judge has graded models of its own vendor.",
        {
            **_JUDGE,
            "models": "models",
            "replies": "items",
            "says correct": "rate_correct",
            "shared replies": "shared_items",
            "says correct there": "shared_rate_correct",
            "others say correct there": "other_rate_correct",
        },
    ),
)

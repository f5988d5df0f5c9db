"""The contents of a report: a run, its failures, their patterns and the runs before it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote

from eval_pipeline.analysis.failures import WRONG
from eval_pipeline.analysis.patterns import Pattern
from eval_pipeline.analysis.report.earlier import Action, EarlierFailure, EarlierRun
from eval_pipeline.analysis.report.paths import ID_CHARACTERS, utc
from eval_pipeline.records.diagnosis import Classification
from eval_pipeline.results.runs import Row
from eval_pipeline.results.tables.format import one_line
from eval_pipeline.text import fenced, plain, printable

ANSWER = "answer"
"""Where questions fail, which have no steps."""
MOST_IN_FULL = 200
"""Failures with all that is known of them; a longer report is too long to read."""
LONGEST_LINE, LONGEST_TEXT = 300, 2000
MOST_LINES, MOST_CHARACTERS = 60, 4000
# Much as in the patterns: names, places and numbers differ where the error is the same.
_VARIES = re.compile(
    r"""'[^']*'|"[^"]*"|`[^`]*`|[\w.@~-]*(?:/[\w.@~-]+)+|\b\d+(?:[.,:]\d+)*""", re.IGNORECASE
)
# Some renderers make links of bare addresses, and formulas of what is between two dollars.
_LINK = re.compile(r"(?:https?|ftp|mailto)(?=:)|www(?=\.)", re.IGNORECASE)


class Repeat(NamedTuple):
    """An earlier failure of the same item; `is_same_error` is None where that is unknown."""

    run: EarlierRun
    is_same_error: bool | None


class Recorded(NamedTuple):
    """An action about an item that is noted beside an earlier report."""

    run: EarlierRun
    action: Action
    is_later: bool
    """True if it was done after the run was opened, which it could not help."""


@dataclass(frozen=True)
class ReportData:
    """All that a report is made of."""

    run: Row
    failures: Sequence[Row]
    patterns: Sequence[Pattern]
    earlier: Sequence[EarlierRun]
    analysed: datetime

    @property
    def opened(self) -> datetime:
        """Return when the run was opened, in UTC."""
        return utc(self.run["opened_at"])

    @property
    def run_name(self) -> str:
        """Return the run as commands take it."""
        return f"{self.run['model']}@{self.run['run_id'][:ID_CHARACTERS]}"

    @cached_property
    def wrong(self) -> list[Row]:
        """Return the failures that say something about the model, by suite and item."""
        found = (row for row in self.failures if row["went"] == WRONG)
        return sorted(found, key=lambda row: (row["suite"], row["item_id"], row["sample"]))

    @property
    def infrastructure(self) -> list[Row]:
        """Return the failures that say nothing about the model."""
        return [row for row in self.failures if row["went"] != WRONG]

    @property
    def in_full(self) -> list[Row]:
        """Return the failures that people can do most about, as many as can be read."""
        return [row for row in self.wrong if id(row) in self._in_full]

    @property
    def in_brief(self) -> list[Row]:
        """Return the other failures."""
        return [row for row in self.wrong if id(row) not in self._in_full]

    @cached_property
    def _in_full(self) -> set[int]:
        def rank(row: Row) -> int:
            if self.recorded(row):
                return 0
            return {None: 3, Classification.MODEL_FAULT: 2}.get(row["classification"], 1)

        return {id(row) for row in sorted(self.wrong, key=rank)[:MOST_IN_FULL]}

    @property
    def analysts(self) -> list[tuple[str, bool]]:
        """Return the ids of the analysts, and whether they are simulated."""
        found = {row["analyst"]: row["analyst_simulated"] for row in self.wrong if row["analyst"]}
        return sorted(found.items())

    def classified(self, *wanted: Classification | None) -> list[Row]:
        """Return the wrong replies that have one of these classifications."""
        return [row for row in self.wrong if row["classification"] in wanted]

    @property
    def actionable(self) -> list[Row]:
        """Return the failures that are not the model's fault, and not a known gap already."""
        return self.classified(Classification.OVERLY_STRICT, Classification.AMBIGUOUS_TASK)

    @property
    def unfair(self) -> list[Row]:
        """Return the failures that are not the model's fault."""
        return self.classified(*(one for one in Classification if one.is_unfair))

    def repeats(self, row: Row) -> list[Repeat]:
        """Return the earlier runs in which the item failed, the latest first."""
        found = ((run, run.failures.get(name_of(row))) for run in self.earlier)
        return [Repeat(run, _is_same_error(row, others)) for run, others in found if others]

    def recorded(self, row: Row) -> list[Recorded]:
        """Return what people noted about the item before, the latest first."""
        return [
            Recorded(run, action, bool(action.day and action.day > self.opened.date()))
            for run in self.earlier
            for action in run.actions
            if action.is_about(row["suite"], row["item_id"])
        ]


def link(run: EarlierRun) -> str:
    """Return the name of an earlier run, with a link to its report in the same folder."""
    if run.report is None:
        return f"run {inline(run.run_id[:ID_CHARACTERS])} of {run.opened:%Y-%m-%d}"
    return f"[{inline(run.report.stem)}]({quote(run.report.name)})"


def name_of(row: Row) -> str:
    """Return an item with its suite."""
    return f"{row['suite']}/{row['item_id']}"


def step_of(row: Row) -> str:
    """Return the step that failed."""
    return row["failed_step"] or ANSWER


def inline(text: object, longest: int = LONGEST_LINE) -> str:
    """Return an untrusted text as words within a line; never to be used at the start of one."""
    escaped = plain(printable(one_line(str(text), longest)))
    return _LINK.sub(r"\g<0>\\", escaped).replace("$", "\\$")


def snippet(text: str) -> str:
    """Return an untrusted piece of code or text as a code block, cut where it is long."""
    lines = text[:MOST_CHARACTERS].replace("\r\n", "\n").split("\n")
    block = fenced("\n".join(lines[:MOST_LINES]))
    is_cut = len(text) > MOST_CHARACTERS or len(lines) > MOST_LINES
    return f"{block}\n\nIt goes on; this is the beginning." if is_cut else block


def _is_same_error(row: Row, others: Sequence[EarlierFailure]) -> bool | None:
    known = {(one.step or ANSWER, _gist(one.error)) for one in others if one.error}
    if not row["error"] or not known:
        return None
    return (step_of(row), _gist(row["error"])) in known


def _gist(error: str) -> str:
    return _VARIES.sub("…", one_line(error, LONGEST_LINE)).casefold().rstrip(". ")

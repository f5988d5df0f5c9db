"""The contents of a report: a run, its failures, their patterns and the runs before it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

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

    @property
    def should_have_helped(self) -> bool:
        """Return whether it was done before the run."""
        return self.action.is_done and not self.is_later


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
    def wrong(self) -> Sequence[Row]:
        """Return the failures that say something about the model, by suite and item."""
        found = (row for row in self.failures if row["went"] == WRONG)
        return sorted(found, key=lambda row: (row["suite"], row["item_id"], row["sample"]))

    @cached_property
    def infrastructure(self) -> Sequence[Row]:
        """Return the failures that say nothing about the model."""
        return [row for row in self.failures if row["went"] != WRONG]

    def classified(self, *wanted: Classification) -> list[Row]:
        """Return the failures that have one of these classifications."""
        return [row for row in self.wrong if row["classification"] in wanted]

    @property
    def unfair(self) -> Sequence[Row]:
        """Return the failures that are not the model's fault."""
        return self.classified(*(one for one in Classification if one.is_unfair))

    def repeats(self, row: Row) -> Iterator[Repeat]:
        """Yield the earlier runs in which the item failed, the latest first."""
        for run in self.earlier:
            if others := run.failures.get(name_of(row)):
                yield Repeat(run, _is_same_error(row, others))

    def recorded(self, row: Row) -> Iterator[Recorded]:
        """Yield what people noted about the item before, the latest first."""
        for run in self.earlier:
            for action in run.actions:
                if action.is_about(row["suite"], row["item_id"]):
                    day = action.day
                    yield Recorded(run, action, bool(day and day > self.opened.date()))


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

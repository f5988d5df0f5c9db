"""What a report is made of: a run, its failures, what they have in common, and what was before."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from eval_pipeline.analysis.failures import WRONG
from eval_pipeline.analysis.patterns import Pattern
from eval_pipeline.analysis.records import Classification
from eval_pipeline.analysis.report.comments import FailureNote, Head, utc
from eval_pipeline.analysis.report.naming import ID_CHARACTERS
from eval_pipeline.analysis.report.prior import Action, Prior
from eval_pipeline.analysis.report.texts import LONGEST_LINE, LONGEST_TEXT
from eval_pipeline.overview import Row
from eval_pipeline.results.tables.format import one_line
from eval_pipeline.untrusted import printable

ANSWER = "answer"
"""Where questions fail, which have no steps."""
# Much as in the patterns: names, places and numbers differ where the error is the same.
_VARIES = re.compile(
    r"""'[^']*'|"[^"]*"|`[^`]*`|[\w.@~-]*(?:/[\w.@~-]+)+|\b\d+(?:[.,:]\d+)*""", re.IGNORECASE
)


class Repeat(NamedTuple):
    """An earlier report in which the same item failed; None if nobody knows with which error."""

    prior: Prior
    is_same_error: bool | None


class Recorded(NamedTuple):
    """What people noted in an earlier report about an item."""

    prior: Prior
    action: Action
    is_later: bool
    """Whether it was done after the run was opened, which it could not help."""

    @property
    def is_in_vain(self) -> bool:
        """Whether it should have helped."""
        return self.action.is_done and not self.is_later


@dataclass(frozen=True)
class Material:
    """All that is told in a report."""

    run: Row
    failures: Sequence[Row]
    patterns: Sequence[Pattern]
    earlier: Sequence[Prior]
    analysed: datetime
    kept: Sequence[str] = ()
    """The sections that people have edited."""

    @property
    def head(self) -> Head:
        """What the report is about."""
        return Head(
            run_id=self.run["run_id"],
            model=self.run["model"],
            opened=utc(self.run["opened_at"]),
            analysed=self.analysed,
        )

    @property
    def run_name(self) -> str:
        """The run as commands take it."""
        return f"{self.run['model']}@{self.run['run_id'][:ID_CHARACTERS]}"

    @cached_property
    def wrong(self) -> Sequence[Row]:
        """The failures that say something about the model, in an order in which they are found."""
        found = (row for row in self.failures if row["went"] == WRONG)
        return sorted(found, key=lambda row: (row["suite"], row["item_id"], row["sample"]))

    @cached_property
    def infrastructure(self) -> Sequence[Row]:
        """Those that do not."""
        return [row for row in self.failures if row["went"] != WRONG]

    def classified(self, *wanted: Classification) -> list[Row]:
        """The failures that are one of these."""
        return [row for row in self.wrong if row["classification"] in wanted]

    @property
    def unfair(self) -> Sequence[Row]:
        """The failures that the model can not be blamed for."""
        return self.classified(*(one for one in Classification if one.is_unfair))

    def repeats(self, row: Row) -> Iterator[Repeat]:
        """Where the item failed before, the latest first; not where this very reply was given."""
        note = note_of(row)
        for prior in self.earlier:
            others = prior.failures.get(note.item)
            if others and prior.head.run_id != row.get("carried_from"):
                yield Repeat(prior, _is_same(note, others))

    def recorded(self, row: Row) -> Iterator[Recorded]:
        """What people noted about the item before, the latest first."""
        for prior in self.earlier:
            for action in prior.actions:
                if action.is_about(row["suite"], row["item_id"]):
                    day = action.day
                    yield Recorded(prior, action, bool(day and day > self.head.opened.date()))


def name_of(row: Row) -> str:
    """An item with its suite."""
    return f"{row['suite']}/{row['item_id']}"


def step_of(row: Row) -> str:
    """Where it failed."""
    return row["failed_step"] or ANSWER


def note_of(row: Row) -> FailureNote:
    """The failure as later reports read it."""
    error = row["error"]
    return FailureNote(
        item=printable(name_of(row))[:LONGEST_TEXT],
        sample=row["sample"],
        step=printable(step_of(row))[:LONGEST_LINE],
        error=one_line(printable(error), LONGEST_LINE) if error else None,
        classification=row["classification"],
    )


def _is_same(note: FailureNote, others: Sequence[FailureNote]) -> bool | None:
    known = [other for other in others if other.error]
    if not note.error or not known:
        return None
    return (note.step, _gist(note.error)) in {(one.step, _gist(one.error or "")) for one in known}


def _gist(error: str) -> str:
    return _VARIES.sub("…", error[:LONGEST_LINE]).casefold().rstrip(". ")

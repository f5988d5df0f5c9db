"""Earlier reports of the same model: what failed there, and what people have done about it.

Anybody may have edited them, so what is not as we write it is passed over.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.analysis.report.comments import FailureNote, Head
from eval_pipeline.analysis.report.files import UnreadableError, head_in, read
from eval_pipeline.analysis.report.foreign import read_foreign
from eval_pipeline.analysis.report.lines import lines_of, outside_of_code
from eval_pipeline.analysis.report.paths import SUFFIX

ACTIONS = "Actions taken"
LARGEST = 50_000_000
MOST_ACTIONS, LONGEST_ACTION = 500, 1000
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_BOX = re.compile(r"\[([ xX])\]\s+")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_DAY = re.compile(r"\W*(\d{4}-\d{2}-\d{2})(?!\d)", re.ASCII)
_OPEN = " "


class Action(NamedTuple):
    """What people wrote under "Actions taken": a line of a list, or a paragraph."""

    text: str
    is_done: bool = True

    @property
    def day(self) -> date | None:
        """When it was done, if it begins with that."""
        found = _DAY.match(self.text)
        try:
            return date.fromisoformat(found[1]) if found else None
        except ValueError:
            return None

    def is_about(self, suite: str, item_id: str) -> bool:
        """Whether it names that item, with its suite or without."""
        if item_id not in self.text:
            return False
        names = "|".join(map(re.escape, (f"{suite}/{item_id}", item_id)))
        return re.search(rf"(?<![\w/-])(?:{names})(?![\w/-])", self.text) is not None


@dataclass(frozen=True)
class Prior:
    """An earlier report, as far as later ones need it."""

    path: Path
    head: Head
    failures: Mapping[str, Sequence[FailureNote]]
    actions: Sequence[Action]


class Earlier(NamedTuple):
    """The earlier reports, the latest first, and what had to be left out."""

    reports: Sequence[Prior]
    warnings: Sequence[str]


def earlier_reports(own: Path, head: Head) -> Earlier:
    """What the reports beside a run's own say of earlier runs of the same model."""
    found, warnings = [], []
    for path in sorted(set(own.parent.glob(f"*{SUFFIX}")) - {own}):
        try:
            prior = read_report(path)
        except UnreadableError as why:
            warnings.append(f"{path} is left out of the earlier reports: {why}.")
            continue
        if prior.head.model == head.model and prior.head.age < head.age:
            found.append(prior)
    return Earlier(sorted(found, key=lambda prior: prior.head.age, reverse=True), warnings)


def read_report(path: Path) -> Prior:
    """A report of any run."""
    text = read(path, LARGEST)
    head = head_in(text)
    lines = [line for _, line in outside_of_code(lines_of(text))]
    notes: Iterable[FailureNote] = filter(None, map(FailureNote.read, lines))
    actions = list(_actions(lines))
    if head is None:
        found = read_foreign(path, lines)
        if found is None:
            raise UnreadableError("its first comment does not say which run it is about")
        head, notes = found.head, found.notes
        actions = [_action(said) for said in found.actions]
    failures: dict[str, list[FailureNote]] = {}
    for note in notes:
        failures.setdefault(note.item, []).append(note)
    return Prior(path, head, failures, actions[:MOST_ACTIONS])


def _actions(lines: Sequence[str]) -> Iterator[Action]:
    """The blocks of text in that part of the report."""
    block: list[str] = []
    for line in [*_COMMENT.sub("", "\n".join(_under_actions(lines))).split("\n"), ""]:
        begins = _BULLET.match(line)
        if block and (begins or not line.strip() or _HEADING.fullmatch(line)):
            yield _action(" ".join(block))
            block = []
        if line.strip() and not _HEADING.fullmatch(line):
            block.append(line[begins.end() :] if begins else line)


def _under_actions(lines: Sequence[str]) -> Iterator[str]:
    is_there = False
    for line in lines:
        heading = _HEADING.fullmatch(line)
        is_wanted = heading and heading[2].rstrip(" \t#").casefold() == ACTIONS.casefold()
        if heading and (len(heading[1]) <= len("##") or is_wanted):
            is_there = bool(is_wanted)
        elif line.startswith("<!-- evals:"):
            is_there = False
        elif is_there:
            yield line


def _action(text: str) -> Action:
    words = _ESCAPE.sub(r"\1", " ".join(text.split()))[:LONGEST_ACTION]
    box = _BOX.match(words)
    return Action(words[box.end() :], box[1] != _OPEN) if box else Action(words)

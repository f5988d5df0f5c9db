"""Run analysis reports as convex-evals has them, read as earlier reports of the same model.

They stand in the same place, reports/{provider}/{model}/, and their failures have headings such as
`### 2. 003-crons (000-fundamentals) -- deploy`.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from eval_pipeline.analysis.report.comments import FailureNote, Head

SUITE = "convex"
"""What the suite is called that their items are taken to be of: its name unless it has another."""
_STEPS = {"tsc": "typecheck", "eslint": "lint", "convex": "deploy", "test": "tests"}
_TITLE = re.compile(r"#\s+Run Analysis\b")
_RUN = re.compile(r"-\s+\*\*Run ID\*\*:\s*`?([\w-]{1,200})")
_DATE = re.compile(r"-\s+\*\*Date\*\*:\s*(\d{4}-\d{2}-\d{2})(?!\d)", re.ASCII)
_FAILURE = re.compile(
    r"###\s+(?:\d+\.\s+)?(\d{3}-\w+)\s+\((\d{3}-\w+)\)(?:\s+(?:--|\u2014)\s+(\w+))?"
)
_CLASS = re.compile(r"\*\*Classification\*\*:\s*`?([A-Z_]+)")
_ACTION = re.compile(r"\*\*Actions? taken\*\*:\s*(.+)", re.IGNORECASE)
_NOTHING = re.compile(r"(?:none|no action)\b", re.IGNORECASE)


class Foreign(NamedTuple):
    """What such a report says: which run, what failed, and what was done about it."""

    head: Head
    notes: tuple[FailureNote, ...]
    actions: tuple[str, ...]


def read_foreign(path: Path, lines: Iterable[str]) -> Foreign | None:
    """The report, if it is of that form; its folders say whose it is."""
    rows = list(lines)
    run = next(filter(None, map(_RUN.match, rows)), None)
    day = next(filter(None, map(_DATE.match, rows)), None)
    if run is None or day is None or not any(map(_TITLE.match, rows)):
        return None
    try:
        when = datetime.fromisoformat(day[1]).replace(tzinfo=UTC)
        model = f"{path.parent.parent.name}/{path.parent.name}"
        head = Head(run_id=run[1], model=model, opened=when, analysed=when)
    except (ValueError, ValidationError):
        return None
    return Foreign(head, *_failures(rows, day[1]))


def _failures(rows: list[str], day: str) -> tuple[tuple[FailureNote, ...], tuple[str, ...]]:
    notes: list[FailureNote] = []
    actions: list[str] = []
    for row in rows:
        if found := _FAILURE.match(row):
            item = f"{SUITE}/{found[2]}/{found[1]}"
            step = _STEPS.get(found[3], found[3]) if found[3] else None
            notes.append(FailureNote(item=item, step=step))
        elif notes and (said := _CLASS.match(row)):
            notes[-1] = notes[-1].model_copy(update={"classification": said[1]})
        elif notes and (done := _ACTION.match(row)) and not _NOTHING.match(done[1]):
            actions.append(f"{day}: {notes[-1].item}: {done[1]}")
    return tuple(notes), tuple(actions)

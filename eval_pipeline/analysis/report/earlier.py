"""Earlier runs of the same model: what failed there, and what people did about it since."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

import duckdb

from eval_pipeline.analysis.report.paths import files_in, folder_of, notes_of, reports_in, utc
from eval_pipeline.analysis.report.paths import read_text as read
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import Row

LARGEST = 1_000_000
MOST_RUNS = 50
MOST_ACTIONS, LONGEST_ACTION = 500, 1000
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_BREAK = re.compile(r"\n\s*\n|^#{1,6}[ \t].*$|^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+", re.MULTILINE)
_BOX = re.compile(r"\[([ xX])\]\s+")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_DAY = re.compile(r"\W*(\d{4}-\d{2}-\d{2})(?!\d)", re.ASCII)

# Reports of convex-evals, which are in the same place: headings such as
# `### 2. 003-crons (000-fundamentals) -- deploy`.
CONVEX_SUITE = "convex"
_CONVEX_STEPS = {"tsc": "typecheck", "eslint": "lint", "convex": "deploy", "test": "tests"}
_CONVEX_TITLE = re.compile(r"^#\s+Run Analysis\b", re.MULTILINE)
_CONVEX_RUN = re.compile(r"^-\s+\*\*Run ID\*\*:\s*`?([\w-]{1,200})", re.MULTILINE)
_CONVEX_DATE = re.compile(
    r"^-\s+\*\*Date\*\*:\s*(\d{4}-\d{2}-\d{2})(?!\d)", re.ASCII | re.MULTILINE
)
_CONVEX_FAILURE = re.compile(
    r"^###\s+(?:\d+\.\s+)?(\d{3}-\w+)\s+\((\d{3}-\w+)\)(?:\s+(?:--|\u2014)\s+(\w+))?", re.MULTILINE
)
_CONVEX_ACTION = re.compile(
    r"^\*\*Actions? taken\*\*:[ \t]*+(?!none\b|no action\b)(.+)", re.IGNORECASE | re.MULTILINE
)


class Action(NamedTuple):
    """A line of a list, or a paragraph, in the notes beside a report."""

    text: str
    is_done: bool = True

    @classmethod
    def read(cls, text: str) -> "Action":
        """Return the action that a piece of Markdown describes."""
        words = _ESCAPE.sub(r"\1", " ".join(text.split()))[:LONGEST_ACTION]
        box = _BOX.match(words)
        return cls(words[box.end() :], box[1] != " ") if box else cls(words)

    @property
    def day(self) -> date | None:
        """When it was done, if it begins with a date."""
        found = _DAY.match(self.text)
        try:
            return date.fromisoformat(found[1]) if found else None
        except ValueError:
            return None

    def is_about(self, suite: str, item_id: str) -> bool:
        """Return whether it names that item, with its suite or without."""
        if item_id not in self.text:
            return False
        names = "|".join(map(re.escape, (f"{suite}/{item_id}", item_id)))
        return re.search(rf"(?<![\w/-])(?:{names})(?![\w/-])", self.text) is not None


class EarlierFailure(NamedTuple):
    """Where and with which error an item failed, as far as known."""

    step: str | None
    error: str | None = None


@dataclass(frozen=True)
class EarlierRun:
    """An earlier run of the model: its failures by suite/item, and what was done about them."""

    run_id: str
    opened: datetime
    failures: Mapping[str, Sequence[EarlierFailure]]
    report: Path | None = None
    actions: Sequence[Action] = ()


def earlier_runs(
    db: duckdb.DuckDBPyConnection, reports: Path, run: Row, known: Sequence[Row]
) -> list[EarlierRun]:
    """Return the runs of the same model before this one, the latest first.

    `known` are rows of all runs, the newest first.
    """
    age = (run["opened_at"], run["run_id"])
    mine = (one for one in known if one["model"] == run["model"])
    before = [one for one in mine if (one["opened_at"], one["run_id"]) < age][:MOST_RUNS]
    failed = _failures(db, run, [one["run_id"] for one in before])
    folder = folder_of(reports, run["model"])
    paths = {run_id: path for path, run_id in reports_in(folder)}
    found = [
        EarlierRun(
            one["run_id"],
            utc(one["opened_at"]),
            failed.get(one["run_id"], {}),
            path,
            actions_in(notes_of(path)) if path else (),
        )
        for one in before
        for path in [paths.get(one["run_id"])]
    ]
    convex = (one for path in files_in(folder) if (one := read_convex_report(path)))
    found += [one for one in convex if one.opened < utc(run["opened_at"])]
    return sorted(found, key=lambda one: (one.opened, one.run_id), reverse=True)


def _failures(
    db: duckdb.DuckDBPyConnection, run: Row, run_ids: Sequence[str]
) -> dict[str, dict[str, list[EarlierFailure]]]:
    """Return the failures of earlier runs at the items that failed in this one, run by run."""
    ids = [run["run_id"], *run_ids]
    given = {"run_id": run["run_id"], "run_ids": ids, "models": [run["model"]] * len(ids)}
    found: dict[str, dict[str, list[EarlierFailure]]] = {}
    for row in rows(query(db, "summaries/earlier_failures", given)):
        items = found.setdefault(row["run_id"], {})
        failure = EarlierFailure(row["failed_step"], row["error"])
        items.setdefault(f"{row['suite']}/{row['item_id']}", []).append(failure)
    return found


def actions_in(notes: Path) -> list[Action]:
    """Return the actions that people noted in a file; none if there is no such file."""
    text = _CODE.sub("\n\n", _COMMENT.sub("", read(notes, LARGEST) or ""))
    blocks = _BREAK.sub("\0", text.replace("\r\n", "\n")).split("\0")
    return [Action.read(block) for block in blocks if block.strip()][:MOST_ACTIONS]


def read_convex_report(path: Path) -> EarlierRun | None:
    """Return the run that a report of convex-evals is about; None if it is no such report."""
    text = _CODE.sub("", read(path, LARGEST) or "")
    run, day = _CONVEX_RUN.search(text), _CONVEX_DATE.search(text)
    if run is None or day is None or not _CONVEX_TITLE.search(text):
        return None
    try:
        opened = datetime.fromisoformat(day[1]).replace(tzinfo=UTC)
    except ValueError:
        return None
    failures: dict[str, list[EarlierFailure]] = {}
    actions: list[Action] = []
    for item, step, action in _convex_failures(text):
        failures.setdefault(item, []).append(EarlierFailure(step))
        if action:
            actions.append(Action.read(f"{day[1]}: {item}: {action}"))
    return EarlierRun(run[1], opened, failures, path, actions)


def _convex_failures(text: str) -> Iterator[tuple[str, str | None, str | None]]:
    found = list(_CONVEX_FAILURE.finditer(text))
    ends = [one.start() for one in found[1:]] + [len(text)]
    for one, end in zip(found, ends, strict=True):
        name, category, step = one.groups()
        action = _CONVEX_ACTION.search(text, one.end(), end)
        item = f"{CONVEX_SUITE}/{category}/{name}"
        yield item, _CONVEX_STEPS.get(step, step), action and action[1]

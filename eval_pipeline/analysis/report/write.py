"""The reports on why models failed: written as a whole, with a file for people beside each."""

import logging
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

import duckdb
from filelock import FileLock
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from eval_pipeline.analysis.failures import WRONG
from eval_pipeline.analysis.patterns import patterns_of
from eval_pipeline.analysis.report import data as contents
from eval_pipeline.analysis.report import recommendations, summary
from eval_pipeline.analysis.report.data import ReportData, inline, snippet
from eval_pipeline.analysis.report.earlier import earlier_runs
from eval_pipeline.analysis.report.paths import (
    COPY,
    ReportError,
    edited_copies,
    folder_of,
    known_report,
    notes_of,
    path_of,
    utc,
)
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal.files import swap_in
from eval_pipeline.records.diagnosis import Classification
from eval_pipeline.results.runs import Row, failed_replies, run_rows
from eval_pipeline.settings.settings import Settings

log = logging.getLogger(__name__)

ACTIONS = "Actions taken"
HINT = (
    "<!-- What was done about these failures, one line each, best with the day first (2025-01-31). "
    "Name the items, so that later reports can say whether it helped. A line that begins with "
    "- [ ] is not done yet. This file is never overwritten. -->"
)
_ANALYSED = re.compile(r"^- Analysed: .*$", re.MULTILINE)
_FOOTER = "\n---\n\n"


class Reported(NamedTuple):
    """A run with its report; `path` is None where no failure could be explained."""

    run: Row
    counts: dict[str, int]
    path: Path | None
    error: str | None = None


def write_reports(
    db: duckdb.DuckDBPyConnection, settings: Settings, runs: Sequence[Row], when: datetime
) -> list[Reported]:
    """Write one report per run in which any failure is explained.

    The runs are looked up again: while an analyst was asked, more may have been judged. A report
    that cannot be written does not keep the others from being written.
    """
    known = run_rows(db, ())
    now = {(row["run_id"], row["model"]): row for row in known}
    meant = [now[name] for run in runs if (name := (run["run_id"], run["model"])) in now]
    return [_report(db, settings, run, known, when) for run in meant]


def _report(
    db: duckdb.DuckDBPyConnection,
    settings: Settings,
    run: Row,
    known: Sequence[Row],
    when: datetime,
) -> Reported:
    failures = failed_replies(db, [run])
    reported = Reported(run, counts(failures), None)
    if not any(one["classification"] for one in failures):
        return reported
    patterns = patterns_of(db, run["run_id"], run["model"], run["judge"], run["judge_version"])
    try:
        earlier = earlier_runs(db, settings.reports, run, known)
        data = ReportData(run, failures, patterns, earlier, utc(when))
        return reported._replace(path=write_report(settings, data))
    except ReportError as error:
        return reported._replace(error=str(error))


def fail_if_not_written(reported: Sequence[Reported]) -> None:
    """Raise what kept reports from being written, after all others are."""
    if errors := [one.error for one in reported if one.error]:
        raise ReportError("\n".join(errors))


def reports_on(db: duckdb.DuckDBPyConnection, settings: Settings, runs: Sequence[Row]) -> list[Row]:
    """Return per run the counts of its failures, and the paths of its report and edited copies."""
    return [
        {
            **{name: run[name] for name in ("run_id", "model", "experiment", "simulated")},
            **counts(failed_replies(db, [run])),
            "path": str(path) if path else None,
            "kept": list(map(str, edited_copies(path))) if path else [],
        }
        for run in runs
        for path in [known_report(settings.reports, run["run_id"], run["model"])]
    ]


def counts(failures: Sequence[Row]) -> dict[str, int]:
    """Return how many failures of a run have which classification."""
    said = [one["classification"] for one in failures if one["went"] == WRONG]
    named = {str(one): said.count(one) for one in Classification}
    return {"wrong": len(said), **named, "unexplained": said.count(None)}


def write_report(settings: Settings, data: ReportData) -> Path:
    """Write the report on a run, unless it has nothing new; a copy is kept of an edited one."""
    settings.data.mkdir(parents=True, exist_ok=True)
    folder, run_id = folder_of(settings.reports, data.run["model"]), data.run["run_id"]
    with FileLock(settings.data / "reports.lock", thread_local=False):
        path = path_of(folder, run_id, data.analysed)
        try:
            _write(path, _page(_redacted(data, settings), notes_of(path)))
            if not notes_of(path).exists():
                swap_in(notes_of(path), f"# {ACTIONS}\n\n{HINT}\n".encode())
        except OSError as error:
            raise ReportError(f"{path} cannot be written ({error.strerror}). Fix this.") from error
    return path


def _write(path: Path, page: str) -> None:
    if path.is_symlink() or path.exists():
        known = "" if path.is_symlink() else path.read_bytes().decode("utf-8", "replace")
        if not _is_as_written(known):
            log.warning("%s was edited: the edited one is now %s.", path, _put_aside(path))
        elif _undated(known) == _undated(page):
            return
    swap_in(path, page.encode())


def _put_aside(path: Path) -> Path:
    names = (f"{path.name}{f'.{number}' * (number > 1)}{COPY}" for number in count(1))
    copy = next(one for name in names if not (one := path.with_name(name)).exists())
    return path.rename(copy)


def _page(data: ReportData, notes: Path) -> str:
    named = {"data": data, "notes": notes, "notes_title": ACTIONS}
    return _with_footer(_template().render(named))


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        # Text that is not marked as safe is untrusted and is escaped here.
        finalize=lambda text: text if isinstance(text, Markup) else Markup(inline(text)),  # noqa: S704
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"inline": inline, "snippet": snippet, "quote": shlex.quote}
    environment.globals |= {"advice": recommendations, "contents": contents, "summary": summary}
    return environment.get_template("report.md.j2")


def _with_footer(text: str) -> str:
    """Return the text with a checksum, by which edits are noticed."""
    checksum = fingerprint(text)
    return (
        f"{text}{_FOOTER}Written by evals analyze, which replaces this file. Checksum {checksum}.\n"
    )


def _is_as_written(page: str) -> bool:
    return page == _with_footer(page.rpartition(_FOOTER)[0])


def _undated(page: str) -> str:
    return _ANALYSED.sub("", page.rpartition(_FOOTER)[0], count=1)


def _redacted(data: ReportData, settings: Settings) -> ReportData:
    """Return the data without keys, before anything is escaped: Markdown would alter them."""

    def clean(row: Row) -> Row:
        return {
            name: settings.redact(value) if isinstance(value, str) else value
            for name, value in row.items()
        }

    return replace(
        data,
        run=clean(data.run),
        failures=[clean(row) for row in data.failures],
        patterns=[replace(one, **clean(vars(one))) for one in data.patterns],
    )

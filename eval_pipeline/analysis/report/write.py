"""The report on why a model failed in a run: written once, then renewed where nobody edited it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from eval_pipeline.analysis.patterns import Pattern
from eval_pipeline.analysis.report.comments import Head, utc
from eval_pipeline.analysis.report.data import Material
from eval_pipeline.analysis.report.earlier import ACTIONS, earlier_reports
from eval_pipeline.analysis.report.failures import failure_sections, failures_text
from eval_pipeline.analysis.report.files import (
    ReportError,
    UnreadableError,
    head_in,
    put,
    read,
)
from eval_pipeline.analysis.report.paths import ID_CHARACTERS, folder_of, path_of
from eval_pipeline.analysis.report.recommendations import recommendations_text
from eval_pipeline.analysis.report.sections import (
    DamagedError,
    Part,
    Section,
    edited,
    marked,
    parts_of,
    with_head,
)
from eval_pipeline.analysis.report.summary import (
    classification_text,
    impact_text,
    infrastructure_text,
    metadata_text,
    patterns_text,
    steps_text,
)
from eval_pipeline.analysis.report.texts import inline
from eval_pipeline.analysis.report.updating import updated
from eval_pipeline.overview import Row
from eval_pipeline.settings import Settings

log = logging.getLogger(__name__)

SECTIONS: Mapping[str, Callable[[Material], str]] = {
    "metadata": metadata_text,
    "steps": steps_text,
    "classification": classification_text,
    "failures": failures_text,
    "infrastructure": infrastructure_text,
    "patterns": patterns_text,
    "recommendations": recommendations_text,
    "impact": impact_text,
}
HINT = (
    "<!-- For people: what was done about these failures, one line each, best with the day first "
    "(2025-01-31). Name the items, so that later reports can tell whether it helped. A line that "
    "begins with - [ ] is not done yet. Nothing here is ever overwritten. -->"
)


class Written(NamedTuple):
    """Where the report is, and which sections people had edited, so that they were left alone."""

    path: Path
    kept: tuple[str, ...]
    created: bool
    warnings: tuple[str, ...] = ()
    """What of the earlier reports could not be read."""


def write_report(
    settings: Settings,
    run: Row,
    failures: Sequence[Row],
    patterns: Sequence[Pattern],
    when: datetime,
) -> Written:
    """Writes the report on a run of a model, or renews it; if there is nothing new, neither."""
    settings.data.mkdir(parents=True, exist_ok=True)
    folder = folder_of(settings.reports, run["model"])
    with FileLock(settings.data / "reports.lock", thread_local=False):
        material = Material(
            _redacted(run, settings),
            [_redacted(row, settings) for row in failures],
            [replace(one, **_redacted(vars(one), settings)) for one in patterns],
            (),
            utc(when),
        )
        path = path_of(folder, run["run_id"], run["model"], when)
        earlier = earlier_reports(path, material.head)
        for warning in earlier.warnings:
            log.warning("%s", warning)
        written = _write(path, replace(material, earlier=earlier.reports))
    return written._replace(warnings=tuple(earlier.warnings))


def _redacted(row: Row, settings: Settings) -> Row:
    """Without keys, before anything is escaped: as Markdown they would be spelled otherwise."""
    return {
        name: settings.redact(value) if isinstance(value, str) else value
        for name, value in row.items()
    }


def _write(path: Path, material: Material) -> Written:
    try:
        text = read(path) if path.exists() else None
        parts = parts_of(text or "")
    except (UnreadableError, DamagedError) as why:
        raise ReportError(
            f"{path}: {why}. Nothing in it was changed: mend that, or move the file away to have "
            "the report written anew."
        ) from None
    kept = edited(parts)
    material = replace(material, kept=kept)
    page = _page(material) if text is None else _renewed(text, parts, material)
    if page != text:
        _put(path, page)
    return Written(path, kept, created=text is None)


def _page(material: Material) -> str:
    # What people write stands before the last section.
    *sections, last = _sections(material)
    run = material.run
    model = inline(run["model"]) + (" (simulated)" if run["simulated"] else "")
    title = f"# Why {model} failed in run {inline(run['run_id'][:ID_CHARACTERS])}\n"
    actions = f"## {ACTIONS}\n\n{HINT}\n"
    head = _head(material, sections)
    return "\n".join([f"{head.line()}\n", title, *map(marked, sections), actions, marked(last)])


def _renewed(text: str, parts: Sequence[Part], material: Material) -> str:
    """The report as it is now; the same if only the time has changed."""
    known, sections = head_in(text), _sections(material)
    told = known.told if known else ()
    if known is not None:
        same = replace(material, analysed=known.analysed)
        if updated(parts, _sections(same), told) == text:
            return text
    return with_head(updated(parts, sections, told), _head(material, sections))


def edited_in(path: Path) -> tuple[str, ...]:
    """What people have edited in a report; nothing where that can not be told."""
    try:
        return edited(parts_of(read(path)))
    except (UnreadableError, DamagedError):
        return ()


def _head(material: Material, sections: Sequence[Section]) -> Head:
    told = [section.name for section in sections if section.is_one_of_many]
    return material.head.model_copy(update={"told": tuple(told)})


def _sections(material: Material) -> list[Section]:
    found: list[Section] = []
    for name, write in SECTIONS.items():
        found.append(Section(name, write(material)))
        if name == "failures":
            found += failure_sections(material)
    return found


def _put(path: Path, page: str) -> None:
    try:
        put(path, page.encode())
    except OSError as error:
        raise ReportError(f"{path} can not be written ({error.strerror}). Mend that.") from error

"""Paths of reports: reports/{provider}/{model}/{start of the run id}_{date}.md, and notes."""

import os
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from glob import escape
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from eval_pipeline.errors import MendableError
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.model import ModelId

SUFFIX, NOTES, COPY = ".md", ".notes.md", ".bak"
ID_CHARACTERS, HASH_CHARACTERS = 8, 8
_START_BYTES = 4_000
_MODEL_ID: TypeAdapter[str] = TypeAdapter(ModelId)
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.+@-]|^\.+|\.+$")
_RUN = re.compile(r"^- Run: (\S+)\r?$", re.MULTILINE)


class ReportError(MendableError):
    """A report cannot be written; the message says what to do."""

    wrong_use = False


def utc(moment: datetime) -> datetime:
    """Return the moment in UTC, which is assumed where no zone is given."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def folder_of(reports: Path, model: str) -> Path:
    """Return the folder with the reports of a model, which is never outside of `reports`."""
    try:
        provider, _, name = _MODEL_ID.validate_python(model).partition("/")
    except ValidationError:
        raise ReportError(f"{model!r} is not a model id (vendor/name).") from None
    folder = reports / _safe(provider) / _safe(name)
    if not folder.resolve().is_relative_to(reports.resolve()):
        raise ReportError(f"{folder} leads out of {reports}: remove the link.")
    return folder


def files_in(folder: Path) -> list[Path]:
    """Return the Markdown files in a folder, without the notes beside reports."""
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if not path.name.endswith(NOTES))


def reports_in(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the reports in a folder, each with the id of its run."""
    for path in files_in(folder):
        if found := _RUN.search(read_text(path, _START_BYTES) or ""):
            yield path, re.sub(r"\\(.)", r"\1", found[1])


def known_report(reports: Path, run_id: str, model: str) -> Path | None:
    """Return the report on a run of a model, if there is one."""
    try:
        return _report_in(folder_of(reports, model), run_id)
    except ReportError:
        return None


def path_of(folder: Path, run_id: str, when: datetime) -> Path:
    """Return the path of the report on a run: of the existing one, which may have been renamed."""
    if own := _report_in(folder, run_id):
        return own
    start = run_id[:ID_CHARACTERS]
    is_taken = any(other.startswith(start) for _, other in reports_in(folder))
    return folder / f"{_safe(run_id if is_taken else start)}_{utc(when):%Y-%m-%d}{SUFFIX}"


def notes_of(report: Path) -> Path:
    """Return the path of the file in which people note what was done about a report."""
    return report.with_suffix(NOTES)


def edited_copies(report: Path) -> list[Path]:
    """Return the copies of a report that people had edited before it was replaced."""
    return sorted(report.parent.glob(f"{escape(report.name)}*{COPY}"))


def read_text(path: Path, most: int) -> str | None:
    """Return the first bytes of a regular file as text; None if it cannot be read."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read(most).decode("utf-8", "replace")
    except OSError:
        pass
    return None


def _report_in(folder: Path, run_id: str) -> Path | None:
    own = [path for path, about in reports_in(folder) if about == run_id]
    # Of copies that somebody made, the one with the shortest name is the original.
    return min(own, key=lambda path: (len(path.name), path.name), default=None)


def _safe(name: str) -> str:
    """Return a file name that leads nowhere and is unique to this name."""
    plain = _UNUSUAL.sub("_", name)
    return plain if plain == name else f"{plain}~{fingerprint(name)[:HASH_CHARACTERS]}"

"""Where a report stands: reports/{provider}/{model}/{first characters of the run id}_{date}.md."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from eval_pipeline.analysis.report.comments import Head, utc
from eval_pipeline.analysis.report.files import ReportError, head_of
from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.records import ModelId

SUFFIX = ".md"
ID_CHARACTERS, HASH_CHARACTERS = 8, 8
_MODEL_ID: TypeAdapter[str] = TypeAdapter(ModelId)
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.+@-]|^\.+|\.+$")


def folder_of(reports: Path, model: str) -> Path:
    """The folder with the reports of a model, which is never outside of `reports`."""
    try:
        provider, _, name = _MODEL_ID.validate_python(model).partition("/")
    except ValidationError:
        raise ReportError(f"{model!r} is no id of a model (vendor/name).") from None
    folder = reports / _safe(provider) / _safe(name)
    if not folder.resolve().is_relative_to(reports.resolve()):
        raise ReportError(f"{folder} leads out of {reports}: remove the link.")
    return folder


def reports_in(folder: Path) -> Iterator[tuple[Path, Head]]:
    """The reports in a folder with what they are about; what else is there is passed over."""
    try:
        paths = sorted(folder.glob(f"*{SUFFIX}"))
    except OSError as error:
        raise ReportError(f"{folder} can not be read ({error.strerror}). Mend that.") from None
    for path in paths:
        if (head := head_of(path)) is not None:
            yield path, head


def known_report(reports: Path, run_id: str, model: str) -> Path | None:
    """Where the report of that run is, if there is one; none is ever written to a wrong place."""
    try:
        return report_in(folder_of(reports, model), run_id, model)
    except ReportError:
        return None


def report_in(folder: Path, run_id: str, model: str) -> Path | None:
    """The report of that run, if there is one."""
    about = (run_id, model)
    own = [path for path, head in reports_in(folder) if (head.run_id, head.model) == about]
    # Of copies that somebody made, the one with the shortest name is the first.
    return min(own, key=lambda path: (len(path.name), path.name), default=None)


def path_of(folder: Path, run_id: str, model: str, when: datetime) -> Path:
    """The report of that run, which may have been renamed; where it is to be if there is none."""
    if own := report_in(folder, run_id, model):
        return own
    known = reports_in(folder)
    name = f"{_safe(_start(run_id, (head.run_id for _, head in known)))}_{utc(when):%Y-%m-%d}"
    path = folder / f"{name}{SUFFIX}"
    if path.exists() or path.is_symlink():
        raise ReportError(
            f"{path} is in the way: its first comment does not say (any more) that it is the "
            f"report on run {run_id[:ID_CHARACTERS]}. Move the file away."
        )
    return path


def _start(run_id: str, others: Iterable[str]) -> str:
    """As many characters of the id as tell it from the others: eight, if that is enough."""
    others = [other for other in others if other != run_id]
    length = ID_CHARACTERS
    while any(other[:length] == run_id[:length] for other in others):
        length += 1
    return run_id[:length]


def _safe(name: str) -> str:
    """A name that leads nowhere and can be typed; no other name becomes the same."""
    plain = _UNUSUAL.sub("_", name)
    return plain if plain == name else f"{plain}~{fingerprint(name)[:HASH_CHARACTERS]}"

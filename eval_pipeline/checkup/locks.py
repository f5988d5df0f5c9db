"""Checks of who is at work, and of what those left who were killed."""

import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shlex import quote
from urllib.parse import unquote

from filelock import FileLock, Timeout

from eval_pipeline.checkup.findings import Check, Finding, ok, warning
from eval_pipeline.errors import MendableError
from eval_pipeline.journal import JUDGED, PREDICTIONS
from eval_pipeline.processes import is_running
from eval_pipeline.settings import Settings

CLAIMED = (PREDICTIONS.name, JUDGED.name)
DAY_S = 24 * 3600
"""No grading takes so long: a folder of one that is older was left behind."""
MOST_TOLD = 5


class LockError(MendableError):
    """A lock that this user can not take, so that nobody can tell whether somebody has it."""


def lock_checks(settings: Settings) -> list[Check]:
    """Who works on what, and what nobody works on any more."""
    return [
        Check("claims", partial(claims, settings.journal)),
        Check("DuckDB file's lock", partial(publishing, settings.database)),
        Check("leftovers", partial(leftovers, settings)),
    ]


def claims(journal: Path) -> Iterator[Finding]:
    """Which models are being asked or judged, and by whom."""
    paths = [path for stream in CLAIMED for path in (journal / "locks").glob(f"{stream}-*.lock")]
    held = sorted(path for path in paths if is_held(path))
    for path in held:
        stage, _, model = path.stem.partition("-")
        yield ok("claims", f"{stage} of {unquote(model)}: {_owner(path)} is at work.")
    if not held:
        yield ok("claims", "Nobody is asking or judging.")


def publishing(database: Path) -> Iterator[Finding]:
    """Whether somebody is building the file."""
    lock = database.with_suffix(".lock")
    if lock.exists() and is_held(lock):
        yield ok("DuckDB file's lock", "Somebody is building the file now.")


def leftovers(settings: Settings) -> Iterator[Finding]:
    """Files that a killed process or somebody's shell left; none of them is in the way."""
    left = [*_half_built(settings.database), *_old_folders(Path(tempfile.gettempdir()))]
    logs = sorted(settings.database.parent.glob(f"{settings.database.name}.wal.*"))
    if left:
        yield warning("leftovers", f"Left by killed processes: {_listed(left)}.", _removal(left))
    if logs:
        words = f"Written to the DuckDB file by somebody's shell and set aside: {_listed(logs)}."
        advice = f"Own tables belong in another file. Then: {_removal(logs)}"
        yield warning("leftovers", words, advice)
    if not left and not logs:
        yield ok("leftovers", "None.")


def is_held(path: Path) -> bool:
    """Whether a process has this lock; it is only tried, and whoever wants it comes again."""
    try:
        with FileLock(path, timeout=0, thread_local=False):
            return False
    except Timeout:
        return True
    except OSError as error:
        raise LockError(f"{path} can not be written: {error.strerror or error}.") from None


def _owner(path: Path) -> str:
    try:
        return path.with_suffix(".owner").read_text("utf-8").strip()
    except OSError:
        return "another process"


def _half_built(database: Path) -> list[Path]:
    """Named after the process that made them."""
    found = sorted(database.parent.glob(f".{database.stem}-*-*"))
    return [path for path in found if not is_running(_process(path))]


def _process(path: Path) -> int:
    number = path.name.split("-")[-2]
    return int(number) if number.isdigit() else os.getpid()


def _old_folders(folder: Path) -> list[Path]:
    """Where code was graded; others may have such folders too."""
    return [path for path in sorted(folder.glob("evals-*")) if _is_ours_and_old(path)]


def _is_ours_and_old(path: Path) -> bool:
    try:
        about = path.lstat()
    except OSError:  # it has just gone
        return False
    return about.st_uid == os.geteuid() and time.time() - about.st_mtime > DAY_S


def _listed(paths: list[Path]) -> str:
    left = len(paths) - MOST_TOLD
    names = ", ".join(path.name for path in paths[:MOST_TOLD])
    return f"{names} and {left} more" if left > 0 else names


def _removal(paths: list[Path]) -> str:
    return f"rm -r {' '.join(quote(str(path)) for path in paths[:MOST_TOLD])}"

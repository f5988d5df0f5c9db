"""Checks of the disk, the journal and the DuckDB file, without changing anything of them."""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import quote
from time import perf_counter
from urllib.parse import unquote

import duckdb
import orjson
from filelock import FileLock, Timeout

from eval_pipeline.errors import MendableError
from eval_pipeline.evaluation.doctor.report import Check, Finding, ok, warning, wrong
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import FORMAT, JUDGED, PREDICTIONS, STREAMS, Journal
from eval_pipeline.journal.deployment import may_write
from eval_pipeline.journal.files import JSONL
from eval_pipeline.processes import is_running
from eval_pipeline.results.queries import recipe
from eval_pipeline.results.schema import VERSION, schema_version
from eval_pipeline.results.warehouse import QUERIES
from eval_pipeline.settings.settings import Settings

MEGABYTE = 2**20
SCARCE, TOO_LITTLE = 1024 * MEGABYTE, 64 * MEGABYTE
"""Free bytes below which it is said, and below which a run is bound to fail."""
SLOW_S = 1.0
"""An fsync that takes so long holds up every answer."""
REBUILD = "evals rebuild"
TEMPORARY = "temporary files"
_HOLDER = re.compile(r"Conflicting lock is held in .*?\(PID (\d+)\)")


def disk_checks(settings: Settings) -> list[Check]:
    """Whether there is room, and results can be written."""
    return [
        Check("room for data", partial(room, "room for data", settings.data, settings.database)),
        Check(TEMPORARY, partial(room, TEMPORARY, Path(tempfile.gettempdir()))),
        Check("writing", partial(_writing, settings)),
    ]


def result_checks(settings: Settings) -> list[Check]:
    """Whether results can be read, and are shown as they are."""
    return [
        Check("journal", partial(journal, Journal(settings.journal))),
        Check("DuckDB file", partial(database, settings)),
    ]


def room(name: str, folder: Path, *rebuilt: Path) -> Iterator[Finding]:
    """Free space; what is rebuilt needs as much again beside it."""
    free = shutil.disk_usage(_existing(folder)).free
    needed = sum(path.stat().st_size for path in rebuilt if path.exists())
    words = f"{_size(free)} free in {folder}."
    if free < max(TOO_LITTLE, needed):
        yield wrong(name, words, f"Make room on the disk of {folder}.")
    elif free < max(SCARCE, 2 * needed):
        yield warning(name, words, f"Make room on the disk of {folder} before a long run.")
    else:
        yield ok(name, words)


def _writing(settings: Settings) -> Iterator[Finding]:
    if may_write(settings):
        yield from writing(settings.journal, settings.database.parent)
    else:
        words = "This is production, and from here it is only read."
        yield warning("writing", words, "Who means to write there: docs/deployments.md")


def writing(*folders: Path) -> Iterator[Finding]:
    """Writes a little file as answers are written: it counts when it is on disk."""
    seconds, advice = 0.0, "Make room, or let this user write there."
    for place in dict.fromkeys(map(_existing, folders)):
        try:
            seconds = max(seconds, _seconds_to_write(place))
        except OSError as error:
            yield wrong("writing", f"{place} can not be written ({error.strerror}).", advice)
            return
    words = f"A line is on disk after {seconds * 1000:.0f} ms."
    if seconds < SLOW_S:
        yield ok("writing", words)
    else:
        yield warning("writing", words, "Put data_dir on a faster disk: answers wait for it.")


def _seconds_to_write(place: Path) -> float:
    started = perf_counter()
    with tempfile.TemporaryFile(dir=place) as file:
        file.write(b"{}\n")
        file.flush()
        os.fsync(file.fileno())
    return perf_counter() - started


def journal(kept: Journal) -> Iterator[Finding]:
    """Its format and size."""
    if not kept.root.exists():
        yield ok("journal", "There is none yet: nothing was evaluated.")
        return
    files = [path for stream in STREAMS for path in kept.files(stream)]
    marker = kept.root / "format"
    written = marker.read_text().strip() if marker.exists() else "none"
    size = _size(sum(path.stat().st_size for path in files if path.exists()))
    words = f"{len(files)} files, {size}, format {written} (this code writes {FORMAT})."
    spoilt = [where for path in files for where in _spoilt(path)]
    if spoilt:
        words = f"{words} Lines that can not be read, and are left out: {len(spoilt)}."
        advice = "Bring the file back from a backup, or ask for what is missing: evals fix"
        yield warning("journal", f"{words} The first is {spoilt[0]}.", advice)
    else:
        yield ok("journal", words)


def _spoilt(path: Path) -> Iterator[str]:
    """Whole lines that are no JSON: not what a crash leaves, which is half a line at the end."""
    if path.suffix == JSONL:
        with suppress(FileNotFoundError), path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    if line.endswith(b"\n"):
                        orjson.loads(line)
                except orjson.JSONDecodeError:
                    yield f"line {number} of {path}"


def database(settings: Settings) -> Iterator[Finding]:
    """Whether it opens, and shows what is in the journal."""
    path = settings.database
    if not path.exists():
        yield ok("DuckDB file", "There is none yet: whoever reads results first has it built.")
        return
    try:
        with duckdb.connect(str(path), read_only=True) as db:
            yield from _shown(db, settings)
    except duckdb.Error as error:
        yield _unopened(error)


def _unopened(error: duckdb.Error) -> Finding:
    if held := _HOLDER.search(str(error)):
        words = f"Process {held[1]} has it open for writing; evaluations go on all the same."
        return warning("DuckDB file", words, "End that process, or let it open the file -readonly.")
    return wrong("DuckDB file", f"It can not be opened ({error}).", REBUILD)


def _shown(db: duckdb.DuckDBPyConnection, settings: Settings) -> Iterator[Finding]:
    """Newer than this code, older than the journal, or as it is to be."""
    version = schema_version(db)
    kept = Journal(settings.journal)
    if not kept.snapshot():
        yield _alone(version, settings)
        return
    known = dict(db.sql("select part, snapshot from published").fetchall())
    behind = [
        one.name for one in STREAMS if known.get(one.name) != fingerprint(*kept.snapshot(one))
    ]
    size = _size(settings.database.stat().st_size)
    if version > VERSION:
        words = f"A newer version of eval_pipeline made it (schema {version}, here {VERSION})."
        yield wrong(
            "DuckDB file", words, f"Update; or move {settings.database} away, and {REBUILD}"
        )
    elif behind:
        words = f"{size}. The journal has more: {', '.join(behind)}."
        advice = f"If no run is under way, which would see to it: {REBUILD}"
        yield warning("DuckDB file", words, advice)
    elif known.get(QUERIES) != fingerprint(*recipe()):
        words = f"{size}. It was made by another version of this code."
        yield warning("DuckDB file", words, REBUILD)
    else:
        yield ok("DuckDB file", f"{size}, up to date with the journal.")


def _alone(version: int, settings: Settings) -> Finding:
    """Without a journal only the schema can be wrong."""
    words = f"{_size(settings.database.stat().st_size)}. There is no journal that it would show."
    if version == VERSION:
        return ok("DuckDB file", words)
    words = f"{words} Its schema is {version}, here it is {VERSION}."
    return warning("DuckDB file", words, "Restore the journal, or use the version that wrote it.")


def _existing(folder: Path) -> Path:
    """The folder, or the one in which it would be made."""
    return next(path for path in (folder, *folder.absolute().parents) if path.is_dir())


def _size(count: float) -> str:
    if count < MEGABYTE:
        return f"{count / 1024:.0f} KB"
    return f"{count / MEGABYTE:.0f} MB" if count < 1024 * MEGABYTE else f"{count / 2**30:.0f} GB"


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

"""Checks of the disk, the journal and the DuckDB file, without changing anything of them."""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote
from time import perf_counter
from urllib.parse import unquote

import duckdb
import orjson
from filelock import FileLock, Timeout

from eval_pipeline.errors import MendableError
from eval_pipeline.evaluation.doctor.report import Finding, ok, warning, wrong
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import FORMAT, JUDGED, PREDICTIONS, STREAMS, Journal
from eval_pipeline.journal.deployment import may_write
from eval_pipeline.journal.files import JSONL
from eval_pipeline.processes import is_running
from eval_pipeline.results.queries import recipe
from eval_pipeline.results.schema import VERSION, schema_version
from eval_pipeline.results.warehouse import QUERIES
from eval_pipeline.settings.settings import Settings
from eval_pipeline.text import listed

MEGABYTE = 2**20
SCARCE, TOO_LITTLE = 1024 * MEGABYTE, 64 * MEGABYTE
"""Free bytes below which it is said, and below which a run is bound to fail."""
SLOW_S = 1.0
"""An fsync that takes so long holds up every answer."""
REBUILD = "evals rebuild"
_HOLDER = re.compile(r"Conflicting lock is held in .*?\(PID (\d+)\)")


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


def writing_here(settings: Settings) -> Iterator[Finding]:
    """Report whether answers can be written, where that is allowed."""
    if may_write(settings):
        yield from writing(settings.journal, settings.database.parent)
    else:
        words = "This is production, and from here it is only read."
        yield warning("writing", words, "Who means to write there: docs/deployments.md")


def writing(*folders: Path) -> Iterator[Finding]:
    """Write a little file as answers are written: it counts when it is on disk."""
    slowest, advice = 0.0, "Make room, or let this user write there."
    for place in dict.fromkeys(map(_existing, folders)):
        started = perf_counter()
        try:
            with tempfile.TemporaryFile(dir=place) as file:
                file.write(b"{}\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            yield wrong("writing", f"{place} can not be written ({error.strerror}).", advice)
            return
        slowest = max(slowest, perf_counter() - started)
    words = f"A line is on disk after {slowest * 1000:.0f} ms."
    advice = "Put data_dir on a faster disk: answers wait for it."
    yield ok("writing", words) if slowest < SLOW_S else warning("writing", words, advice)


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
        if held := _HOLDER.search(str(error)):
            words = f"Process {held[1]} has it open for writing; evaluations go on all the same."
            advice = "End that process, or let it open the file -readonly."
            yield warning("DuckDB file", words, advice)
        else:
            yield wrong("DuckDB file", f"It cannot be opened ({error}).", REBUILD)


def _shown(db: duckdb.DuckDBPyConnection, settings: Settings) -> Iterator[Finding]:
    """Compare the file with this code and with the journal."""
    version, kept = schema_version(db), Journal(settings.journal)
    size = _size(settings.database.stat().st_size)
    if not kept.snapshot():  # then only the schema can be wrong
        words = f"{size}. There is no journal that it would show."
        wording = f"{words} Its schema is {version}, here it is {VERSION}."
        advice = "Restore the journal, or use the version that wrote it."
        is_ok = version == VERSION
        yield ok("DuckDB file", words) if is_ok else warning("DuckDB file", wording, advice)
        return
    known = dict(db.sql("select part, snapshot from published").fetchall())
    behind = [
        one.name for one in STREAMS if known.get(one.name) != fingerprint(*kept.snapshot(one))
    ]
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


def _existing(folder: Path) -> Path:
    """Return the folder, or the one in which it would be made."""
    return next(path for path in (folder, *folder.absolute().parents) if path.is_dir())


def _size(count: float) -> str:
    if count < MEGABYTE:
        return f"{count / 1024:.0f} KB"
    return f"{count / MEGABYTE:.0f} MB" if count < 1024 * MEGABYTE else f"{count / 2**30:.0f} GB"


CLAIMED = (PREDICTIONS.name, JUDGED.name)
DAY_S = 24 * 3600
"""No grading takes so long: a folder of one that is older was left behind."""
MOST_TOLD = 5


def claims(journal: Path) -> Iterator[Finding]:
    """Which models are being asked or judged, and by whom."""
    paths = [path for stream in CLAIMED for path in (journal / "locks").glob(f"{stream}-*.lock")]
    held = sorted(path for path in paths if is_held(path))
    for path in held:
        stage, _, model = path.stem.partition("-")
        try:
            owner = path.with_suffix(".owner").read_text("utf-8").strip()
        except OSError:
            owner = "another process"
        yield ok("claims", f"{stage} of {unquote(model)}: {owner} is at work.")
    if not held:
        yield ok("claims", "Nobody is asking or judging.")


def publishing(database: Path) -> Iterator[Finding]:
    """Report whether a process is building the file."""
    lock = database.with_suffix(".lock")
    if lock.exists() and is_held(lock):
        yield ok("DuckDB file's lock", "Somebody is building the file now.")


def leftovers(settings: Settings) -> Iterator[Finding]:
    """Files that a killed process or somebody's shell left; none of them is in the way."""
    database = settings.database
    half_built = sorted(database.parent.glob(f".{database.stem}-*-*"))
    folders = sorted(Path(tempfile.gettempdir()).glob("evals-*"))
    left = [path for path in half_built if not is_running(_process(path))]
    left += [path for path in folders if _is_ours_and_old(path)]
    logs = sorted(database.parent.glob(f"{database.name}.wal.*"))
    if left:
        yield warning("leftovers", f"Left by killed processes: {_listed(left)}.", _removal(left))
    if logs:
        words = f"Written to the DuckDB file by somebody's shell and set aside: {_listed(logs)}."
        advice = f"Own tables belong in another file. Then: {_removal(logs)}"
        yield warning("leftovers", words, advice)
    if not left and not logs:
        yield ok("leftovers", "None.")


def is_held(path: Path) -> bool:
    """Return whether a process holds this lock; to find out, it is acquired for a moment."""
    try:
        with FileLock(path, timeout=0, thread_local=False):
            return False
    except Timeout:
        return True
    except OSError as error:
        raise MendableError(f"{path} cannot be written: {error.strerror or error}.") from None


def _process(path: Path) -> int:
    """Return the process that built this file, which is named after it."""
    number = path.name.split("-")[-2]
    return int(number) if number.isdigit() else os.getpid()


def _is_ours_and_old(path: Path) -> bool:
    """Return whether it is left of a grading of ours; others may have such folders too."""
    try:
        about = path.lstat()
    except OSError:  # it has just gone
        return False
    return about.st_uid == os.geteuid() and time.time() - about.st_mtime > DAY_S


def _listed(paths: list[Path]) -> str:
    return listed([path.name for path in paths], MOST_TOLD)


def _removal(paths: list[Path]) -> str:
    return f"rm -r {' '.join(quote(str(path)) for path in paths[:MOST_TOLD])}"

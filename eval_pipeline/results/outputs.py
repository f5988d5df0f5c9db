"""The files that models wrote, kept for people to look at: never outside their own folder.

A run has a folder named after the first characters of its id, in it are one for each model and in
these one for each task, with the files of the reply and `steps.log`. What can not be read as files,
or must not be written under the names it asks for, is kept as it came, in `reply.txt`.
"""

import errno
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import duckdb

from eval_pipeline.errors import MendableError
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import Journal
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.results.queries import query
from eval_pipeline.results.runs import FoundRun
from eval_pipeline.suites.benchmark import past_items
from eval_pipeline.suites.coding.files import UnsafePath, write_files
from eval_pipeline.suites.coding.reply import UnreadableReply, read_files

STEPS_LOG, REPLY = "steps.log", "reply.txt"
ID_CHARACTERS, LONGEST_NAME, HASH_CHARACTERS = 8, 100, 8
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.+@-]")
_LIKE_A_SAMPLE = re.compile(r"-sample-\d+$")


class OutputError(MendableError):
    """Raised where the files cannot be written; the message says what to do."""


class _Reply(NamedTuple):
    """A row of `summaries/code_replies`."""

    benchmark_version: str
    suite: str
    item_id: str
    sample: int
    answer: str
    outcome: str
    score: float | None
    reason: str
    steps: list[dict[str, str]]


def write_outputs(
    db: duckdb.DuckDBPyConnection, journal: Journal, runs: Sequence[FoundRun], folder: Path
) -> int:
    """Writes every reply to a coding task of these runs; returns how many there are."""
    written = 0
    for run in runs:
        own = [_safe(run.run_id[:ID_CHARACTERS]), _folder_of(run.model)]
        given = {"run_id": run.run_id, "model": run.model}
        replies = [_Reply(*row) for row in query(db, "summaries/code_replies", given).fetchall()]
        if replies:
            items = past_items(journal, replies[0].benchmark_version)
            several = len({reply.suite for reply in replies}) > 1
            for reply in replies:
                task = items[ItemKey(reply.suite, reply.item_id)]
                place = [*([_safe(reply.suite)] if several else []), *_place(reply)]
                _put(folder, [*own, *place], reply, task)
        written += len(replies)
    return written


def _folder_of(model: str) -> str:
    """Return a model's own folder: its name, with a hash unless each _ replaces a /."""
    plain = _typeable(model)
    return plain if plain.replace("_", "/") == model else _with_hash(plain, model)


def _place(reply: _Reply) -> list[str]:
    """The folders of the task, the same as under `evals/`; later samples stand beside the first."""
    *above, name = map(_safe, reply.item_id.split("/"))
    return [*above, f"{name}-sample-{reply.sample}" if reply.sample else name]


def _safe(name: str) -> str:
    """A name that leads nowhere and can be typed; no other name becomes the same."""
    plain = _typeable(name)
    unchanged = plain == name and not _LIKE_A_SAMPLE.search(name)
    return plain if unchanged else _with_hash(plain, name)


def _typeable(name: str) -> str:
    return _UNUSUAL.sub("_", name)[:LONGEST_NAME].lstrip(".") or "_"


def _with_hash(plain: str, name: str) -> str:
    """Set apart by a character that is in no plain name."""
    return f"{plain}~{fingerprint(name)[:HASH_CHARACTERS]}"


def _write(folder: Path, reply: _Reply, task: Item) -> None:
    """Into a new folder, in which nothing is a link: the files or the reply, and the log."""
    expected = task.expected_files if isinstance(task, CodingTask) else ()
    try:
        write_files(folder, files := read_files(reply.answer, expected))
    except (UnreadableReply, UnsafePath):
        files = {REPLY: reply.answer}
        _write_text(folder / REPLY, reply.answer)
    log = STEPS_LOG
    while log in {path.partition("/")[0].lower() for path in files}:
        log = f"_{log}"  # the model has one of that name
    _write_text(folder / log, _log(reply))


def _write_text(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8", errors="replace", newline="") as file:
        file.write(text)


def _log(reply: _Reply) -> str:
    score = "no score" if reply.score is None else f"score {reply.score:g}"
    lines = [f"{reply.suite}/{reply.item_id}, sample {reply.sample}: {reply.outcome}, {score}"]
    lines += [reply.reason] if reply.reason else []
    for step in reply.steps:
        lines += ["", f"## {step['step']}: {step['status']}"]
        lines += filter(None, (step["reason"], step["output"]))
    return "\n".join(lines) + "\n"


def _put(folder: Path, place: list[str], reply: _Reply, task: Item) -> None:
    """Replaces the folder at that place by one with this reply; links on the way are refused."""
    folder.mkdir(parents=True, exist_ok=True)
    new = Path(mkdtemp(prefix=".evals-", dir=folder))
    try:
        _write(new, reply, task)
        new.chmod(0o755)
        with _inside(folder, place[:-1]) as parent:
            _clear(place[-1], parent)
            os.rename(new, place[-1], dst_dir_fd=parent)
    finally:
        shutil.rmtree(new, ignore_errors=True)


@contextmanager
def _inside(folder: Path, names: Sequence[str]) -> Iterator[int]:
    current = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names:
            inner = _opened(name, current)
            os.close(current)
            current = inner
        yield current
    finally:
        os.close(current)


def _opened(name: str, parent: int) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=parent)
    try:
        return os.open(name, _OPEN, dir_fd=parent)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise OutputError(f"{name} in the way of outputs is a link or a file: remove it.") from None


def _clear(name: str, parent: int) -> None:
    """Remove what an earlier launch of the same run left; of a link only the link."""
    try:
        shutil.rmtree(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except OSError:
        os.unlink(name, dir_fd=parent)

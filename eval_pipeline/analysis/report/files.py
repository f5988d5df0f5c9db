"""Reports on disk: read without following links, put in place as a whole."""

import os
import stat
from pathlib import Path
from secrets import token_hex

from eval_pipeline.analysis.report.comments import BEGIN, Head
from eval_pipeline.analysis.report.lines import BOM, lines_of, outside_of_code
from eval_pipeline.errors import MendableError
from eval_pipeline.journal.files import sync

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WHERE_HEADS_ARE = 64_000
"""How much of a file is looked through for its first comment, in bytes."""


class ReportError(MendableError):
    """A report can not be written; the message says what to do."""

    wrong_use = False


class UnreadableError(Exception):
    """Why a file is not read as a report, in a few words."""


def read(path: Path, most: int | None = None) -> str:
    """The text of a file, with the ends of its lines as they are; one that is larger is refused."""
    try:
        with os.fdopen(os.open(path, _READ), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnreadableError("it is no file")
            found = file.read() if most is None else file.read(most + 1)
    except OSError as error:
        why = "it is a link" if path.is_symlink() else f"it can not be read ({error.strerror})"
        raise UnreadableError(why) from None
    if most is not None and len(found) > most:
        raise UnreadableError(f"it is larger than {most / 1e6:g} MB")
    return _text(found)


def head_of(path: Path) -> Head | None:
    """Which run the report is about; None if it is no report, or can not be read."""
    try:
        with os.fdopen(os.open(path, _READ), "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            found = file.read(_WHERE_HEADS_ARE) if is_file else b""
    except OSError:
        return None
    return head_in(found.decode("utf-8", "replace"))


def head_in(text: str) -> Head | None:
    """The first comment of ours, if it says which run the text is about."""
    for _, line in outside_of_code(lines_of(text.removeprefix(BOM))):
        if line.startswith(BEGIN):
            return Head.read(line)
    return None


def put(path: Path, content: bytes) -> None:
    """Puts a file in place as a whole, and returns when it is on disk; it keeps its mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        unfinished.write_bytes(content)
        if path.exists():
            unfinished.chmod(stat.S_IMODE(path.stat().st_mode))
        sync(unfinished)
        unfinished.replace(path)
        sync(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def _text(found: bytes) -> str:
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableError("it is not in UTF-8") from None

"""What is written stays written: fsync, and errors that say what to do."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from shutil import rmtree

from eval_pipeline.errors import MendableError


class JournalError(MendableError):
    """Finished work can not be kept or read; the message says what to do."""

    wrong_use = False


class BusyError(JournalError):
    """Somebody else is at work on it, and for longer than anybody wanted to wait."""


class ReadOnlyError(JournalError):
    """Nobody may write here."""

    wrong_use = True

    def __init__(self) -> None:
        super().__init__(
            "Nothing was changed: these are the results of a deployment that is marked as "
            "production. Who means it says `evals --production` and has a token for it in "
            "EVALS_TOKEN: docs/deployments.md"
        )


class GoneError(JournalError):
    """A file was compacted while it was read; to list the files again is enough."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} was compacted while it was read. Nothing is lost: try again.")


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of it, in as many steps as the disk takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync(path: Path) -> None:
    """Returns when a file's content, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def swap_in(path: Path, content: bytes) -> None:
    """Puts a file in place as a whole: readers see the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Removes a file, or a folder with all that is in it."""
    if path.is_dir():
        rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Says what to do when the disk is full or the folder can not be written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "The disk is full. Make room and materialize again; what is journalled is kept"
        else:
            advice = f"It can not be written ({error.strerror}). Mend that and materialize again"
        raise JournalError(f"{path}: {advice}.") from error

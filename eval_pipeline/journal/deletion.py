"""Deleting runs from the journal: each step leaves a journal that can be read."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from eval_pipeline.journal.files import remove, sync

GONE = ".gone-"


def move_to_trash(target: Path, paths: Sequence[Path]) -> None:
    """Move these into the folder, one after the other, as far as they exist."""
    for path in paths:
        with suppress(FileNotFoundError):
            # A random suffix: an earlier file of the same name stays as it is.
            path.replace(target / f"{path.parent.parent.name}-{token_hex(6)}")
            sync(target)
            sync(path.parent)


def trash(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the names of what is in the trash; a crash may have left empty folders."""
    for target in sorted(folder.glob("[!.]*/*")):
        if any(target.iterdir()):
            yield target.parent.name, target.name


def empty_trash(folder: Path) -> None:
    """Delete all of it; a half deleted folder no longer has its name."""
    for target in folder.glob("[!.]*/*"):
        target.replace(folder / f"{GONE}{token_hex(6)}")
    for gone in folder.glob(f"{GONE}*"):
        remove(gone)

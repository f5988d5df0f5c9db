"""Runs on their way out of the journal: each step leaves a journal that can be read."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from eval_pipeline.journal.disk import remove, sync

GONE = ".gone-"


def set_aside(target: Path, paths: Sequence[Path]) -> None:
    """Moves these into the folder, one after the other, as far as they are there."""
    for path in paths:
        with suppress(FileNotFoundError):
            # Whatever was set aside before under the same name stays as it is.
            path.replace(target / f"{path.parent.parent.name}-{token_hex(6)}")
            sync(target)
            sync(path.parent)


def aside(folder: Path) -> Iterator[tuple[str, str]]:
    """The names of what has been set aside; an empty folder is all that a crash left of a plan."""
    for target in sorted(folder.glob("[!.]*/*")):
        if any(target.iterdir()):
            yield target.parent.name, target.name


def forget(folder: Path) -> None:
    """Deletes all of it; what is half deleted no longer has its name."""
    for target in folder.glob("[!.]*/*"):
        target.replace(folder / f"{GONE}{token_hex(6)}")
    for gone in folder.glob(f"{GONE}*"):
        remove(gone)

"""Counts in a JSON file that several programs share."""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def add(path: Path, amounts: Mapping[str, int]) -> dict[str, int]:
    """Adds `amounts` to the counts of the file and returns all of them."""
    with _locked(path):
        counts = read(path)
        for name, amount in amounts.items():
            counts[name] = counts.get(name, 0) + amount
            if counts[name] < 0:
                raise ValueError(f"the count of {name!r} would be negative")
        _replace(path, json.dumps(counts))
        return counts


def read(path: Path) -> dict[str, int]:
    """The counts of the file as they are now."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    counts: dict[str, int] = json.loads(text)
    return counts


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock of `path`.

    The lock belongs to this opening of the file, so threads exclude each other too. It is on a
    file of its own, because one that is replaced would be locked under everybody's feet.
    """
    with open(f"{path}.lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _replace(path: Path, text: str) -> None:
    """Writes the new content."""
    path.write_text(text, encoding="utf-8")

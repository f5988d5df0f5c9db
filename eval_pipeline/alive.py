"""Which runs are alive: a run's process holds a lock, which the kernel frees however it ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from platform import node

from filelock import FileLock, Timeout

from eval_pipeline.journal.disk import explained
from eval_pipeline.records import now

# Somebody who looks whether a run is alive holds its lock for a moment.
LONGEST_LOOK_S = 5.0
NOBODY = "a process that has not signed"


class Life(Enum):
    """What can be told of a run that Dagster believes to be in progress."""

    ALIVE = "its process is at work"
    DEAD = "its process took the lock and is gone"
    UNKNOWN = "it has no lock: not yet, not any more, or it never had one"


@contextmanager
def alive(journal: Path, run_id: str) -> Iterator[None]:
    """Holds the run's lock; its file is there only while the run is at work, or if it died."""
    path = _lock_file(journal, run_id)
    with explained(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, thread_local=False)
        with suppress(Timeout):  # another process of the same run has it: the run is alive
            lock.acquire(timeout=LONGEST_LOOK_S)
    try:
        if lock.is_locked:
            _sign(path)
        yield
    finally:
        if lock.is_locked:
            path.unlink(missing_ok=True)
        lock.release()


def _sign(path: Path) -> None:
    """Only who holds the lock writes to its file: see `life_of`."""
    with suppress(OSError):
        path.write_text(f"process {os.getpid()} on {node()} since {now():%H:%M:%S} UTC")


def life_of(journal: Path, run_id: str) -> Life:
    """Whether the process of that run is alive."""
    path = _lock_file(journal, run_id)
    if not path.exists():
        return Life.UNKNOWN
    try:
        with FileLock(path, timeout=0, thread_local=False):
            if path.read_text():
                return Life.DEAD
            # The run is just about to take the lock, or has ended since we found the file.
            path.unlink(missing_ok=True)
            return Life.UNKNOWN
    except Timeout:
        return Life.ALIVE
    except FileNotFoundError:  # somebody else has just buried it
        return Life.UNKNOWN


def lives(journal: Path) -> dict[str, Life]:
    """What can be told of each run that has a lock, by its id."""
    found = sorted((journal / "locks").glob("run-*.lock"))
    ids = [path.name.removeprefix("run-").removesuffix(".lock") for path in found]
    return {run_id: life_of(journal, run_id) for run_id in ids}


def dead_ones(journal: Path) -> list[str]:
    """The ids of all runs that died and have not been buried."""
    return [run_id for run_id, life in lives(journal).items() if life is Life.DEAD]


def launches_at_work(journal: Path) -> list[str]:
    """The ids of all runs whose process is alive."""
    return [run_id for run_id, life in lives(journal).items() if life is Life.ALIVE]


def owner(journal: Path, run_id: str) -> str:
    """Which process of which machine has the run's lock, as it signed."""
    try:
        return _lock_file(journal, run_id).read_text("utf-8") or NOBODY
    except FileNotFoundError:  # it has just ended
        return NOBODY


def bury(journal: Path, run_id: str) -> None:
    """Removes what a dead run has left of its lock."""
    _lock_file(journal, run_id).unlink(missing_ok=True)


def _lock_file(journal: Path, run_id: str) -> Path:
    return journal / "locks" / f"run-{run_id}.lock"

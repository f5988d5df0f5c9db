"""Locks of the journal: one process per model and stage, and which runs are alive.

The kernel frees a lock however its process ends, so a lock file that is left behind, signed and
free, proves that its run died.
"""

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from platform import node

from filelock import FileLock, Timeout

from eval_pipeline.journal.files import BusyError, translate_os_errors
from eval_pipeline.records.base import now

# A process at work holds a lock for longer.
SOON_S = 0.5
# A process that checks whether a run is alive holds its lock for a moment.
LONGEST_CHECK_S = 5.0
UNSIGNED = "a process that has not signed"

log = logging.getLogger(__name__)


async def acquire(lock: FileLock, what: str) -> None:
    """Wait until no other process holds the lock, and log which one does."""
    announced = False
    while True:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if not announced:
                log.info("Waiting for the %s: %s is at work on it.", what, _owner(lock))
                announced = True
            await asyncio.sleep(0.2)
        else:
            return


def acquire_soon(lock: FileLock, what: str, within_s: float = SOON_S) -> None:
    """Acquire the lock within this time, or raise a BusyError that names its owner."""
    try:
        lock.acquire(timeout=within_s)
    except Timeout:
        raise BusyError(
            f"Nothing was changed: {_owner(lock)} is at work on the {what}. "
            "Try again when it is done, or end it."
        ) from None


@contextmanager
def signed(lock: FileLock) -> Iterator[None]:
    """Release the lock in the end; until then a file beside it names its owner, for messages."""
    try:
        _sign(Path(lock.lock_file).with_suffix(".owner"))
        yield
    finally:
        lock.release()


def _owner(lock: FileLock) -> str:
    try:
        return Path(lock.lock_file).with_suffix(".owner").read_text()
    except OSError:
        return "another process"


class LockState(Enum):
    """The state of a run that Dagster believes to be in progress, by its lock."""

    ALIVE = "its process is at work"
    DEAD = "its process took the lock and is gone"
    UNKNOWN = "it has no lock: not yet, not any more, or it never had one"


@contextmanager
def hold_run_lock(journal: Path, run_id: str) -> Iterator[None]:
    """Hold the run's lock; its file exists only while the run is at work, or if it died."""
    path = _lock_file(journal, run_id)
    with translate_os_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, thread_local=False)
        with suppress(Timeout):  # another process of the same run has it: the run is alive
            lock.acquire(timeout=LONGEST_CHECK_S)
    try:
        if lock.is_locked:
            _sign(path)  # only the holder writes to its file: see `lock_state`
        yield
    finally:
        if lock.is_locked:
            path.unlink(missing_ok=True)
        lock.release()


def lock_state(journal: Path, run_id: str) -> LockState:
    """Return whether the process of that run is alive."""
    path = _lock_file(journal, run_id)
    if not path.exists():
        return LockState.UNKNOWN
    try:
        with FileLock(path, timeout=0, thread_local=False):
            if path.read_text():
                return LockState.DEAD
            # The run is just about to take the lock, or has ended since we found the file.
            path.unlink(missing_ok=True)
            return LockState.UNKNOWN
    except Timeout:
        return LockState.ALIVE
    except FileNotFoundError:  # another process has just removed it
        return LockState.UNKNOWN


def lock_states(journal: Path) -> dict[str, LockState]:
    """Return the state of each run that has a lock, by its id."""
    found = sorted((journal / "locks").glob("run-*.lock"))
    ids = [path.name.removeprefix("run-").removesuffix(".lock") for path in found]
    return {run_id: lock_state(journal, run_id) for run_id in ids}


def dead_run_ids(journal: Path) -> list[str]:
    """Return the ids of runs that died and whose lock is still there."""
    return [run_id for run_id, state in lock_states(journal).items() if state is LockState.DEAD]


def running_run_ids(journal: Path) -> list[str]:
    """Return the ids of runs whose process is alive."""
    return [run_id for run_id, state in lock_states(journal).items() if state is LockState.ALIVE]


def lock_owner(journal: Path, run_id: str) -> str:
    """Return which process of which machine has the run's lock, as it signed."""
    try:
        return _lock_file(journal, run_id).read_text("utf-8") or UNSIGNED
    except FileNotFoundError:  # it has just ended
        return UNSIGNED


def remove_lock(journal: Path, run_id: str) -> None:
    """Remove the lock that a dead run has left."""
    _lock_file(journal, run_id).unlink(missing_ok=True)


def _sign(path: Path) -> None:
    with suppress(OSError):
        path.write_text(f"process {os.getpid()} on {node()} since {now():%H:%M:%S} UTC")


def _lock_file(journal: Path, run_id: str) -> Path:
    return journal / "locks" / f"run-{run_id}.lock"

"""Locks that tell who holds them: one process at a time works on a model's stage."""

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path
from platform import node

from filelock import FileLock, Timeout

from eval_pipeline.journal.disk import BusyError
from eval_pipeline.records import now

log = logging.getLogger(__name__)
SOON_S = 0.5
"""Whoever is at work holds a lock for longer."""


async def acquire(lock: FileLock, what: str) -> None:
    """Waits until nobody else is at work on it, and says in the log who is."""
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
    """The same for whoever would rather give up than wait."""
    try:
        lock.acquire(timeout=within_s)
    except Timeout:
        raise BusyError(
            f"Nothing was changed: {_owner(lock)} is at work on the {what}. "
            "Try again when it is done, or end it."
        ) from None


def sign(lock: FileLock) -> None:
    """Only to tell others who is at work."""
    with suppress(OSError):
        owner = f"process {os.getpid()} on {node()} since {now():%H:%M:%S} UTC"
        Path(lock.lock_file).with_suffix(".owner").write_text(owner)


def _owner(lock: FileLock) -> str:
    try:
        return Path(lock.lock_file).with_suffix(".owner").read_text()
    except OSError:
        return "another process"

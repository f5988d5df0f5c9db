"""Places at a gateway, shared by all runs: the slots of a concurrency pool of Dagster's.

Dagster has no public way to take a slot but for a whole step, so this knows its storage.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import dagster as dg
from dagster._core.storage.event_log.base import EventLogStorage
from dagster._utils.concurrency import get_max_concurrency_limit_value
from filelock import FileLock, Timeout

from eval_pipeline.journal.locks import LockState, lock_state
from eval_pipeline.records import Model
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.settings import Settings

FIRST_WAIT_S, LONGEST_WAIT_S, GROWTH = 0.2, 5.0, 1.5

log = logging.getLogger(__name__)


def pool_of(gateway: str) -> str:
    """The pool's name in the UI, under Deployment > Concurrency."""
    return f"gateway_{gateway}"


def free_places(instance: dg.DagsterInstance, run_id: str) -> None:
    """Gives back whatever a run has taken in any pool."""
    if instance.event_log_storage.supports_global_concurrency_limits:
        instance.event_log_storage.free_concurrency_slots_for_run(run_id)


@dataclass(frozen=True)
class Pools:
    """Where a run takes a place for each model that it asks.

    Pools that Dagster itself respects belong to a step; ours depend on the models in it.
    """

    instance: dg.DagsterInstance
    run_id: str
    journal: Path
    limit: int

    @classmethod
    def of(cls, settings: Settings, context: dg.AssetExecutionContext) -> Self:
        """The pools of a run; each takes as many models as a process asks at a time."""
        limit = settings.concurrency.max_concurrent_models
        return cls(context.instance, context.run.run_id, settings.journal, limit)

    @asynccontextmanager
    async def place(self, model: Model) -> AsyncIterator[None]:
        """Waits for a place at the model's gateway and keeps it, whoever else asks there."""
        if not self._storage.supports_global_concurrency_limits:  # an instance in memory
            yield
            return
        pool, step = pool_of(model.gateway), f"predictions of {model.id}"
        try:
            await in_a_thread(self._set_limit, pool)
            await self._take(pool, step)
            yield
        finally:
            await in_a_thread(self._free, pool, step)

    async def _take(self, pool: str, step: str) -> None:
        wait = FIRST_WAIT_S
        while not await in_a_thread(self._is_taken, pool, step):
            if wait == FIRST_WAIT_S:
                holders = await in_a_thread(self._holders, pool)
                log.info("The %s wait for a place in the pool %s: %s.", step, pool, holders)
            await asyncio.sleep(wait)
            wait = min(wait * GROWTH, LONGEST_WAIT_S)

    def _is_taken(self, pool: str, step: str) -> bool:
        # Who can not have the lock soon comes again: an interruption must not wait for it.
        with suppress(Timeout), self._one_at_a_time(pool):
            if self._claim(pool, step):
                return True
            self._free_ended(pool)
            if self._has_room(pool):
                # Somebody else freed a slot just when we came, and has not seen us: come again.
                self._storage.free_concurrency_slot_for_step(self.run_id, step)
            return self._claim(pool, step)
        return False

    def _claim(self, pool: str, step: str) -> bool:
        return bool(self._storage.claim_concurrency_slot(pool, self.run_id, step).is_claimed)

    def _free(self, pool: str, step: str) -> None:
        lock = self._one_at_a_time(pool)
        try:
            with suppress(Timeout):  # not to give it back would be worse than to do so unasked
                lock.acquire()
            self._storage.free_concurrency_slot_for_step(self.run_id, step)
        except Exception:  # what was answered is no worse for it, and the run's end frees it too
            log.exception("The place of the %s in the pool %s could not be freed.", step, pool)
        finally:
            lock.release()

    def _free_ended(self, pool: str) -> None:
        """Frees what ended runs have left, so that this works without Dagster's daemon too."""
        info = self._storage.get_concurrency_info(pool)
        runs = {one.run_id for one in info.claimed_slots}
        runs |= {one.run_id for one in info.pending_steps}
        for run_id in filter(self._has_ended, runs - {self.run_id}):
            self._storage.free_concurrency_slots_for_run(run_id)

    def _has_room(self, pool: str) -> bool:
        info = self._storage.get_concurrency_info(pool)
        assigned = [one for one in info.pending_steps if one.assigned_timestamp]
        return len(assigned) < info.slot_count

    def _has_ended(self, run_id: str) -> bool:
        run = self.instance.get_run_by_id(run_id)
        return run is None or run.is_finished or lock_state(self.journal, run_id) is LockState.DEAD

    def _holders(self, pool: str) -> str:
        info = self._storage.get_concurrency_info(pool)
        held = [f"{one.step_key} (run {one.run_id[:8]})" for one in info.claimed_slots]
        return f"of {info.slot_count} taken by {', '.join(held) or 'nobody'}"

    def _set_limit(self, pool: str) -> None:
        """Sets what the settings say if that is new; a limit set in the UI stays until then."""
        key, limit = f"evals/{pool}", min(self.limit, get_max_concurrency_limit_value())
        kept = self.instance.run_storage
        with suppress(Timeout), self._one_at_a_time(pool):
            known = pool in self._storage.get_concurrency_keys()
            if known and kept.get_cursor_values({key}).get(key) == str(limit):
                return
            self._storage.set_concurrency_slots(pool, limit)
            kept.set_cursor_values({key: str(limit)})

    def _one_at_a_time(self, pool: str) -> FileLock:
        """With SQLite, two processes that claim at the same moment would get the same slot."""
        folder = self.journal / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / f"pool-{pool}.lock", timeout=LONGEST_WAIT_S, thread_local=False)

    @property
    def _storage(self) -> EventLogStorage:
        return self.instance.event_log_storage

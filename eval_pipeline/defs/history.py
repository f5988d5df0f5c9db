"""Dagster's own records of old runs: which may go, and away with them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage

from eval_pipeline.defs.instance import instance_as_it_is
from eval_pipeline.journal.locks import LockState, lock_state
from eval_pipeline.settings import Settings

ENDED = (
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
)
AT_A_TIME = 1000


def forgettable_runs(settings: Settings, before: datetime) -> list[str]:
    """The ids of runs that ended before then, and that nothing in the UI rests on.

    Kept is the run of each asset's and each partition's latest materialization: without it they
    would count as never materialized. So is what a living process holds a lock of.
    """
    with instance_as_it_is(settings) as instance:
        old = dg.RunsFilter(statuses=ENDED, updated_before=before)
        ids = [run.run_id for run in instance.get_runs(old)]
        kept = set(_latest(instance)) if ids else set()
    at_work = {run_id for run_id in ids if lock_state(settings.journal, run_id) is LockState.ALIVE}
    return [run_id for run_id in ids if run_id not in kept | at_work]


def forget_runs(settings: Settings, run_ids: Sequence[str]) -> int:
    """Deletes what Dagster has on these runs; says of how many, for some may be at work again."""
    gone = 0
    with instance_as_it_is(settings, captured=True) as instance:
        for run_id in run_ids:
            run = instance.get_run_by_id(run_id)
            if run is None or not run.is_finished:
                continue
            instance.delete_run(run_id)
            instance.compute_log_manager.delete_logs(prefix=[run_id])
            _remove_shard(instance, run_id)
            gone += 1
    return gone


def _latest(instance: dg.DagsterInstance) -> Iterator[str]:
    for key in instance.get_asset_keys():
        seen: set[str | None] = set()
        cursor, more = None, True
        while more:
            page = instance.fetch_materializations(key, limit=AT_A_TIME, cursor=cursor)
            for record in page.records:  # the latest first
                if record.partition_key not in seen:
                    seen.add(record.partition_key)
                    yield record.run_id
            cursor, more = page.cursor, page.has_more


def _remove_shard(instance: dg.DagsterInstance, run_id: str) -> None:
    """With SQLite the events of a run are in a file of its own, which Dagster leaves there."""
    if isinstance(storage := instance.event_log_storage, SqliteEventLogStorage):
        shard = Path(storage.path_for_shard(run_id))
        for path in (shard, *(shard.with_name(shard.name + end) for end in ("-wal", "-shm"))):
            path.unlink(missing_ok=True)

"""Closing runs whose process is gone: Dagster itself would show them as running for ever."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from eval_pipeline.defs.pools import free_places
from eval_pipeline.journal.deployment import may_write
from eval_pipeline.journal.locks import LockState, dead_run_ids, lock_state, remove_lock
from eval_pipeline.settings import Settings

LOOK_EVERY_S = 30
WORDS = (
    "Its process is gone (killed, or the machine stopped). "
    "What was answered is kept; materialize again to go on."
)
SILENT = timedelta(minutes=5)
"""From the start of a run to its lock it takes a moment; clocks of machines differ by less."""
IsOurs = Callable[[dg.DagsterRun], bool]


def build_dead_runs(settings: Settings) -> dg.Definitions:
    """The sensor, which looks at the locks of runs and costs nothing."""

    @dg.sensor(
        minimum_interval_seconds=LOOK_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Closes runs whose process is gone, and gives their places to others. "
        "What they had been answered is kept: materialize again to go on.",
    )
    def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        if not may_write(settings):
            return dg.SkipReason("this is production, and from here it is only read")
        instance, ours = context.instance, _runs_of(context)
        closed = close_dead_runs(instance, settings.journal)
        closed += close_silent_runs(instance, settings.journal, ours, datetime.now(UTC))
        for sentence in closed:
            context.log.warning(sentence)
        return dg.SkipReason(" ".join(closed) or "no run has died")

    return dg.Definitions(sensors=[dead_runs])


def close_dead_runs(instance: dg.DagsterInstance, journal: Path) -> list[str]:
    """Closes the runs that certainly died, and says which.

    Only a lock in this journal that its process has left behind is proof: runs of other projects
    may share the instance, and runs of other assets need no lock.
    """
    closed = [_close(instance, journal, run_id) for run_id in dead_run_ids(journal)]
    return [sentence for sentence in closed if sentence is not None]


def close_silent_runs(
    instance: dg.DagsterInstance, journal: Path, is_ours: IsOurs, now: datetime
) -> list[str]:
    """Closes the runs that died between their start and their lock, and says which.

    Whoever waits for a place at a gateway, or loads much, has the lock by then. Runs that have not
    come so far as to start are closed by Dagster's run monitoring.
    """
    before = now - SILENT
    started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED], updated_before=before)
    runs = [run for run in instance.get_runs(started) if is_ours(run)]
    lost = [run.run_id for run in runs if _has_been_silent(instance, run.run_id, before)]
    # Looked at last, for until now it may have got its lock.
    lost = [run_id for run_id in lost if lock_state(journal, run_id) is LockState.UNKNOWN]
    closed = [_close(instance, journal, run_id) for run_id in lost]
    return [sentence for sentence in closed if sentence is not None]


def _has_been_silent(instance: dg.DagsterInstance, run_id: str, since: datetime) -> bool:
    """Whether it has begun no step, before which it takes the lock, and told nothing since then."""
    begun = dg.DagsterEventType.STEP_START
    if instance.get_records_for_run(run_id, of_type=begun, limit=1).records:
        return False
    last = instance.get_records_for_run(run_id, limit=1, ascending=False).records
    return all(one.event_log_entry.timestamp < since.timestamp() for one in last)


def _runs_of(context: dg.SensorEvaluationContext) -> IsOurs:
    """Whether a run is of this code location: other projects may share the instance."""
    here, ours = context.code_location_origin, context.repository_def

    def is_ours(run: dg.DagsterRun) -> bool:
        if (origin := run.remote_job_origin) is not None:
            location = origin.repository_origin.code_location_origin.location_name
            return here is not None and location == here.location_name
        # Launched from a terminal.
        if ours is None or not ours.has_job(run.job_name):
            return False
        return all(ours.asset_graph.has(key) for key in run.asset_selection or ())

    return is_ours


def _close(instance: dg.DagsterInstance, journal: Path, run_id: str) -> str | None:
    """Reports how the run has ended, unless Dagster has noticed itself."""
    run = instance.get_run_by_id(run_id)
    free_places(instance, run_id)
    if run is None or run.is_finished:
        remove_lock(journal, run_id)
        return None
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, WORDS)
    else:
        instance.report_run_failed(run, WORDS)
    remove_lock(journal, run_id)
    return f"Run {run_id[:8]} ({run.job_name}) is closed. {WORDS}"

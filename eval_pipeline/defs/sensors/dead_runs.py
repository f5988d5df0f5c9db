"""Closing runs whose process is gone: Dagster itself would show them as running for ever."""

from pathlib import Path

import dagster as dg

from eval_pipeline.alive import bury, dead_ones
from eval_pipeline.defs.pools import free_places
from eval_pipeline.settings import Settings

LOOK_EVERY_S = 30
WORDS = (
    "Its process is gone (killed, or the machine stopped). "
    "What was answered is kept; materialize again to go on."
)


def build_dead_runs(settings: Settings) -> dg.Definitions:
    """The sensor, which looks at the locks of runs and costs nothing."""

    @dg.sensor(
        minimum_interval_seconds=LOOK_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Closes runs whose process is gone, and gives their places to others. "
        "What they had been answered is kept: materialize again to go on.",
    )
    def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        closed = close_dead_runs(context.instance, settings.journal)
        for sentence in closed:
            context.log.warning(sentence)
        return dg.SkipReason(" ".join(closed) or "no run has died")

    return dg.Definitions(sensors=[dead_runs])


def close_dead_runs(instance: dg.DagsterInstance, journal: Path) -> list[str]:
    """Closes the runs that certainly died, and says which.

    Only a lock in this journal that its process has left behind is proof: runs of other projects
    may share the instance, and runs of other assets need no lock.
    """
    closed = [_close(instance, journal, run_id) for run_id in dead_ones(journal)]
    return [sentence for sentence in closed if sentence is not None]


def _close(instance: dg.DagsterInstance, journal: Path, run_id: str) -> str | None:
    """Reports how the run has ended, unless Dagster has noticed itself."""
    run = instance.get_run_by_id(run_id)
    free_places(instance, run_id)
    if run is None or run.is_finished:
        bury(journal, run_id)
        return None
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, WORDS)
    else:
        instance.report_run_failed(run, WORDS)
    bury(journal, run_id)
    return f"Run {run_id[:8]} ({run.job_name}) is closed. {WORDS}"

"""Closing runs whose process is gone: Dagster itself would show them as running for ever."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from eval_pipeline.defs.alive import Life, bury, life_of
from eval_pipeline.records import now
from eval_pipeline.settings import Settings

LOOK_EVERY_S = 30
# A run without a lock may be just beginning, or just ending.
CERTAIN_AFTER_S = 20
WORDS = (
    "Its process is gone (killed, or the machine stopped). "
    "What was answered is kept; materialize again to go on."
)
# Runs that do not even start are found by Dagster's own run monitoring.
AT_WORK = (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)


def build_dead_runs(settings: Settings) -> dg.Definitions:
    """The sensor, which looks at the locks of runs and costs nothing."""

    @dg.sensor(
        minimum_interval_seconds=LOOK_EVERY_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Closes runs whose process is gone, and gives their places to others. "
        "What they had been answered is kept: materialize again to go on.",
    )
    def dead_runs(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        found_before = json.loads(context.cursor or "{}")
        origin = context.code_location_origin
        location = origin.location_name if origin else None
        look = take_a_look(context.instance, settings.journal, found_before, location=location)
        for sentence in look.closed:
            context.log.warning(sentence)
        told = " ".join(look.closed) or "no run has died"
        return dg.SensorResult(skip_reason=told, cursor=json.dumps(look.suspects))

    return dg.Definitions(sensors=[dead_runs])


@dataclass(frozen=True)
class Look:
    """What a look at the runs has found: whom it closed, and since when others seem dead."""

    closed: list[str] = field(default_factory=list)
    suspects: dict[str, float] = field(default_factory=dict)


def take_a_look(
    instance: dg.DagsterInstance,
    journal: Path,
    found_before: Mapping[str, float],
    *,
    location: str | None = None,
    at: float | None = None,
) -> Look:
    """Closes the runs that were found dead before already, long enough ago."""
    at, look = now().timestamp() if at is None else at, Look()
    for run in _at_work(instance):
        life = life_of(journal, run.run_id)
        if life is Life.ALIVE or (life is Life.UNKNOWN and not _is_of(run, location)):
            continue
        since = found_before.get(run.run_id, at)
        if at - since >= CERTAIN_AFTER_S:
            look.closed.extend(_close(instance, journal, run.run_id))
        else:
            look.suspects[run.run_id] = since
    return look


def close_dead_runs(instance: dg.DagsterInstance, journal: Path) -> list[str]:
    """Closes at once the runs that certainly died, and says which; for commands."""
    return [
        sentence
        for run in _at_work(instance)
        if life_of(journal, run.run_id) is Life.DEAD
        for sentence in _close(instance, journal, run.run_id)
    ]


def _at_work(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    return list(instance.get_runs(dg.RunsFilter(statuses=list(AT_WORK))))


def _is_of(run: dg.DagsterRun, location: str | None) -> bool:
    """Whether it was launched by that code location; other projects may share the instance."""
    origin = run.remote_job_origin
    return origin is not None and origin.location_name == location


def _close(instance: dg.DagsterInstance, journal: Path, run_id: str) -> Iterator[str]:
    """Reports how the run has ended, unless it or somebody else has done so meanwhile."""
    run = instance.get_run_by_id(run_id)
    if run is None or run.status not in AT_WORK:
        return
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, WORDS)
    else:
        instance.report_run_failed(run, WORDS)
    storage = instance.event_log_storage
    if storage.supports_global_concurrency_limits:
        storage.free_concurrency_slots_for_run(run_id)
    bury(journal, run_id)
    yield f"Run {run_id[:8]} ({run.job_name}) is closed. {WORDS}"

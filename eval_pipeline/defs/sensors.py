"""Sensors: new models, dead runs, and notifications of failures."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

import dagster as dg
from pydantic import SecretStr

from eval_pipeline.defs.notifications import NotifyError, message, post, told_of
from eval_pipeline.defs.partitions import MODELS, PART_OF
from eval_pipeline.evaluation.catalog import NOTHING_SELECTED, Look, look
from eval_pipeline.gateways.model_lists import CatalogError
from eval_pipeline.journal import JournalError
from eval_pipeline.journal.deployment import may_write, open_journal, refuse_production
from eval_pipeline.journal.locks import LockState, dead_run_ids, lock_state, remove_lock
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import WEBHOOK, Settings


def build_discovery(settings: Settings) -> dg.Definitions:
    """The sensor; it runs from the start only where models are evaluated without being told to."""
    automation, status = settings.automation, dg.DefaultSensorStatus

    @dg.sensor(
        job_name="refresh_catalog",
        minimum_interval_seconds=automation.discover_every_s,
        default_status=status.RUNNING if automation.evaluate else status.STOPPED,
        description="Asks every gateway for its models, which costs nothing. If one appeared, "
        "vanished or changed its price, or a selected one is not a partition yet, it has the "
        "catalog refreshed.",
    )
    def discovery(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        try:
            refuse_production(settings)
            seen = run_async(look(settings, open_journal(settings)))
        except (CatalogError, JournalError) as error:
            return dg.SkipReason(str(error))
        return _decide(context, seen)

    return dg.Definitions(sensors=[discovery])


def _decide(context: dg.SensorEvaluationContext, seen: Look) -> dg.RunRequest | dg.SkipReason:
    for warning in seen.warnings:
        context.log.warning(warning)
    if not seen.selected.models:
        return dg.SkipReason(NOTHING_SELECTED)
    partitions = context.instance.get_dynamic_partitions(MODELS)
    reasons = seen.reasons(partitions)
    for reason in reasons:
        context.log.info(reason)
    if not reasons:
        said = " ".join([f"nothing has changed: {seen.summary}.", *seen.catalog.failed.values()])
        return dg.SkipReason(said)
    # Dagster never starts a second run for the same key.
    return dg.RunRequest(run_key=seen.fingerprint(partitions))


LOOK_EVERY_S = 30
WORDS = (
    "Its process is gone (killed, or the machine stopped). "
    "What was answered is kept; materialize again to go on."
)
SILENT = timedelta(minutes=5)
"""From the start of a run to its lock it takes a moment; clocks of machines differ by less."""


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
        instance, ours = context.instance, partial(_is_ours, context)
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
    return _close_all(instance, journal, dead_run_ids(journal))


def close_silent_runs(
    instance: dg.DagsterInstance,
    journal: Path,
    is_ours: Callable[[dg.DagsterRun], bool],
    now: datetime,
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
    unlocked = [run_id for run_id in lost if lock_state(journal, run_id) is LockState.UNKNOWN]
    return _close_all(instance, journal, unlocked)


def _has_been_silent(instance: dg.DagsterInstance, run_id: str, since: datetime) -> bool:
    """Whether it has begun no step, before which it takes the lock, and told nothing since then."""
    begun = dg.DagsterEventType.STEP_START
    if instance.get_records_for_run(run_id, of_type=begun, limit=1).records:
        return False
    last = instance.get_records_for_run(run_id, limit=1, ascending=False).records
    return all(one.event_log_entry.timestamp < since.timestamp() for one in last)


def _is_ours(context: dg.SensorEvaluationContext, run: dg.DagsterRun) -> bool:
    """Return whether the run is of this code location: other projects may share the instance."""
    here, ours = context.code_location_origin, context.repository_def
    if location := _location_of(run):
        return here is not None and location == here.location_name
    # Launched from a terminal.
    if ours is None or not ours.has_job(run.job_name):
        return False
    return all(ours.asset_graph.has(key) for key in run.asset_selection or ())


def _location_of(run: dg.DagsterRun) -> str | None:
    """Return the name of the code location that Dagster launched the run from, if it did."""
    if (origin := run.remote_job_origin) is None:
        return None
    return origin.repository_origin.code_location_origin.location_name


def _close_all(instance: dg.DagsterInstance, journal: Path, run_ids: Sequence[str]) -> list[str]:
    """Report how the runs have ended, unless Dagster has noticed itself; remove their locks."""
    closed = []
    for run_id in run_ids:
        run = instance.get_run_by_id(run_id)
        if run is not None and not run.is_finished:
            is_canceled = run.status is dg.DagsterRunStatus.CANCELING
            report = instance.report_run_canceled if is_canceled else instance.report_run_failed
            report(run, WORDS)
            closed.append(f"Run {run_id[:8]} ({run.job_name}) is closed. {WORDS}")
        remove_lock(journal, run_id)
    return closed


FAILURE: Final = dg.DagsterEventType.RUN_FAILURE
POSTED = "evals/failure_posted"
"""The tag of a failed run whose message is posted, or never can be: "true" or "never"."""
MOST_WAITING = 100
# Dagster waits a minute for a tick.
LONGEST_TICK_S = 20.0


def build_notifications(settings: Settings) -> dg.Definitions:
    """Notifications of failed runs; they are on if there is a webhook to post them to.

    Dagster's own sensor for failures would forget a run whose message was not delivered. Here the
    cursor moves on only when every failure after it has its tag.
    """
    on, off = dg.DefaultSensorStatus.RUNNING, dg.DefaultSensorStatus.STOPPED

    @dg.sensor(
        default_status=on if settings.webhook else off,
        description=f"Posts a message to the webhook in {WEBHOOK} when a run has failed: which "
        "model, why, how its questions ended, what it has cost so far, and a link.",
    )
    def failed_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        seen, latest = context.cursor or "", context.instance.fetch_run_status_changes(FAILURE, 1)
        newest = latest.records[0].storage_id if latest.records else -1
        if settings.webhook is None or not seen.removeprefix("-").isdigit():
            context.update_cursor(str(newest))
            off = settings.webhook is None
            return dg.SkipReason(f"{WEBHOOK} is not set." if off else "It begins with the next.")
        waiting = _waiting(context, int(seen))
        posted = _post_all(context, waiting, settings, settings.webhook)
        if posted == len(waiting):
            context.update_cursor(str(newest))
        said = f"Posted: {posted} of {len(waiting)} failures."
        return dg.SkipReason(said if waiting else "There are no failures to post.")

    return dg.Definitions(sensors=[failed_runs])


def _waiting(context: dg.SensorEvaluationContext, seen: int) -> list[dg.DagsterRun]:
    """Return the failed runs to post, in the order of their failures; the latest if too many."""
    since = dg.RunStatusChangeRecordsFilter(FAILURE, after_storage_id=seen)
    found = context.instance.fetch_run_status_changes(since, limit=MOST_WAITING).records
    if len(found) == MOST_WAITING:
        context.log.warning("Only the latest %d failures are posted.", MOST_WAITING)
    ids = dict.fromkeys(one.run_id for one in reversed(found))
    runs = map(context.instance.get_run_by_id, ids)
    return [run for run in runs if run is not None and _is_posted_here(context, run)]


def _is_posted_here(context: dg.SensorEvaluationContext, run: dg.DagsterRun) -> bool:
    """Return whether to post this run: launched from here, not part of another, not yet posted."""
    if whole := run.tags.get(PART_OF):
        context.log.info("Run %s is part of run %s, which is posted.", run.run_id, whole)
    here = context.code_location_origin
    is_from_here = _location_of(run) == (here.location_name if here else None)
    return is_from_here and whole is None and POSTED not in run.tags


def _post_all(
    context: dg.SensorEvaluationContext,
    waiting: Sequence[dg.DagsterRun],
    settings: Settings,
    webhook: SecretStr,
) -> int:
    """Post one after another until time is up; return how many, or raise what went wrong."""
    posted, failed, until = 0, None, monotonic() + LONGEST_TICK_S
    for run in waiting:
        if monotonic() > until:
            break
        try:
            post(webhook, message(told_of(run, context.instance, settings), settings.redact))
        except Exception as error:  # must not keep other runs from being posted
            if isinstance(error, NotifyError) and not error.never:
                raise
            context.log.exception("Run %s cannot be posted and will not be retried.", run.run_id)
            failed = error
            context.instance.add_run_tags(run.run_id, {POSTED: "never"})
        else:
            context.instance.add_run_tags(run.run_id, {POSTED: "true"})
        posted += 1
    if failed is not None:
        raise failed
    return posted

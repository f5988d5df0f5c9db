"""The sensor that tells people of failed runs, through a webhook."""

from datetime import UTC, datetime

import dagster as dg
from dagster_shared.error import SerializableErrorInfo

from eval_pipeline.defs.jobs import PART_OF
from eval_pipeline.defs.launch import innermost, is_interruption, words_of
from eval_pipeline.defs.partitions import MODELS, ONE, RANGE_END, RANGE_START, SOME, models_named
from eval_pipeline.notify import Asked, Failed, message, post, quoted, read_ended
from eval_pipeline.settings import WEBHOOK, Settings

NOTHING_TOLD = "This run has been marked as failed from outside the execution context."
"""What Dagster says of a run that somebody else has closed without a word."""
ASKING = {"predictions", "every_model"}
PAYING = {"judged", "judge_reliability", "run_reports", *ASKING}
"""The steps that ask models: what has become of their questions is worth telling."""


def build_notifications(settings: Settings) -> dg.Definitions:
    """Notifications of failed runs; they are on if there is a webhook to post them to."""
    on, off = dg.DefaultSensorStatus.RUNNING, dg.DefaultSensorStatus.STOPPED

    @dg.run_failure_sensor(
        name="failed_runs",
        default_status=on if settings.webhook else off,
        description=f"Posts a message to the webhook in {WEBHOOK} when a run has failed: which "
        "model, why, how its questions ended, what it has cost so far, and a link.",
    )
    def failed_runs(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        if settings.webhook is None:
            return dg.SkipReason(f"{WEBHOOK} is not set.")
        run = context.dagster_run
        if whole := run.tags.get(PART_OF):
            # No SkipReason: with another failed run in the same tick, Dagster would take that for
            # an error, forget how far it was, and have all of the tick's messages posted again.
            context.log.info("Run %s is part of run %s, which tells.", run.run_id, whole)
            return None
        post(settings.webhook, message(_failed(context, settings), settings.redact))
        return None

    return dg.Definitions(sensors=[failed_runs])


def _failed(context: dg.RunFailureSensorContext, settings: Settings) -> Failed:
    run, steps = context.dagster_run, _started_steps(context)
    asked = _asked(context, steps)
    return Failed(
        what=_what(run),
        models=_models_in_words(run)
        if run.tags.keys() & {ONE, SOME, RANGE_START} or asked
        else None,
        reason=_reason(context),
        ended=read_ended(settings.database, asked) if asked else (),
        link=f"{settings.automation.ui_url}/runs/{run.run_id}",
    )


def _what(run: dg.DagsterRun) -> str:
    """The job; or the assets, if they were materialized without one."""
    if not run.job_name.startswith("__"):
        return run.job_name
    return ", ".join(sorted(key.to_user_string() for key in run.asset_selection or ())) or "A run"


def _models_in_words(run: dg.DagsterRun) -> str:
    if RANGE_START in run.tags:
        return f"{quoted(run.tags[RANGE_START])} to {quoted(run.tags[RANGE_END])}"
    some = run.tags.get(ONE) or run.tags.get(SOME)
    return ", ".join(map(quoted, some.split(","))) if some else "all models"


def _started_steps(context: dg.RunFailureSensorContext) -> set[str | None]:
    started = context.instance.get_records_for_run(
        context.dagster_run.run_id, of_type=dg.DagsterEventType.STEP_START
    )
    events = (record.event_log_entry.dagster_event for record in started.records)
    return {event.step_key for event in events if event is not None}


def _asked(context: dg.RunFailureSensorContext, steps: set[str | None]) -> Asked | None:
    """Which evaluations the run had to do with; None if it asked nobody anything."""
    run, instance = context.dagster_run, context.instance
    record = instance.get_run_record_by_id(run.run_id)
    if record is None or not steps & PAYING:
        return None
    parts = instance.get_runs(dg.RunsFilter(tags={PART_OF: run.run_id}))
    own = [run.run_id, *filter(None, [run.root_run_id]), *(part.run_id for part in parts)]
    predicted = bool(steps & ASKING)
    return Asked(
        run_ids=tuple(own),
        models=tuple(models_named(run.tags, instance.get_dynamic_partitions(MODELS))) or None,
        since=_time(record.start_time) if predicted else None,
        until=_time(record.end_time) if predicted else None,
    )


def _time(timestamp: float | None) -> datetime | None:
    """As the tables have it: UTC, and not said."""
    return (
        None if timestamp is None else datetime.fromtimestamp(timestamp, UTC).replace(tzinfo=None)
    )


def _reason(context: dg.RunFailureSensorContext) -> str:
    """What the last step that failed says; or Dagster, if it was none."""
    failed = context.get_step_failure_events()
    if failed:
        return f"{failed[-1].step_key}: {_words(failed[-1].step_failure_data.error)}"
    event = context.failure_event
    if _has_error(event):
        return _words(event.job_failure_data.error)
    told = event.message or NOTHING_TOLD
    return _last_words(context) or told if told == NOTHING_TOLD else told


def _last_words(context: dg.RunFailureSensorContext) -> str:
    """What Dagster noted last: of a killed process, by which signal."""
    found = context.instance.get_records_for_run(
        context.dagster_run.run_id,
        of_type=dg.DagsterEventType.ENGINE_EVENT,
        limit=1,
        ascending=False,
    )
    events = (record.event_log_entry.dagster_event for record in found.records)
    return "".join(event.message or "" for event in events if event is not None)


def _has_error(event: dg.DagsterEvent) -> bool:
    return event.event_specific_data is not None and event.job_failure_data.error is not None


def _words(error: SerializableErrorInfo | None) -> str:
    cause = innermost(error)
    return "it was interrupted" if is_interruption(cause) else words_of(cause)

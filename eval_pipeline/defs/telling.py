"""What is told of a run that failed: read from Dagster's history and from the journal."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster_shared.error import SerializableErrorInfo

from eval_pipeline.defs.jobs import PART_OF
from eval_pipeline.defs.launch import innermost, is_interruption, words_of
from eval_pipeline.defs.partitions import MODELS, ONE, RANGE_END, RANGE_START, SOME, models_named
from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.notify import Failed, quoted
from eval_pipeline.records import now
from eval_pipeline.results.runs import Asked, read_ended
from eval_pipeline.settings import Settings

NOTHING_TOLD = "This run has been marked as failed from outside the execution context."
"""What Dagster says of a run that somebody else has closed without a word."""
ASKING = {"predictions", "every_model"}
PAYING = {"judged", "judge_reliability", "run_reports", *ASKING}
"""The steps that ask models: what has become of their questions is worth telling."""
LATE = timedelta(minutes=10)


def told_of(run: dg.DagsterRun, instance: dg.DagsterInstance, settings: Settings) -> Failed:
    """What it was to do, why it failed, and how its questions stood then."""
    asked = _asked(run, instance)
    return Failed(
        what=_what(run),
        models=_models_in_words(run, asked),
        at=_when_late(run, instance),
        reason=_reason(run, instance),
        ended=read_ended(open_journal(settings), asked) if asked else (),
        link=f"{settings.automation.ui_url}/runs/{run.run_id}",
    )


def _what(run: dg.DagsterRun) -> str:
    """The job; or the assets, if they were materialized without one."""
    if not run.job_name.startswith("__"):
        return run.job_name
    return ", ".join(sorted(key.to_user_string() for key in run.asset_selection or ())) or "A run"


def _models_in_words(run: dg.DagsterRun, asked: Asked | None) -> str | None:
    """Those that its tags name; without any, who asked somebody asked all."""
    if RANGE_START in run.tags:
        return f"{quoted(run.tags[RANGE_START])} to {quoted(run.tags[RANGE_END])}"
    if some := run.tags.get(ONE) or run.tags.get(SOME):
        return ", ".join(map(quoted, some.split(",")))
    return "all models" if asked else None


def _asked(run: dg.DagsterRun, instance: dg.DagsterInstance) -> Asked | None:
    """Which evaluations the run had to do with; None if it asked nobody anything."""
    record, steps = instance.get_run_record_by_id(run.run_id), _started_steps(run, instance)
    if record is None or record.start_time is None or not steps & PAYING:
        return None
    models = models_named(run.tags, instance.get_dynamic_partitions(MODELS))
    if "predictions" in steps and not models:  # which is why it failed
        return None
    parts = instance.get_runs(dg.RunsFilter(tags={PART_OF: run.run_id}))
    own = [run.run_id, *filter(None, [run.root_run_id]), *(part.run_id for part in parts)]
    ended = now() if record.end_time is None else datetime.fromtimestamp(record.end_time, UTC)
    # As the tables have it: UTC, and not said.
    return Asked(
        run_ids=tuple(own),
        models=tuple(models) or None,
        since=datetime.fromtimestamp(record.start_time, UTC).replace(tzinfo=None),
        until=ended.replace(tzinfo=None),
        predicted=bool(steps & ASKING),
    )


def _when_late(run: dg.DagsterRun, instance: dg.DagsterInstance) -> datetime | None:
    """When it failed, if that is no news."""
    record = instance.get_run_record_by_id(run.run_id)
    if record is None or record.end_time is None:
        return None
    ended = datetime.fromtimestamp(record.end_time, UTC)
    return ended if now() - ended > LATE else None


def _reason(run: dg.DagsterRun, instance: dg.DagsterInstance) -> str:
    """What the last step that failed says; or Dagster, if it was none."""
    failed = _events(run, instance, dg.DagsterEventType.STEP_FAILURE)
    if failed:
        return f"{failed[-1].step_key}: {_words(failed[-1].step_failure_data.error)}"
    closed = _events(run, instance, dg.DagsterEventType.RUN_FAILURE)
    if closed and _has_error(closed[-1]):
        return _words(closed[-1].job_failure_data.error)
    told = (closed[-1].message if closed else None) or NOTHING_TOLD
    return _last_words(run, instance) or told if told == NOTHING_TOLD else told


def _last_words(run: dg.DagsterRun, instance: dg.DagsterInstance) -> str:
    """What Dagster noted last: of a killed process, by which signal."""
    noted = _events(run, instance, dg.DagsterEventType.ENGINE_EVENT)
    return (noted[-1].message or "") if noted else ""


def _started_steps(run: dg.DagsterRun, instance: dg.DagsterInstance) -> set[str | None]:
    return {event.step_key for event in _events(run, instance, dg.DagsterEventType.STEP_START)}


def _events(
    run: dg.DagsterRun, instance: dg.DagsterInstance, kind: dg.DagsterEventType
) -> Sequence[dg.DagsterEvent]:
    found = instance.get_records_for_run(run.run_id, of_type=kind).records
    events = (record.event_log_entry.dagster_event for record in found)
    return [event for event in events if event is not None]


def _has_error(event: dg.DagsterEvent) -> bool:
    return event.event_specific_data is not None and event.job_failure_data.error is not None


def _words(error: SerializableErrorInfo | None) -> str:
    cause = innermost(error)
    return "it was interrupted" if is_interruption(cause) else words_of(cause)

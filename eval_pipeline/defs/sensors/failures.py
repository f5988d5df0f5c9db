"""The sensor that tells people of failed runs, through a webhook: each once, late if need be."""

from collections.abc import Iterator, Sequence
from time import monotonic
from traceback import TracebackException
from typing import Final, NamedTuple

import dagster as dg
from dagster._core.definitions.run_request import DagsterRunReaction
from dagster_shared.error import SerializableErrorInfo
from pydantic import SecretStr, ValidationError

from eval_pipeline.defs.jobs import PART_OF
from eval_pipeline.defs.telling import told_of
from eval_pipeline.notify import NotifyError, message, post
from eval_pipeline.record import Record
from eval_pipeline.settings import WEBHOOK, Settings

FAILURE: Final = dg.DagsterEventType.RUN_FAILURE
MOST_WAITING = 100
# Dagster waits a minute for a tick, and has another one do again what that did.
LONGEST_TICK_S = 20.0


class Progress(Record):
    """How far the sensor is: the last failure it has seen, and the runs still to be told of.

    Dagster's own sensor for failures would forget a run that could not be told of.
    """

    seen: int
    waiting: tuple[str, ...] = ()


class Told(NamedTuple):
    """What a tick has done, in the words of Dagster, and the runs still to be told of."""

    reactions: Sequence[DagsterRunReaction]
    left: tuple[str, ...]


def build_notifications(settings: Settings) -> dg.Definitions:
    """Notifications of failed runs; they are on if there is a webhook to post them to."""
    on, off = dg.DefaultSensorStatus.RUNNING, dg.DefaultSensorStatus.STOPPED

    @dg.sensor(
        default_status=on if settings.webhook else off,
        description=f"Posts a message to the webhook in {WEBHOOK} when a run has failed: which "
        "model, why, how its questions ended, what it has cost so far, and a link.",
    )
    def failed_runs(
        context: dg.SensorEvaluationContext,
    ) -> Iterator[dg.SkipReason | DagsterRunReaction]:
        before = _progress(context.cursor)
        if before is None or settings.webhook is None:
            context.update_cursor(_from_now_on(context.instance).model_dump_json())
            off = settings.webhook is None
            yield dg.SkipReason(f"{WEBHOOK} is not set." if off else "It begins with the next.")
            return
        found = _look(context, before)
        told = _tell(context, found.waiting, settings, settings.webhook)
        context.update_cursor(Progress(seen=found.seen, waiting=told.left).model_dump_json())
        yield from told.reactions
        if not told.reactions:
            yield dg.SkipReason("There is nothing to tell.")

    return dg.Definitions(sensors=[failed_runs])


def _progress(cursor: str | None) -> Progress | None:
    try:
        return None if cursor is None else Progress.model_validate_json(cursor)
    except ValidationError:  # that of an older version
        return None


def _from_now_on(instance: dg.DagsterInstance) -> Progress:
    latest = instance.fetch_run_status_changes(FAILURE, limit=1).records
    return Progress(seen=latest[0].storage_id if latest else -1)


def _look(context: dg.SensorEvaluationContext, before: Progress) -> Progress:
    """The same with the failures since then, as far as they are to be told."""
    since = dg.RunStatusChangeRecordsFilter(FAILURE, after_storage_id=before.seen)
    found = context.instance.fetch_run_status_changes(
        since, ascending=True, limit=MOST_WAITING
    ).records
    ids = dict.fromkeys([*before.waiting, *(one.run_id for one in found if _is_told(context, one))])
    if (too_many := len(ids) - MOST_WAITING) > 0:
        context.log.warning("%d failures are not told any more: too many wait.", too_many)
    seen = found[-1].storage_id if found else before.seen
    return Progress(seen=seen, waiting=tuple(ids)[-MOST_WAITING:])


def _is_told(context: dg.SensorEvaluationContext, record: dg.EventLogRecord) -> bool:
    """What was started in a terminal is told there, and a part by the whole."""
    run = context.instance.get_run_by_id(record.run_id)
    if run is None or not _is_from_here(context, run):
        return False
    if whole := run.tags.get(PART_OF):
        context.log.info("Run %s is part of run %s, which tells.", run.run_id, whole)
    return whole is None


def _is_from_here(context: dg.SensorEvaluationContext, run: dg.DagsterRun) -> bool:
    here, origin = context.code_location_origin, run.remote_job_origin
    if here is None or origin is None:
        return here is None and origin is None
    launched = origin.repository_origin
    return (launched.code_location_origin.location_name, launched.repository_name) == (
        here.location_name,
        context.repository_name,
    )


def _tell(
    context: dg.SensorEvaluationContext,
    waiting: tuple[str, ...],
    settings: Settings,
    webhook: SecretStr,
) -> Told:
    """Posts one after another, until there is no time left or the webhook takes no more."""
    reactions: list[DagsterRunReaction] = []
    until = monotonic() + LONGEST_TICK_S
    for place, run_id in enumerate(waiting):
        if monotonic() > until:
            return Told(reactions, waiting[place:])
        run = context.instance.get_run_by_id(run_id)
        if run is None:  # somebody has deleted it
            continue
        error = _post(context, run, settings, webhook)
        told = None if error is None else _as_dagster_has_it(error)
        reactions.append(DagsterRunReaction(run, told, dg.DagsterRunStatus.FAILURE))
        if isinstance(error, NotifyError) and not error.never:
            return Told(reactions, waiting[place:])
    return Told(reactions, ())


def _post(
    context: dg.SensorEvaluationContext,
    run: dg.DagsterRun,
    settings: Settings,
    webhook: SecretStr,
) -> Exception | None:
    try:
        post(webhook, message(told_of(run, context.instance, settings), settings.redact))
    except NotifyError as error:
        later = "It is not tried again." if error.never else "It is tried again later."
        context.log.warning("Run %s is not told of. %s %s", run.run_id, error, later)
        return error
    except Exception as error:  # what can not be told must not keep others from being told
        context.log.exception("Run %s can not be told of.", run.run_id)
        return error
    return None


def _as_dagster_has_it(error: Exception) -> SerializableErrorInfo:
    """With this the tick fails, and Dagster notes all the same how far it was."""
    return SerializableErrorInfo.from_traceback(TracebackException.from_exception(error))

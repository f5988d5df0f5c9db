"""Messages about failed runs, and the webhook they are posted to."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import aiohttp
import dagster as dg
import httpx
from pydantic import SecretStr

from eval_pipeline.defs.partitions import (
    MODELS,
    ONE,
    PART_OF,
    RANGE_END,
    RANGE_START,
    SOME,
    models_named,
)
from eval_pipeline.gateways.client import open_session
from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.records.base import Record, now
from eval_pipeline.results.runs import Asked, Ended, read_ended
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings

LIMIT_S = 10.0
WAIT_S = 1.0
LONGEST_REASON = 500
MOST_MODELS = 10
REASONS = (
    (aiohttp.ClientSSLError, "no secure connection"),
    (aiohttp.ClientConnectorDNSError, "its host is not known"),
    (aiohttp.ClientConnectorError, "no connection"),
    (Exception, "the connection broke"),
)
"""Not in the words of the errors, which may name the address. The first that fits."""

BAD_MESSAGE = (400, 413, 422)
"""How a webhook says that there is something wrong with the message, and not with itself."""


class NotifyError(Exception):
    """The message was not delivered; the sentence does not name the address."""

    def __init__(self, words: str, *, transient: bool = False, never: bool = False) -> None:
        super().__init__(f"The webhook did not take the message: {words}.")
        self.transient, self.never = transient, never


class Failed(Record):
    """A run that failed: what it was to do, for which models, and why it did not.

    When that was (UTC) is told if it is a while ago.
    """

    what: str
    models: str | None
    at: datetime | None = None
    reason: str
    ended: tuple[Ended, ...]
    link: str


def message(failed: Failed, redact: Callable[[str], str]) -> dict[str, str]:
    """The failure as Slack and those who speak its language take it."""
    about = f" for {failed.models}" if failed.models else ""
    when = f" at {failed.at:%Y-%m-%d %H:%M} UTC" if failed.at else ""
    shown, more = failed.ended[:MOST_MODELS], len(failed.ended) - MOST_MODELS
    lines = [
        f":x: *{failed.what} failed*{about}{when}",
        f"Why: {quoted(redact(failed.reason))}",
        *(_counts(one) for one in shown),
        *([f"… and {more} more models"] if more > 0 else []),
        *([_cost(failed.ended)] if failed.ended else []),
        f"<{_escaped(failed.link)}|Open the run in Dagster>",
    ]
    return {"text": "\n".join(lines)}


def quoted(words: str) -> str:
    """Somebody else's words as code, in which there are no links, mentions or markup."""
    line = " ".join("".join(one if one.isprintable() else " " for one in words).split())
    line = line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"
    # Not everybody who speaks Slack's language leaves mentions in code alone.
    line = line.replace("`", "'").replace("@", "@\u200b")
    return f"`{_escaped(line)}`"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _counts(one: Ended) -> str:
    judged = f"; judged: {one.judged}" if one.judged else ""
    return f"{quoted(one.model)}: {one.predicted or 'no reply'} (of {one.planned}){judged}"


def _cost(ended: Sequence[Ended]) -> str:
    least = "at least " if any(one.costs_unknown for one in ended) else ""
    return f"Cost so far: {least}{sum(one.cost_usd for one in ended):.4f} USD"


def post(webhook: SecretStr, body: dict[str, str]) -> None:
    """Posts it, a second time if the first may have failed by chance."""
    trouble = run_async(_deliver(webhook.get_secret_value(), body))
    if trouble is not None:
        raise trouble


async def _deliver(address: str, body: dict[str, str]) -> NotifyError | None:
    # aiohttp logs no address, as httpx would.
    async with open_session(secure=True) as session:
        trouble = await _attempt(session, address, body)
        if trouble is not None and trouble.transient:
            await asyncio.sleep(WAIT_S)
            trouble = await _attempt(session, address, body)
    return trouble


async def _attempt(
    session: aiohttp.ClientSession, address: str, body: dict[str, str]
) -> NotifyError | None:
    """Post once: follow no redirect, and read nothing but the status of the answer.

    The error is not raised here: what it came from may name the address.
    """
    try:
        async with (
            asyncio.timeout(LIMIT_S),
            session.post(address, json=body, allow_redirects=False) as response,
        ):
            status = response.status
    except TimeoutError:
        return NotifyError(f"no answer within {LIMIT_S:g} s", transient=True)
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError, UnicodeError):
        return NotifyError("EVALS_WEBHOOK_URL is no address")
    except (aiohttp.ClientError, OSError) as error:
        if isinstance(getattr(error, "os_error", None), ConnectionRefusedError):
            return NotifyError("connection refused", transient=True)
        words = next(words for kind, words in REASONS if isinstance(error, kind))
        return NotifyError(words, transient=True)
    if httpx.codes.is_success(status):
        return None
    again = status == httpx.codes.TOO_MANY_REQUESTS or httpx.codes.is_server_error(status)
    return NotifyError(f"status {status}", transient=again, never=status in BAD_MESSAGE)


NOTHING_TOLD = "This run has been marked as failed from outside the execution context."
"""What Dagster says of a run that somebody else has closed without a word."""
ASKING = {"predictions", "every_model"}
PAYING = {"judged", "judge_reliability", "run_reports", *ASKING}
"""The steps that ask models: what has become of their questions is worth telling."""
# The second is what the first becomes when the run was part of another one.
INTERRUPTIONS = {"DagsterExecutionInterruptedError", "KeyboardInterrupt"}
LATE = timedelta(minutes=10)


class Cause(NamedTuple):
    """The error that others came from, in its words."""

    words: str
    is_interruption: bool
    """Whether the run was ended, and nothing went wrong."""


def told_of(run: dg.DagsterRun, instance: dg.DagsterInstance, settings: Settings) -> Failed:
    """What it was to do, why it failed, and how its questions stood then."""
    record = instance.get_run_record_by_id(run.run_id)
    start, end = (_moment(record.start_time), _moment(record.end_time)) if record else (None, None)
    asked = _asked(run, instance, start, end or now()) if start else None
    return Failed(
        what=_what(run),
        models=_models_in_words(run, asked),
        at=end if end and now() - end > LATE else None,
        reason=_reason(run, instance),
        ended=read_ended(open_journal(settings), asked) if asked else (),
        link=f"{settings.automation.ui_url}/runs/{run.run_id}",
    )


def _moment(timestamp: float | None) -> datetime | None:
    return None if timestamp is None else datetime.fromtimestamp(timestamp, UTC)


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


def _asked(
    run: dg.DagsterRun, instance: dg.DagsterInstance, start: datetime, end: datetime
) -> Asked | None:
    """Which evaluations the run had to do with; None if it asked nobody anything."""
    begun = _events(run, instance, dg.DagsterEventType.STEP_START)
    steps = {event.step_key for event in begun}
    models = models_named(run.tags, instance.get_dynamic_partitions(MODELS))
    # A run that predicts but names no model has failed for that reason.
    if not steps & PAYING or ("predictions" in steps and not models):
        return None
    parts = instance.get_runs(dg.RunsFilter(tags={PART_OF: run.run_id}))
    own = [run.run_id, *filter(None, [run.root_run_id]), *(part.run_id for part in parts)]
    # As the tables have it: UTC, and not said.
    return Asked(
        run_ids=tuple(own),
        models=tuple(models) or None,
        since=start.replace(tzinfo=None),
        until=end.replace(tzinfo=None),
        predicted=bool(steps & ASKING),
    )


def _reason(run: dg.DagsterRun, instance: dg.DagsterInstance) -> str:
    """What the last step that failed says; or Dagster, if it was none."""
    if failed := _events(run, instance, dg.DagsterEventType.STEP_FAILURE):
        return f"{failed[-1].step_key}: {_words(cause_of(failed[-1]))}"
    closed = _events(run, instance, dg.DagsterEventType.RUN_FAILURE)
    if closed and (cause := cause_of(closed[-1])):
        return _words(cause)
    if closed and closed[-1].message and closed[-1].message != NOTHING_TOLD:
        return closed[-1].message
    # The last engine event names the signal that killed a process.
    noted = _events(run, instance, dg.DagsterEventType.ENGINE_EVENT)
    return (noted[-1].message if noted else None) or NOTHING_TOLD


def _words(cause: Cause | None) -> str:
    if cause is None:
        return "it failed"
    return "it was interrupted" if cause.is_interruption else cause.words


def _events(
    run: dg.DagsterRun, instance: dg.DagsterInstance, kind: dg.DagsterEventType
) -> Sequence[dg.DagsterEvent]:
    found = instance.get_records_for_run(run.run_id, of_type=kind).records
    events = (record.event_log_entry.dagster_event for record in found)
    return [event for event in events if event is not None]


def cause_of(event: dg.DagsterEvent) -> Cause | None:
    """Return what a failure came from, if Dagster knows."""
    if event.event_specific_data is None:
        return None
    of_step = event.is_step_failure
    error = event.step_failure_data.error if of_step else event.job_failure_data.error
    while error and error.cause:
        error = error.cause
    if error is None:
        return None
    # Dagster puts the exception's class before its words.
    return Cause(error.message.strip().split(": ", 1)[-1], error.cls_name in INTERRUPTIONS)

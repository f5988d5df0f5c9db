"""Messages about failed runs, and the webhook they are posted to."""

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import dagster as dg
import httpx
from dagster_shared.error import SerializableErrorInfo
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
from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.records.base import Record, now
from eval_pipeline.results.runs import Asked, Ended, read_ended
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings

LIMIT_S = 10.0
ATTEMPTS = 2
WAIT_S = 1.0
LONGEST_REASON = 500
MOST_MODELS = 10
# What they log names the address, which is the webhook's secret.
TALKATIVE = ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy", "socks")))
REASONS = (
    (ConnectionRefusedError, "connection refused"),
    (socket.gaierror, "its host is not known"),
    (ssl.SSLError, "no secure connection"),
    (httpx.ConnectError, "no connection"),
    (httpx.RequestError, "the connection broke"),
)
"""Not in the words of the errors, which may name the address. The first that fits."""

BAD_MESSAGE = (400, 413, 422)
"""How a webhook says that there is something wrong with the message, and not with itself."""


class NotifyError(Exception):
    """The message was not delivered; the sentence does not name the address."""

    def __init__(self, trouble: "Trouble") -> None:
        super().__init__(f"The webhook did not take the message: {trouble.words}.")
        self.never = trouble.never


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


class Trouble(NamedTuple):
    """Why the webhook did not take the message, and whether it may the next time, or never will."""

    words: str
    transient: bool
    never: bool = False


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
        raise NotifyError(trouble)


async def _deliver(address: str, body: dict[str, str]) -> Trouble | None:
    with _unlogged():
        async with httpx.AsyncClient(timeout=LIMIT_S) as client:
            trouble = await _attempt(client, address, body)
            for _ in range(ATTEMPTS - 1):
                if trouble is None or not trouble.transient:
                    break
                await asyncio.sleep(WAIT_S)
                trouble = await _attempt(client, address, body)
    return trouble


async def _attempt(client: httpx.AsyncClient, address: str, body: dict[str, str]) -> Trouble | None:
    """No redirect is followed, and of the answer nothing but its status is read."""
    try:
        async with (
            asyncio.timeout(LIMIT_S),
            client.stream("POST", address, json=body, follow_redirects=False) as response,
        ):
            status = response.status_code
    except (TimeoutError, httpx.TimeoutException):
        return Trouble(f"no answer within {LIMIT_S:g} s", transient=True)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        return Trouble("EVALS_WEBHOOK_URL is no address", transient=False)
    except httpx.RequestError as error:
        return Trouble(_why(error), transient=True)
    if httpx.codes.is_success(status):
        return None
    again = status == httpx.codes.TOO_MANY_REQUESTS or httpx.codes.is_server_error(status)
    return Trouble(f"status {status}", transient=again, never=status in BAD_MESSAGE)


def _why(error: httpx.RequestError) -> str:
    chain: list[BaseException] = [error]
    while (deeper := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(deeper)
    return next(words for kind, words in REASONS if any(isinstance(link, kind) for link in chain))


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keeps what this thread does with the address out of the log."""
    here = threading.get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    with ExitStack() as stack:
        for logger in map(logging.getLogger, TALKATIVE):
            logger.addFilter(elsewhere)
            stack.callback(logger.removeFilter, elsewhere)
        yield


NOTHING_TOLD = "This run has been marked as failed from outside the execution context."
"""What Dagster says of a run that somebody else has closed without a word."""
ASKING = {"predictions", "every_model"}
PAYING = {"judged", "judge_reliability", "run_reports", *ASKING}
"""The steps that ask models: what has become of their questions is worth telling."""
# The second is what the first becomes when the run was part of another one.
INTERRUPTIONS = {"DagsterExecutionInterruptedError", "KeyboardInterrupt"}
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


def innermost(error: SerializableErrorInfo | None) -> SerializableErrorInfo | None:
    """The error that the others came from."""
    while error and error.cause:
        error = error.cause
    return error


def is_interruption(error: SerializableErrorInfo | None) -> bool:
    """Whether somebody ended the run, and nothing went wrong."""
    return error is not None and error.cls_name in INTERRUPTIONS


def words_of(error: SerializableErrorInfo | None) -> str:
    """What the error says; Dagster puts the exception's class before its words."""
    return error.message.strip().split(": ", 1)[-1] if error else "it failed"

"""What people are told of a failed run: a message in Slack's format, and the webhook it goes to."""

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import NamedTuple

import httpx
from pydantic import SecretStr

from eval_pipeline.record import Record
from eval_pipeline.results.runs import Ended
from eval_pipeline.runtime import run_async

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

"""Requests for replies that fit a schema, in the format that enforces it best."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar

from pydantic import JsonValue

from eval_pipeline.gateways.chat import Asked, ChatReply, ChatRequest, ProviderError
from eval_pipeline.records.model import Model
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import ReplyFormat, Usage
from eval_pipeline.runtime import Halted

# The outcomes when a server refuses a format; a gateway may find no provider that takes tools.
_REFUSALS: dict[ReplyFormat, frozenset[Outcome]] = {
    "json_schema": frozenset({Outcome.BAD_REQUEST}),
    "tool": frozenset({Outcome.BAD_REQUEST, Outcome.UNKNOWN_MODEL}),
    "text": frozenset(),
}
_WHY_NONE = {
    Outcome.TRUNCATED: "The {who}'s reply was cut off at the token limit.",
    Outcome.TRUNCATED_THINKING: "The token limit was reached while the {who} was thinking.",
    Outcome.REFUSED: "The {who} refused to reply.",
    Outcome.CONTENT_FILTER: "The {who}'s reply was withheld by a content filter.",
}
_UNREAD = "The {who}'s reply is not the {what} it was asked for. It begins: "
_FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL | re.IGNORECASE)

V = TypeVar("V")
Ask = Callable[[ChatRequest], Awaitable[Asked]]
Write = Callable[[ReplyFormat], ChatRequest]


class UnfitReplyError(Exception):
    """A reply that fits the schema and still cannot be used; the message says why."""


@dataclass(frozen=True)
class ReplySchema(Generic[V]):
    """The value that is asked for, the role of the model, and a function that reads replies."""

    who: str
    what: str
    # Returns None for a reply that does not fit; raises an UnfitReplyError for an unusable one.
    read: Callable[[str], V | None]


@dataclass(frozen=True)
class ParsedReply(Generic[V]):
    """The value that was asked for, or the error in its place; with the call it came from."""

    value: V | None
    outcome: Outcome
    error: str | None
    reply: ChatReply | None
    reply_format: ReplyFormat
    attempts: int
    usage: Usage


def formats_of(model: Model) -> tuple[ReplyFormat, ...]:
    """Return the formats in which a model may be asked to reply, the best one first."""
    if not model.json_schema:
        return ("text",)
    # The messages API knows a schema only as that of a tool.
    return ("tool", "text") if model.dialect == "messages" else ("json_schema", "tool", "text")


@dataclass
class ReplyFormats:
    """The formats to ask one model for, without those that failed while a later one worked."""

    formats: tuple[ReplyFormat, ...]
    _best: int | None = None

    def to_try(self) -> tuple[ReplyFormat, ...]:
        """Return those from the best that has worked; where none has, all of them."""
        return self.formats[self._best or 0 :]

    def worked(self, reply_format: ReplyFormat) -> None:
        """Note that it worked; that a better one did not may have been about one reply only."""
        place = self.formats.index(reply_format)
        self._best = place if self._best is None else min(place, self._best)


def form_request(
    model: Model,
    text: str,
    schema: dict[str, JsonValue],
    *,
    max_tokens: int | None,
    reply_format: ReplyFormat,
) -> ChatRequest:
    """Return a request for a reply of that schema, as far as the format enforces it."""
    return ChatRequest(
        model=model.request_name,
        messages=({"role": "user", "content": text},),
        temperature=0 if model.temperature else None,
        max_tokens=max_tokens,
        stream=False,
        json_schema=schema if reply_format == "json_schema" else None,
        tool=schema if reply_format == "tool" else None,
    )


def read_json(text: str) -> Any:
    """Read a reply that is one JSON value, fenced or not; raise a ValueError if it is none."""
    fenced = _FENCED.fullmatch(text.strip())
    return json.loads(fenced[1] if fenced else text, object_pairs_hook=_without_repetition)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that occurs twice, of which JSON would take the last value."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name occurs twice")
    return fields


@dataclass(frozen=True)
class _Attempt(Generic[V]):
    """The result of asking in one format."""

    asked: Asked
    reply_format: ReplyFormat
    value: V | None = None
    unfit: str | None = None

    @property
    def is_refused(self) -> bool:
        """Return whether the server does not take the format."""
        error = self.asked.error
        return error is not None and error.outcome in _REFUSALS[self.reply_format]

    @property
    def next_format_may_help(self) -> bool:
        """Return whether the format may be to blame that there is no value."""
        replied = self.asked.reply is not None and self.unfit is None
        # A format that was ignored shows in such replies; others would be the same in any.
        return self.is_refused or (
            replied and self.asked.outcome in (Outcome.OK, Outcome.TRUNCATED)
        )


async def ask_for(
    schema: ReplySchema[V], ask: Ask, write: Write, formats: ReplyFormats
) -> ParsedReply[V]:
    """Ask in one format after the other; a reply that does not fit is kept as a failure.

    There is always a second reply to hope for, in the next format or else in the same.
    """
    attempts: list[_Attempt[V]] = []
    to_try = list(formats.to_try())
    try:
        while True:
            last = _read(schema, await ask(write(to_try[0])), to_try[0])
            attempts.append(last)
            if last.value is not None:
                formats.worked(last.reply_format)
                break
            if last.next_format_may_help and len(to_try) > 1:
                to_try.pop(0)
            elif last.asked.reply is None or len(_replied(attempts)) > 1:
                break
    except Halted:
        if not _replied(attempts):
            raise  # what a reply cost is to be kept; where there is none, nothing is
    return _result(schema, attempts)


def _read(schema: ReplySchema[V], asked: Asked, reply_format: ReplyFormat) -> _Attempt[V]:
    """Read a whole reply only: what was cut off may look like another value."""
    if asked.reply is None or asked.outcome is not Outcome.OK:
        return _Attempt(asked, reply_format)
    try:
        return _Attempt(asked, reply_format, schema.read(asked.reply.text))
    except UnfitReplyError as unfit:
        return _Attempt(asked, reply_format, unfit=str(unfit))


def _replied(attempts: Sequence[_Attempt[V]]) -> list[_Attempt[V]]:
    return [one for one in attempts if one.asked.reply is not None]


def _result(schema: ReplySchema[V], attempts: Sequence[_Attempt[V]]) -> ParsedReply[V]:
    """Return the value, or the last error that is not about a format; with the last reply."""
    last = next((one for one in reversed(attempts) if not one.is_refused), attempts[-1])
    heard = (_replied(attempts) or [last])[-1]
    error = None if heard.value is not None else _why_none(schema, last)
    return ParsedReply(
        value=heard.value,
        outcome=error.outcome if error else Outcome.OK,
        error=str(error) if error else None,
        reply=heard.asked.reply,
        reply_format=heard.reply_format,
        attempts=sum(one.asked.attempts for one in attempts),
        usage=reduce(Usage.plus, (one.asked.usage for one in attempts)),
    )


def _why_none(schema: ReplySchema[V], attempt: _Attempt[V]) -> ProviderError:
    asked = attempt.asked
    if asked.reply is None:
        return asked.error or ProviderError(Outcome.EMPTY, "No reply.")
    said = _WHY_NONE.get(asked.outcome, _UNREAD).format(who=schema.who, what=schema.what)
    if asked.outcome not in _WHY_NONE:
        said += " ".join(asked.reply.text.split())[:100]
    return ProviderError(Outcome.JUDGE_UNPARSABLE, attempt.unfit or said)

"""Requests to chat models, their replies and their errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import NOTHING_USED, Usage


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to one model, without anything secret."""

    model: str
    messages: tuple[dict[str, JsonValue], ...]
    temperature: float | None = None
    max_tokens: int | None = None
    stream: bool = True
    json_schema: dict[str, JsonValue] | None = None
    # A function of that schema which the model has to call: its arguments are then the reply.
    tool: dict[str, JsonValue] | None = None
    # Lets the server search the web for the model before it answers.
    web_search: bool = False
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    def fields(self) -> dict[str, JsonValue]:
        """Return all of it as plain values."""
        said = {one.name: getattr(self, one.name) for one in fields(self)}
        # Left out where they say nothing, so that earlier requests are still the same.
        empty = [name for name in ("tool", "web_search") if not said[name]]
        return {name: value for name, value in said.items() if name not in empty}


# Reasons of servers for a reply cut at the token limit, and for one withheld by a filter.
_CUT_SHORT = {
    *("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"),
    "model_context_window_exceeded",
}
_FILTERED = {"content_filter", "sensitive", "SAFETY"}


class ChatReply(NamedTuple):
    """A whole reply; a stream that broke off never becomes one."""

    text: str
    latency_s: float
    reasoning: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    usage: Usage = NOTHING_USED
    generation_id: str | None = None
    served_by: str | None = None
    model_reported: str | None = None
    system_fingerprint: str | None = None
    first_token_s: float | None = None

    @property
    def outcome(self) -> Outcome:
        """Return what became of the question."""
        if self.refusal or self.finish_reason == "refusal":
            return Outcome.REFUSED
        if self.finish_reason in _FILTERED:
            return Outcome.CONTENT_FILTER
        has_text = bool(self.text.strip())
        if self.finish_reason in _CUT_SHORT:
            thought = self.reasoning or self.usage.reasoning_tokens
            return Outcome.TRUNCATED_THINKING if thought and not has_text else Outcome.TRUNCATED
        return Outcome.OK if has_text else Outcome.EMPTY


class ProviderError(Exception):
    """Why there is no reply, in words that are safe to keep."""

    def __init__(
        self,
        outcome: Outcome,
        message: str,
        *,
        transient: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.transient = transient
        self.retry_after = retry_after


class ChatProvider(Protocol):
    """Anything that can be asked."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return a whole reply or raise a ProviderError, after one attempt."""
        ...


class Asked(NamedTuple):
    """The result of asking: a reply or the last error, and what all attempts together used."""

    reply: ChatReply | None
    error: ProviderError | None
    attempts: int
    usage: Usage

    @property
    def outcome(self) -> Outcome:
        """Return what became of the question."""
        if self.reply is not None:
            return self.reply.outcome
        return self.error.outcome if self.error else Outcome.EMPTY

    @property
    def size(self) -> int:
        """Return about how many characters of text it has."""
        reply = self.reply
        return 0 if reply is None else len(reply.text) + len(reply.reasoning or "")

"""What it means to ask a chat model: request, reply, error, and asking again when that can help."""

import asyncio
import random
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from eval_pipeline.providers.limits import RetryPolicy
from eval_pipeline.records import Outcome, Record, Usage


class ChatRequest(Record):
    """One question to one model, without anything secret."""

    model: str
    messages: tuple[dict[str, JsonValue], ...]
    temperature: float | None = None
    max_tokens: int | None = None
    stream: bool = True
    json_schema: dict[str, JsonValue] | None = None
    extra: dict[str, JsonValue] = {}


class ChatReply(Record):
    """A whole reply; a stream that broke off never becomes one."""

    text: str
    reasoning: str | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    usage: Usage = Usage()
    generation_id: str | None = None
    served_by: str | None = None
    model_reported: str | None = None
    latency_s: float
    first_token_s: float | None = None

    @property
    def outcome(self) -> Outcome:
        """What became of the question."""
        if self.refusal:
            return Outcome.REFUSED
        if self.finish_reason == "content_filter":
            return Outcome.CONTENT_FILTER
        if self.finish_reason == "length":
            return Outcome.TRUNCATED
        return Outcome.OK if self.text.strip() else Outcome.EMPTY


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
        """One attempt: a whole reply, or a ProviderError."""
        ...


class Asked(NamedTuple):
    """What came of asking: a reply or the last error, and what all attempts together used."""

    reply: ChatReply | None
    error: ProviderError | None
    attempts: int
    usage: Usage


async def ask(provider: ChatProvider, request: ChatRequest, policy: RetryPolicy) -> Asked:
    """Asks until there is a reply or the policy gives up; an empty reply is asked again too."""
    attempt, usage = 1, Usage()
    while True:
        try:
            reply = await provider.complete(request)
        except ProviderError as error:
            failure = error
        else:
            usage = usage.plus(reply.usage)
            if reply.outcome is not Outcome.EMPTY:
                return Asked(reply, None, attempt, usage)
            failure = ProviderError(Outcome.EMPTY, "The reply has no text.", transient=True)
        wait = policy.wait_after(
            attempt,
            transient=failure.transient,
            retry_after=failure.retry_after,
            jitter=random.random(),  # noqa: S311
        )
        if wait is None:
            return Asked(None, failure, attempt, usage)
        await asyncio.sleep(wait)
        attempt += 1

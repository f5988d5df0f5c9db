"""Requests to a model: an item becomes a request, and what comes of it a prediction."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from secrets import token_hex
from typing import Any, Self

from pydantic import JsonValue

from eval_pipeline.evaluation.budget import (
    BudgetReached,
    Forecast,
    RunBudget,
    price_warning,
    with_cost,
)
from eval_pipeline.evaluation.state import ReplyKey
from eval_pipeline.evaluation.workers import WorkerPool
from eval_pipeline.gateways.chat import Asked, ChatProvider, ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.dialects.messages import MAX_TOKENS
from eval_pipeline.gateways.limits import RetryPolicy
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.gateways.rate_limiter import RateLimiter
from eval_pipeline.hashing import canonical, fingerprint_of_text
from eval_pipeline.records.base import now
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import NOTHING_USED, Prediction, Usage
from eval_pipeline.runtime import Halted
from eval_pipeline.settings.sections import Experiment
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.kinds import Prompts


@dataclass(frozen=True)
class ModelClient:
    """How one model is asked: through whom, with which retries, how fast and at what price."""

    provider: ChatProvider
    policy: RetryPolicy
    pace: RateLimiter
    forecast: Forecast

    async def ask(self, request: ChatRequest, pool: WorkerPool) -> Asked:
        """Ask until there is a reply or the policy gives up; an empty reply is retried too."""
        attempt, usage = 0, NOTHING_USED
        # To be turned away is counted apart from failing.
        tries: Counter[bool] = Counter()
        began: float | None = None
        failure: ProviderError | None = None
        while True:
            try:
                reserved = await self._enter(request, pool)
            except Halted:
                if failure is None:
                    raise
                return Asked(None, failure, attempt, usage)
            # Its time begins when it is asked, not while it waits for its turn.
            began = began or time.monotonic()
            attempt += 1
            try:
                reply, used = await self._exchange(request, *reserved, pool.budget)
            except ProviderError as error:
                failure = error
            else:
                usage = used if attempt == 1 else usage.plus(used)
                if reply.outcome is not Outcome.EMPTY:
                    return Asked(reply, None, attempt, usage)
                failure = ProviderError(Outcome.EMPTY, "The reply has no text.", transient=True)
            tries[failure.outcome is Outcome.RATE_LIMITED] += 1
            if not await self._may_retry(tries, failure, began, pool):
                return Asked(None, failure, attempt, usage)

    async def _enter(self, request: ChatRequest, pool: WorkerPool) -> tuple[float, float]:
        """Wait until a request may be made and paid for; return the reserved tokens and USD."""
        tokens = self.forecast.expect(request).tokens if self.pace.is_metered else 0.0
        await self.pace.enter(pool.halt, tokens=tokens)
        try:
            usd = await pool.budget.reserve(partial(self.forecast.expect, request), pool.halt)
        except BaseException as error:
            self.pace.leave()
            if isinstance(error, BudgetReached):
                pool.tally.budget_reached = True
                pool.stop(str(error), failed=False)
            raise
        return tokens, usd

    async def _exchange(
        self, request: ChatRequest, tokens: float, usd: float, budget: RunBudget
    ) -> tuple[ChatReply, Usage]:
        """Make one request, with what it cost, and count it in how fast the next ones go."""
        started, cost = time.monotonic(), 0.0
        try:
            reply = await self.provider.complete(request)
            usage = with_cost(reply.usage, self.forecast.prices)
            cost = usage.cost_usd or 0.0
            self.forecast.learn(usage)
            self.pace.answered(started, tokens_off=(usage.tokens or tokens) - tokens)
        except ProviderError as error:
            self.forecast.fail()
            if error.outcome is Outcome.RATE_LIMITED:
                self.pace.turned_away(started, error.retry_after)
            raise
        finally:
            budget.settle(usd, cost)
            self.pace.leave()
        return reply, usage

    async def _may_retry(
        self, tries: Counter[bool], failure: ProviderError, began: float, pool: WorkerPool
    ) -> bool:
        """Wait as long as it takes; not if that is too long or all is to stop."""
        limited = failure.outcome is Outcome.RATE_LIMITED
        wait = self.policy.wait_after(
            tries[limited],
            limited=limited,
            transient=failure.transient,
            retry_after=failure.retry_after,
            jitter=random.random(),  # noqa: S311
            elapsed_s=time.monotonic() - began,
        )
        if wait is None:
            return False
        with suppress(Halted):
            await pool.sleep_before_retry(wait)
            return True
        return False


def model_client(model: Model, settings: Settings, gateways: Gateways, most: int) -> ModelClient:
    """Return how a model is asked: by the settings, with at most so many requests at once."""
    policy = RetryPolicy(
        **settings.requests.model_dump(exclude={"timeout_s", "stop_after_failures"})
    )
    pace = gateways.pace(model, most)
    return ModelClient(gateways.provider(model), policy, pace, Forecast(model.prices))


@dataclass(frozen=True)
class RequestBuilder:
    """Turns items into requests to one model, and what it replies into predictions."""

    model: Model
    experiment: Experiment
    prompts: Prompts
    # What makes an id unlike all others costs more than the rest of it, so it is drawn once.
    ids: Iterator[str] = field(
        default_factory=lambda: map(f"{token_hex(8)}{{:016x}}".format, count())
    )
    # By kind and sample, a request's text around the last message, in which they differ.
    _around: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, settings: Settings, experiment_name: str | None = None) -> Self:
        """Return one that asks as an experiment says, by default that of the settings."""
        experiment = settings.experiments[experiment_name or settings.experiment]
        override = settings.override(model)
        return cls(model, experiment.with_override(override), Prompts.of(settings, experiment))

    def request_hash(self, item: Item, sample: int) -> str:
        """Return a hash that is equal for requests that ask for the same in the same way."""
        return self._hash(self.request(item, sample), item, sample)

    def reply_hash(self, items: Mapping[ItemKey, Item]) -> Callable[[ReplyKey], str]:
        """Return the `request_hash` of replies by their names."""
        return lambda reply: self.request_hash(items[reply.key], reply.sample)

    def _hash(self, request: ChatRequest, item: Item, sample: int) -> str:
        asked = (item.kind, sample)
        if asked not in self._around:
            *others, last = request.messages
            mark = token_hex(16)
            fields = replace(request, messages=(*others, {**last, "content": mark})).fields()
            if self.model.dialect != "chat_completions":
                fields["dialect"] = self.model.dialect
            before, _, after = canonical(fields).partition(canonical(mark))
            self._around[asked] = before, after
        before, after = self._around[asked]
        return fingerprint_of_text(before + canonical(request.messages[-1]["content"]) + after)

    def warnings(self, settings: Settings, samples: int) -> Iterator[str]:
        """Yield what the numbers of this run will not show by themselves."""
        model = self.model
        if warning := price_warning(model, settings.budget):
            yield warning
        if model.provider is None and settings.gateway(model.gateway).routes:
            yield (
                f"{model.id} is not pinned to a provider, so its answers may come from several; "
                "the column served_by tells from which."
            )
        if samples > 1 and self._temperature == 0:
            yield f"{model.id}: several samples at temperature 0 measure only the server's noise."

    def prediction_maker(
        self, item: Item, sample: int, run_id: str, request: ChatRequest, asked: Asked
    ) -> Callable[[], Prediction]:
        """Return what makes the record of an answer that has just come."""
        finished_at = now()
        return lambda: Prediction(
            prediction_id=next(self.ids),
            run_id=run_id,
            model=self.model.id,
            suite=item.suite,
            item_id=item.id,
            sample=sample,
            attempts=asked.attempts,
            request_hash=self._hash(request, item, sample),
            finished_at=finished_at,
            usage=asked.usage,
            outcome=asked.outcome,
            **_result(asked, self.model),
        )

    @cached_property
    def _token_limit(self) -> int | None:
        """The limit to send: where there has to be one, not more than the model can do."""
        limit, most = self.experiment.max_tokens, self.model.max_output_tokens
        if limit is None and most is not None and self.model.dialect == "messages":
            return min(most, MAX_TOKENS)
        return limit

    @cached_property
    def _temperature(self) -> float | None:
        return self.experiment.temperature if self.model.temperature else None

    def _extra(self, sample: int) -> Mapping[str, JsonValue]:
        """Give every sample a seed of its own; the first is asked as if alone."""
        extra = self.experiment.extra
        seed = extra.get("seed")
        return {**extra, "seed": seed + sample} if type(seed) is int else extra

    def request(self, item: Item, sample: int) -> ChatRequest:
        return ChatRequest(
            model=self.model.request_name,
            messages=self.prompts.messages(item, self.model),
            temperature=self._temperature,
            max_tokens=self._token_limit,
            stream=self.experiment.stream and self.model.streaming,
            web_search=self.experiment.web_search,
            extra=self._extra(sample) if sample else self.experiment.extra,
        )


def _result(asked: Asked, model: Model) -> dict[str, Any]:
    reply = asked.reply
    if reply is None:
        return {"error": str(asked.error)}
    first = reply.first_token_s
    return {
        "answer": reply.text or reply.refusal,
        "reasoning": reply.reasoning,
        "finish_reason": reply.finish_reason,
        "latency_s": reply.latency_s,
        "first_token_s": first,
        "generation_s": None if first is None else reply.latency_s - first,
        "generation_id": reply.generation_id,
        "served_by": reply.served_by or model.provider,
        "model_reported": reply.model_reported,
        "system_fingerprint": reply.system_fingerprint,
    }

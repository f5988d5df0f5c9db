"""One model and how it is asked: an item becomes a request, and what comes of it a prediction."""

import logging
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from secrets import token_hex
from typing import Any, NamedTuple

from pydantic import JsonValue

from eval_pipeline.evaluation.budget import Account, BudgetReached, Forecast, priced, unpriced
from eval_pipeline.evaluation.state import Pending
from eval_pipeline.evaluation.workers import Shift
from eval_pipeline.gateways.chat import Asked, ChatProvider, ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.dialects.messages import MAX_TOKENS
from eval_pipeline.gateways.limits import RetryPolicy
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.gateways.rate_limiter import RateLimiter
from eval_pipeline.hashing import canonical, fingerprint_of_text
from eval_pipeline.journal import JournalWriter
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
class Asking:
    """How one model is asked: through whom, how patiently, how fast and at what price."""

    provider: ChatProvider
    policy: RetryPolicy
    pace: RateLimiter
    forecast: Forecast

    async def ask(self, request: ChatRequest, shift: Shift) -> Asked:
        """Asks until there is a reply or the policy gives up; an empty reply is asked again too."""
        attempt, usage = 0, NOTHING_USED
        # To be turned away is counted apart from failing.
        tries: Counter[bool] | None = None
        began: float | None = None
        failure: ProviderError | None = None
        while True:
            try:
                turn = await self._enter(request, shift)
            except Halted:
                if failure is None:
                    raise
                return Asked(None, failure, attempt, usage)
            # Its time begins when it is asked, not while it waits for its turn.
            began = began or time.monotonic()
            attempt += 1
            try:
                reply, used = await self._exchange(request, turn, shift.account)
            except ProviderError as error:
                failure = error
            else:
                usage = used if attempt == 1 else usage.plus(used)
                if reply.outcome is not Outcome.EMPTY:
                    return Asked(reply, None, attempt, usage)
                failure = ProviderError(Outcome.EMPTY, "The reply has no text.", transient=True)
            tries = tries or Counter()
            tries[failure.outcome is Outcome.RATE_LIMITED] += 1
            if not await self._may_try_again(tries, failure, began, shift):
                return Asked(None, failure, attempt, usage)

    async def _enter(self, request: ChatRequest, shift: Shift) -> "_Turn":
        """Waits until a request may be made, and may be paid for."""
        tokens = self.forecast.expect(request).tokens if self.pace.is_metered else 0.0
        await self.pace.enter(shift.halt, tokens=tokens)
        if not shift.account.purses:
            return _Turn(tokens, 0.0)
        try:
            usd = await shift.account.reserve(partial(self.forecast.expect, request), shift.halt)
        except BudgetReached as reached:
            self.pace.leave()
            shift.stop_for_budget(str(reached))
            raise
        except BaseException:
            self.pace.leave()
            raise
        return _Turn(tokens, usd)

    async def _exchange(
        self, request: ChatRequest, turn: "_Turn", account: Account
    ) -> tuple[ChatReply, Usage]:
        """One request, with what it cost, and counted in how fast the next ones go."""
        started, cost = time.monotonic(), 0.0
        try:
            reply = await self.provider.complete(request)
            usage = priced(reply.usage, self.forecast.prices)
            cost = usage.cost_usd or 0.0
            self.forecast.learn(usage)
            self.pace.answered(started, tokens_off=(usage.tokens or turn.tokens) - turn.tokens)
        except ProviderError as error:
            self.forecast.fail()
            if error.outcome is Outcome.RATE_LIMITED:
                self.pace.turned_away(started, error.retry_after)
            raise
        finally:
            account.settle(turn.usd, cost)
            self.pace.leave()
        return reply, usage

    async def _may_try_again(
        self, tries: Counter[bool], failure: ProviderError, began: float, shift: Shift
    ) -> bool:
        """Waits as long as it takes; not if that is too long or all is to stop."""
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
        try:
            await shift.rest(wait)
        except Halted:
            return False
        return True


def how_to_ask(model: Model, settings: Settings, gateways: Gateways, most: int) -> Asking:
    """Through whom a model is asked, how patiently, how fast and at what price."""
    requests = settings.requests
    policy = RetryPolicy(
        attempts=requests.attempts,
        attempts_when_limited=requests.attempts_when_limited,
        first_wait_s=requests.first_wait_s,
        longest_wait_s=requests.longest_wait_s,
        total_s=requests.total_s,
    )
    return Asking(
        gateways.provider(model), policy, gateways.pace(model, most), Forecast(model.prices)
    )


class _Turn(NamedTuple):
    """What was set aside for one request."""

    tokens: float
    usd: float


log = logging.getLogger(__name__)
ITEMS_TO_ESTIMATE_BY = 50


@dataclass(frozen=True)
class Asker:
    """Turns an item into a prediction by asking one model."""

    model: Model
    asking: Asking
    experiment: Experiment
    prompts: Prompts
    hashes: "Hashes"
    # What makes an id unlike all others costs more than the rest of it, so it is drawn once.
    ids: str = field(default_factory=lambda: token_hex(8))
    numbers: Iterator[int] = field(default_factory=count)

    @classmethod
    def of(cls, model: Model, settings: Settings, gateways: Gateways) -> "Asker":
        experiment = settings.experiments[settings.experiment]
        return cls(
            model=model,
            asking=how_to_ask(model, settings, gateways, settings.concurrency.num_workers),
            experiment=experiment.with_override(settings.override(model)),
            prompts=Prompts.of(settings, experiment),
            hashes=Hashes(model),
        )

    def request_hash(self, item: Item, sample: int) -> str:
        """Equal for requests that ask for the same in the same way."""
        return self.hashes.of(self.request(item, sample), item, sample)

    def estimate(self, pending: Pending, items: Mapping[ItemKey, Item]) -> float | None:
        """What asking all of them will cost, judged by the length of a few; None if unpriced."""
        if not self.model.prices.known:
            return None
        step = len(pending) // ITEMS_TO_ESTIMATE_BY + 1
        few = [pending[index] for index in range(0, len(pending), step)]
        try:
            requests = [self.request(items[key], sample) for key, sample in few]
            guesses = [self.asking.forecast.guess(request) for request in requests]
        except Exception:  # an item that can not be asked must not cost the others
            log.exception("%s: what it will cost could not be estimated.", self.model.id)
            return None
        return sum(guess.cost_usd for guess in guesses) / max(len(few), 1) * len(pending)

    def warnings(self, settings: Settings, samples: int) -> Iterator[str]:
        """What the numbers of this run will not show by themselves."""
        model, budget = self.model, settings.budget
        if warning := unpriced(model, budget):
            yield warning
        if model.provider is None and settings.gateway(model.gateway).routes:
            yield (
                f"{model.id} is not pinned to a provider, so its answers may come from several; "
                "the column served_by tells from which."
            )
        if samples > 1 and self._temperature == 0:
            yield f"{model.id}: several samples at temperature 0 measure only the server's noise."

    async def predict(
        self, item: Item, sample: int, run_id: str, shift: Shift, writer: JournalWriter[Prediction]
    ) -> None:
        """Asks, and hands the journal what it needs to make a prediction of it."""
        request = self.request(item, sample)
        asked = await self.asking.ask(request, shift)
        outcome, finished_at = asked.outcome, now()

        def make() -> Prediction:
            return Prediction(
                prediction_id=f"{self.ids}{next(self.numbers):016x}",
                run_id=run_id,
                model=self.model.id,
                suite=item.suite,
                item_id=item.id,
                sample=sample,
                attempts=asked.attempts,
                request_hash=self.hashes.of(request, item, sample),
                finished_at=finished_at,
                usage=asked.usage,
                outcome=outcome,
                **_result(asked, self.model),
            )

        shift.heed(outcome, f"{self.model.id}: {asked.error or outcome}")
        await writer.post(make, shift.landed, size=asked.size)

    @cached_property
    def _token_limit(self) -> int | None:
        """Where a limit has to be sent, it is not more than the model can do."""
        limit, most = self.experiment.max_tokens, self.model.max_output_tokens
        if limit is None and most is not None and self.model.dialect == "messages":
            return min(most, MAX_TOKENS)
        return limit

    @cached_property
    def _temperature(self) -> float | None:
        return self.experiment.temperature if self.model.temperature else None

    @cached_property
    def _stream(self) -> bool:
        return self.experiment.stream and self.model.streaming

    def _extra(self, sample: int) -> Mapping[str, JsonValue]:
        """Where there is a seed, every sample has its own; the first is asked as if alone."""
        extra = self.experiment.extra
        match extra.get("seed"):
            case int(seed) if not isinstance(seed, bool):
                return {**extra, "seed": seed + sample}
        return extra

    def request(self, item: Item, sample: int) -> ChatRequest:
        return ChatRequest(
            model=self.model.request_name,
            messages=self.prompts.messages(item, self.model),
            temperature=self._temperature,
            max_tokens=self._token_limit,
            stream=self._stream,
            web_search=self.experiment.web_search,
            extra=self._extra(sample) if sample else self.experiment.extra,
        )


class Hashes:
    """Hashes of one model's requests: of one kind and sample they differ in the last message."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._around: dict[tuple[str, int], tuple[str, str]] = {}

    def of(self, request: ChatRequest, item: Item, sample: int) -> str:
        """Equal for requests that ask for the same in the same way."""
        asked = (item.kind, sample)
        if asked not in self._around:
            self._around[asked] = self._without_content(request)
        before, after = self._around[asked]
        return fingerprint_of_text(before + canonical(request.messages[-1]["content"]) + after)

    def _without_content(self, request: ChatRequest) -> tuple[str, str]:
        """Before and after what differs: a text that is not made anew for each request."""
        *others, last = request.messages
        mark = token_hex(16)
        fields = replace(request, messages=(*others, {**last, "content": mark})).fields()
        if self._model.dialect != "chat_completions":
            fields["dialect"] = self._model.dialect
        before, _, after = canonical(fields).partition(canonical(mark))
        return before, after


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

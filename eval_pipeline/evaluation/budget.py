"""The cost of requests, the money spent, and the budgets that end the asking."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import AwareDatetime, ConfigDict

from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.rate_limiter import StopSignal
from eval_pipeline.journal import DIAGNOSES, JUDGED, PREDICTIONS, REJUDGED, Journal, Stream
from eval_pipeline.records.base import Record, now
from eval_pipeline.records.model import Model, Prices
from eval_pipeline.records.prediction import Usage
from eval_pipeline.records.run import is_foreign
from eval_pipeline.runtime import Halted
from eval_pipeline.settings.sections import Budget

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_IMAGE = 1000
TOKENS_PER_REPLY = 1000
"""The tokens of a reply until there is one to estimate by."""
FAILURES_TO_GO_ON_AFTER = 5


def with_cost(usage: Usage, prices: Prices) -> Usage:
    """Return usage with its cost: the gateway's own figure, else by the catalog's prices."""
    if usage.cost_usd is not None or prices.prompt is None or prices.completion is None:
        return usage
    if usage.input_tokens is None or usage.output_tokens is None:
        return usage
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    thought = min(usage.reasoning_tokens or 0, usage.output_tokens)
    # Gateways say 0 where they have no price of its own for these.
    cached_price = prices.cached or prices.prompt
    thinking_price = prices.reasoning or prices.completion
    cost = (
        (usage.input_tokens - cached) * prices.prompt
        + cached * cached_price
        + (usage.output_tokens - thought) * prices.completion
        + thought * thinking_price
        + (prices.request or 0.0)
    )
    return usage.model_copy(update={"cost_usd": cost, "cost_estimated": True})


def price_warning(model: Model, budget: Budget) -> str | None:
    """Return a warning if a budget may not hold because the model has no price."""
    if model.prices.known or all(limit is None for limit in budget.model_dump().values()):
        return None
    return (
        f"{model.id}: no price is known, so the budget holds only if the gateway reports "
        "what each answer cost; overrides can set prices."
    )


class Expected(NamedTuple):
    """The expected use of one request; `untried` if none was made yet."""

    tokens: float
    cost_usd: float
    untried: bool = False


@dataclass
class Forecast:
    """The expected use of the next request: as those before it; before there are any, by length."""

    prices: Prices
    replies: int = 0
    tokens: float = 0.0
    dearest_usd: float | None = None
    tried: bool = False
    failures: int = 0

    def expect(self, request: ChatRequest) -> Expected:
        """Return the mean of the tokens and the highest cost so far; unknown ones are guessed."""
        if self.replies and self.dearest_usd is not None:
            return Expected(self.tokens / self.replies, self.dearest_usd)
        guess = self.guess(request)
        usd = guess.cost_usd if self.dearest_usd is None else self.dearest_usd
        return Expected(guess.tokens, usd, untried=not self.tried)

    def guess(self, request: ChatRequest) -> Expected:
        """Guess from the length of the question alone."""
        usage = with_cost(estimate_usage(request), self.prices)
        return Expected(usage.tokens or 0, usage.cost_usd or 0.0)

    def fail(self) -> None:
        """Count a request without a reply; after some, nothing is to be learnt by waiting."""
        self.failures += 1
        self.tried = self.tried or self.failures >= FAILURES_TO_GO_ON_AFTER

    def learn(self, usage: Usage) -> None:
        """Count a reply."""
        self.tried = True
        self.dearest_usd = max(self.dearest_usd or 0.0, usage.cost_usd or 0.0)
        if usage.tokens is not None:
            self.replies += 1
            self.tokens += usage.tokens


def estimate_usage(request: ChatRequest) -> Usage:
    """Return the tokens that a request will use, by the length of the question alone."""
    asked = sum(_length(message.get("content")) for message in request.messages)
    replied = min(request.max_tokens or TOKENS_PER_REPLY, TOKENS_PER_REPLY)
    return Usage(input_tokens=asked, output_tokens=replied)


def _length(content: object) -> int:
    match content:
        case str():
            return len(content) // CHARACTERS_PER_TOKEN
        case list():
            return sum(map(_length, content))
        case {"type": "text", "text": str(text)}:
            return _length(text)
        case _:
            return TOKENS_PER_IMAGE


class BudgetReached(Halted):
    """No further request may be made; the message says which budget is spent."""


@dataclass
class BudgetLimit:
    """A limit for one purpose, with what was spent of it and what requests under way reserve."""

    purpose: str
    limit_usd: float
    spent_usd: float
    reserved_usd: float = 0.0
    underway: int = 0

    def has_room(self, cost_usd: float) -> bool:
        """Return whether it fits beside what is reserved; one request alone may try."""
        usd = self.spent_usd + self.reserved_usd + cost_usd
        return not self.underway or usd <= self.limit_usd

    def check(self) -> None:
        """Raise BudgetReached if the limit is spent."""
        if self.spent_usd >= self.limit_usd:
            limit, spent = f"{self.limit_usd:g}", f"{self.spent_usd:.4f}"
            raise BudgetReached(
                f"The budget of {limit} USD per {self.purpose} is spent ({spent} USD)."
            )


@dataclass
class RunBudget:
    """The limits on one run of one model, and how many of its requests are under way."""

    limits: Sequence[BudgetLimit] = ()
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    underway: int = 0

    def warning(self, usd: float | None) -> str | None:
        """Return a warning if a limit leaves less than what is needed."""
        for limit in self.limits:
            left = limit.limit_usd - limit.spent_usd
            if usd is not None and usd > left > 0:
                budget = f"the {limit.limit_usd:g} USD per {limit.purpose}"
                return f"about {usd:.2f} USD are needed, but only {left:.2f} of {budget} are left."
        return None

    async def reserve(self, expect: Callable[[], Expected], halt: StopSignal) -> float:
        """Reserve money for a request; at first and near the end it waits for the others."""
        if not self.limits:
            return 0.0
        while not self._has_room(expected := expect()):
            for limit in self.limits:
                limit.check()
            self.waiting.append(future := halt.future())
            await future
        for limit in self.limits:
            limit.check()
        self.underway += 1
        for limit in self.limits:
            limit.reserved_usd += expected.cost_usd
            limit.underway += 1
        return expected.cost_usd

    def _has_room(self, expected: Expected) -> bool:
        """The model's first request shows what the others cost; other models need not wait."""
        if expected.untried and self.underway:
            return False
        return all(limit.has_room(expected.cost_usd) for limit in self.limits)

    def settle(self, reserved_usd: float, cost_usd: float) -> None:
        """Replace what was reserved for a request by what it cost."""
        if not self.limits:
            return
        self.underway -= 1
        for limit in self.limits:
            limit.underway -= 1
            limit.reserved_usd = max(0.0, limit.reserved_usd - reserved_usd)
            limit.spent_usd += cost_usd
        while self.waiting:
            future = self.waiting.pop()
            if not future.done():
                future.set_result(None)


class UsageBrief(Record):
    """The use of one call, without the rest of its prediction, judgement or diagnosis."""

    model_config = ConfigDict(extra="ignore")

    suite: str
    usage: Usage = Usage()
    graded_by: str | None = None
    carried_from: str | None = None
    request_hash: str = ""
    finished_at: AwareDatetime

    @property
    def usd(self) -> float:
        """The cost that was paid here; reused and imported work cost nothing."""
        if self.carried_from or is_foreign(self.request_hash):
            return 0.0
        return self.usage.cost_usd or 0.0


_COSTS = [Stream(stream.name, UsageBrief) for stream in (PREDICTIONS, JUDGED, REJUDGED, DIAGNOSES)]


class SpendTracker:
    """The limits of a launch, with what the journal knows of earlier ones; judging costs too."""

    def __init__(self, budget: Budget, journal: Journal) -> None:
        self._budget = budget
        self._journal = journal
        self._limits: dict[tuple[str, ...], BudgetLimit] = {}
        self._spent: dict[str, dict[str, float]] = {}
        # Limits are shared between runs, so those that wait for one wait together.
        self._waiting: list[asyncio.Future[None]] = []

    def run_budget(self, run_id: str, model: str) -> RunBudget:
        """Return the limits on this model's run."""
        budget = self._budget
        limits = {
            ("day",): budget.usd_per_day,
            ("run", run_id): budget.usd_per_run,
            ("model", run_id, model): budget.usd_per_model,
        }
        found = [self._limit(usd, *key) for key, usd in limits.items() if usd is not None]
        return RunBudget(found, self._waiting)

    def _limit(self, limit_usd: float, purpose: str, *of: str) -> BudgetLimit:
        if (purpose, *of) not in self._limits:
            spent = self._spent_in(*of) if of else self._spent_today()
            self._limits[purpose, *of] = BudgetLimit(purpose, limit_usd, spent)
        return self._limits[purpose, *of]

    def _spent_in(self, run_id: str, model: str | None = None) -> float:
        if run_id not in self._spent:
            self._spent[run_id] = defaultdict(float)
            for stream in _COSTS:
                for each in self._journal.parts(stream):
                    costs = self._journal.read(stream, each, run_id)
                    self._spent[run_id][each] += sum(cost.usd for cost in costs)
        by_model = self._spent[run_id]
        return sum(by_model.values()) if model is None else by_model.get(model, 0.0)

    def _spent_today(self) -> float:
        midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
        return sum(
            cost.usd
            for stream in _COSTS
            for cost in self._journal.read(stream, since=midnight)
            if cost.finished_at >= midnight
        )

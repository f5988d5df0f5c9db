"""What answers cost, what was spent, and the budgets that end the asking."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from pydantic import AwareDatetime, ConfigDict

from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.rate_limiter import StopSignal
from eval_pipeline.journal import Journal, Stream
from eval_pipeline.records.base import Record, now
from eval_pipeline.records.model import Model, Prices
from eval_pipeline.records.prediction import Usage
from eval_pipeline.records.run import is_foreign
from eval_pipeline.runtime import Halted
from eval_pipeline.settings.sections import Budget

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_IMAGE = 1000
TOKENS_PER_REPLY = 1000
"""What a reply is taken to need until there is one to go by."""
FAILURES_TO_GO_ON_AFTER = 5


def priced(usage: Usage, prices: Prices) -> Usage:
    """Usage with its cost: the gateway's own figure, else an estimate from the catalog's prices."""
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
    return usage.costing(cost)


def unpriced(model: Model, budget: Budget) -> str | None:
    """That a budget may not hold, because nobody says what the model costs."""
    if model.prices.known or all(limit is None for limit in budget.model_dump().values()):
        return None
    return (
        f"{model.id}: no price is known, so the budget holds only if the gateway reports "
        "what each answer cost; overrides can set prices."
    )


class Expected(NamedTuple):
    """What one request will probably use; `untried` if none was made yet."""

    tokens: float
    cost_usd: float
    untried: bool = False


@dataclass
class Forecast:
    """What the next request will use: as those before it; before there are any, by its length."""

    prices: Prices
    replies: int = 0
    tokens: float = 0.0
    dearest_usd: float | None = None
    tried: bool = False
    failures: int = 0

    def expect(self, request: ChatRequest) -> Expected:
        """The mean of the tokens and the highest cost so far; what is not known is guessed."""
        if self.replies and self.dearest_usd is not None:
            return Expected(self.tokens / self.replies, self.dearest_usd)
        guess = self.guess(request)
        usd = guess.cost_usd if self.dearest_usd is None else self.dearest_usd
        return Expected(guess.tokens, usd, untried=not self.tried)

    def guess(self, request: ChatRequest) -> Expected:
        """From the length of the question alone."""
        usage = priced(guessed(request), self.prices)
        return Expected(usage.tokens or 0, usage.cost_usd or 0.0)

    def fail(self) -> None:
        """One request more without a reply; after some, nothing is to be learnt by waiting."""
        self.failures += 1
        self.tried = self.tried or self.failures >= FAILURES_TO_GO_ON_AFTER

    def learn(self, usage: Usage) -> None:
        """One reply more to go by."""
        self.tried = True
        self.dearest_usd = max(self.dearest_usd or 0.0, usage.cost_usd or 0.0)
        if usage.tokens is not None:
            self.replies += 1
            self.tokens += usage.tokens


def guessed(request: ChatRequest) -> Usage:
    """The tokens that a request will use, by the length of the question alone."""
    replied = min(request.max_tokens or TOKENS_PER_REPLY, TOKENS_PER_REPLY)
    return Usage(input_tokens=_tokens(request), output_tokens=replied)


def _tokens(request: ChatRequest) -> int:
    return sum(_length(message.get("content")) for message in request.messages)


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
class Purse:
    """Money for one purpose: what it may cost, what it has cost, what is being spent."""

    purpose: str
    limit_usd: float
    spent_usd: float
    reserved_usd: float = 0.0
    underway: int = 0

    @property
    def reached(self) -> bool:
        return self.spent_usd >= self.limit_usd

    def has_room(self, cost_usd: float) -> bool:
        """Whether it fits beside what is being spent; one alone may try."""
        usd = self.spent_usd + self.reserved_usd + cost_usd
        return not self.underway or usd <= self.limit_usd

    def sentence(self) -> str:
        """That it is empty."""
        limit, spent = f"{self.limit_usd:g}", f"{self.spent_usd:.4f}"
        return f"The budget of {limit} USD per {self.purpose} is spent ({spent} USD)."


@dataclass
class Account:
    """The purses that one run of one model draws on, and how many of its requests are under way."""

    purses: Sequence[Purse] = ()
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    underway: int = 0

    def warning(self, usd: float | None) -> str | None:
        """That so much more will not be there."""
        for purse in self.purses:
            left = purse.limit_usd - purse.spent_usd
            if usd is not None and usd > left > 0:
                budget = f"the {purse.limit_usd:g} USD per {purse.purpose}"
                return f"about {usd:.2f} USD are needed, but only {left:.2f} of {budget} are left."
        return None

    async def reserve(self, expect: Callable[[], Expected], halt: StopSignal) -> float:
        """Sets money aside for a request; at first and near the end it waits for the others."""
        if not self.purses:
            return 0.0
        while not self._has_room(expected := expect()):
            self._check()
            self.waiting.append(future := halt.future())
            await future
        self._check()
        self.underway += 1
        for purse in self.purses:
            purse.reserved_usd += expected.cost_usd
            purse.underway += 1
        return expected.cost_usd

    def _has_room(self, expected: Expected) -> bool:
        """The model's first request shows what the others cost; other models need not wait."""
        if expected.untried and self.underway:
            return False
        return all(purse.has_room(expected.cost_usd) for purse in self.purses)

    def _check(self) -> None:
        for purse in self.purses:
            if purse.reached:
                raise BudgetReached(purse.sentence())

    def settle(self, reserved_usd: float, cost_usd: float) -> None:
        """The request is done and cost so much."""
        if not self.purses:
            return
        self.underway -= 1
        for purse in self.purses:
            purse.underway -= 1
            purse.reserved_usd = max(0.0, purse.reserved_usd - reserved_usd)
            purse.spent_usd += cost_usd
        while self.waiting:
            future = self.waiting.pop()
            if not future.done():
                future.set_result(None)


class _Cost(Record):
    """What a prediction, a judgement or a diagnosis cost, without the rest of it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    usage: Usage = Usage()
    carried_from: str | None = None
    request_hash: str = ""
    finished_at: AwareDatetime

    @property
    def usd(self) -> float:
        """What was paid here, for this."""
        if self.carried_from or is_foreign(self.request_hash):
            return 0.0
        return self.usage.cost_usd or 0.0


_COSTS = tuple(Stream(name, _Cost) for name in ("predictions", "judged", "rejudged", "diagnoses"))


class Ledger:
    """The purses of a launch, with what the journal knows of earlier ones; judging costs too."""

    def __init__(self, budget: Budget, journal: Journal) -> None:
        self._budget = budget
        self._journal = journal
        self._purses: dict[tuple[str, ...], Purse] = {}
        self._spent: dict[str, dict[str, float]] = {}
        # Purses are shared between accounts, so those who wait for one wait together.
        self._waiting: list[asyncio.Future[None]] = []

    def account(self, run_id: str, model: str) -> Account:
        """What this model's run may draw on."""
        budget = self._budget
        purses = []
        if budget.usd_per_day is not None:
            purses.append(self._purse("day", budget.usd_per_day))
        if budget.usd_per_run is not None:
            purses.append(self._purse("run", budget.usd_per_run, run_id))
        if budget.usd_per_model is not None:
            purses.append(self._purse("model", budget.usd_per_model, run_id, model))
        return Account(purses, self._waiting)

    def _purse(self, purpose: str, limit_usd: float, *of: str) -> Purse:
        if (purpose, *of) not in self._purses:
            spent = self._spent_today() if not of else self._spent_in(*of)
            self._purses[purpose, *of] = Purse(purpose, limit_usd, spent)
        return self._purses[purpose, *of]

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
        return sum(cost.usd for cost in self._costs_since(midnight))

    def _costs_since(self, moment: datetime) -> Iterator[_Cost]:
        for stream in _COSTS:
            for cost in self._journal.read(stream, since=moment):
                if cost.finished_at >= moment:
                    yield cost

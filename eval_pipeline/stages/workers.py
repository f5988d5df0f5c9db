"""A fixed number of workers over what is pending, counting what came of it and what it cost."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from eval_pipeline.journal import JournalError, JournalWriter
from eval_pipeline.records import Judgement, Outcome, Prediction, Prices, Usage

log = logging.getLogger(__name__)
T = TypeVar("T")
L = TypeVar("L", Prediction, Judgement)
PROGRESS_EVERY_S = 10.0


@dataclass
class Spending:
    """Money spent in one launch, over all models, against its limit."""

    limit_usd: float | None
    spent_usd: float = 0.0

    @property
    def reached(self) -> bool:
        return self.limit_usd is not None and self.spent_usd >= self.limit_usd


@dataclass
class Tally:
    """What a stage did for one model: counted as it happens, reported at the end."""

    model: str
    verb: str
    planned: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    trouble: str | None = None
    stopped: str | None = None
    failed: bool = False

    @property
    def asked(self) -> int:
        return self.outcomes.total()

    def count(self, outcome: Outcome, usage: Usage) -> None:
        self.outcomes[outcome] += 1
        self.input_tokens += usage.input_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        self.cost_usd += usage.cost_usd or 0.0

    def line(self) -> str:
        """The tally in a sentence."""
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        done = f"{self.model}: {self.asked} of {self.planned} {self.verb} ({outcomes or 'none'})"
        said = self.stopped or (self.trouble and f"for example {self.trouble}")
        return f"{done}, {self.cost_usd:.4f} USD" + (f"; {said}" if said else "")

    def stop(self, reason: str, *, failed: bool) -> None:
        """No further request is made; the first reason is the one that is told."""
        self.stopped = self.stopped or reason
        self.failed = self.failed or failed


async def work_through(
    pending: Iterable[T],
    do: Callable[[T], Awaitable[None]],
    *,
    num_workers: int,
    tally: Tally,
    spending: Spending,
) -> None:
    """Workers pull from one iterator, so memory does not grow with what is pending."""
    queue = iter(pending)
    progress = _Progress(tally, time.monotonic())

    async def worker() -> None:
        for one in queue:
            if _must_stop(tally, spending):
                return
            await _attempt(do, one, tally)
            progress.tell()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(num_workers):
                group.create_task(worker())
    except* JournalError as errors:
        tally.stop(str(errors.exceptions[0]), failed=True)


def _must_stop(tally: Tally, spending: Spending) -> bool:
    if spending.reached:
        tally.stop(f"The budget of {spending.limit_usd:g} USD is spent.", failed=False)
    return tally.stopped is not None


async def _attempt(do: Callable[[T], Awaitable[None]], one: T, tally: Tally) -> None:
    """Our own fault with one item must not cost the others; it stays pending."""
    try:
        await do(one)
    except JournalError:
        raise
    except Exception:
        log.exception("%s: an item could not be %s.", tally.model, tally.verb)
        tally.count(Outcome.INTERNAL_ERROR, Usage())


async def land(record: L, writer: JournalWriter[L], tally: Tally, spending: Spending) -> None:
    """On disk first; only then it counts."""
    await writer.append(record)
    tally.count(record.outcome, record.usage)
    spending.spent_usd += record.usage.cost_usd or 0.0
    if record.outcome is not Outcome.OK:
        tally.trouble = record.trouble
    answered = any(outcome.is_result for outcome in tally.outcomes)
    if record.outcome.is_hopeless(answered_before=answered):
        tally.stop(record.trouble, failed=True)


class _Progress:
    """One log line every few seconds, not one per request."""

    def __init__(self, tally: Tally, started: float) -> None:
        self._tally = tally
        self._started = started
        self._told = started

    def tell(self) -> None:
        moment = time.monotonic()
        if moment - self._told < PROGRESS_EVERY_S:
            return
        self._told = moment
        rate = self._tally.asked / (moment - self._started)
        left = (self._tally.planned - self._tally.asked) / rate
        log.info("%s; %.1f/s, about %.0f s left", self._tally.line(), rate, left)


def priced(usage: Usage, prices: Prices) -> Usage:
    """Usage with its cost: the gateway's own figure, else an estimate from the catalog's prices."""
    if usage.cost_usd is not None or prices.prompt is None or prices.completion is None:
        return usage
    if usage.input_tokens is None or usage.output_tokens is None:
        return usage
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    cached_price = prices.prompt if prices.cached is None else prices.cached
    cost = (
        (usage.input_tokens - cached) * prices.prompt
        + cached * cached_price
        + usage.output_tokens * prices.completion
        + (prices.request or 0.0)
    )
    return usage.model_copy(update={"cost_usd": cost, "cost_estimated": True})

"""Estimates of what calls will use and cost: by earlier ones, else by the length of the items."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from eval_pipeline.evaluation.budget import UsageBrief, estimate_usage, with_cost
from eval_pipeline.evaluation.requests import RequestBuilder
from eval_pipeline.evaluation.state import Pending, repeat_if_compacted
from eval_pipeline.journal import PREDICTIONS, Journal, Stream
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.model import Prices
from eval_pipeline.records.prediction import Usage

T = TypeVar("T")
BY_LENGTH = "by the length of the questions"
ENOUGH = 200
"""How many earlier calls, or questions, an estimate is based on."""
MOST_READ = 10_000
"""How many records are searched, so that a suite without any does not cost a full read."""


class AverageUsage(NamedTuple):
    """Average usage of the latest calls of one kind; None where it is unknown."""

    calls: int = 0
    output_tokens: float | None = None
    cost_usd: float | None = None


@repeat_if_compacted
def average_usage(
    journal: Journal,
    stream: Stream[Any],
    model: str,
    suites: Collection[str],
    graded_by: str | None = None,
) -> dict[str, AverageUsage]:
    """Return what the model's answers in each suite, or one judge's verdicts on them, have used."""
    found: dict[str, list[Usage]] = {suite: [] for suite in suites}
    lacking = set(found)
    for one in islice(journal.read_newest(Stream(stream.name, UsageBrief), model), MOST_READ):
        if not lacking:
            break
        is_known = one.usage.tokens is not None or one.usage.cost_usd is not None
        if one.suite in lacking and one.graded_by == graded_by and is_known:
            found[one.suite].append(one.usage)
            if len(found[one.suite]) == ENOUGH:
                lacking.discard(one.suite)
    return {
        suite: AverageUsage(
            len(usages),
            mean(usage.output_tokens for usage in usages),
            mean(usage.cost_usd for usage in usages),
        )
        for suite, usages in found.items()
    }


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known values."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


@dataclass(frozen=True)
class Estimate:
    """The expected use of calls; the cost is None if a price is unknown, `by` names the basis."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    by: str = ""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Estimate") -> "Estimate":
        """Return the sum of both; where one cost is unknown, so is their sum."""
        costs = (self.cost_usd, other.cost_usd)
        return Estimate(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if None in costs else sum(filter(None, costs)),
            self.by or other.by,
        )


NO_CALLS = Estimate()


def spread(values: Sequence[T]) -> Sequence[T]:
    """Return some of the values, evenly spread; all of them if they are few."""
    return values[:: -(-len(values) // ENOUGH) or 1]


class Part(NamedTuple):
    """Calls in one suite: how many, what some of them may use, and what earlier ones have used."""

    calls: int
    guesses: Sequence[Usage]
    known: AverageUsage


def estimate(parts: Iterable[Part], prices: Prices, noun: str) -> Estimate:
    """Return what calls will use, as far as possible by earlier ones in the same suite."""
    pending = [part for part in parts if part.calls]
    earlier = sum(part.known.calls for part in pending)
    basis = [f"by {earlier} earlier {noun}"] if earlier else []
    if any(not part.known.calls for part in pending):
        basis.append(BY_LENGTH)
    start = Estimate(by=" and ".join(basis))
    return sum((_estimate_suite(part, prices) for part in pending), start)


def _estimate_suite(part: Part, prices: Prices) -> Estimate:
    calls, guesses, known = part
    asked = mean(guess.input_tokens for guess in guesses) or 0.0
    replied = known.output_tokens
    if replied is None:
        replied = mean(guess.output_tokens for guess in guesses) or 0.0
    each = known.cost_usd
    if each is None:
        likely = (guess.model_copy(update={"output_tokens": round(replied)}) for guess in guesses)
        each = mean(with_cost(usage, prices).cost_usd for usage in likely)
    return Estimate(
        calls,
        round(asked * calls),
        round(replied * calls),
        None if each is None else each * calls,
    )


def estimate_answers(
    journal: Journal, builder: RequestBuilder, pending: Pending, items: Mapping[ItemKey, Item]
) -> Estimate:
    """Return what asking for these replies will use."""
    by_suite = pending.by_suite()
    known = average_usage(journal, PREDICTIONS, builder.model.id, by_suite)
    limits = (builder.experiment.max_tokens, builder.model.max_output_tokens)
    most = min(filter(None, limits), default=None)

    def guess(number: int) -> Usage:
        request = builder.request(items[pending.reply(number).key], sample=0)
        return estimate_usage(replace(request, max_tokens=most))

    parts = (
        Part(len(some), [guess(number) for number in spread(some.numbers)], known[suite])
        for suite, some in by_suite.items()
    )
    return estimate(parts, builder.model.prices, "answers")

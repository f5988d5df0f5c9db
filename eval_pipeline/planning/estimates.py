"""What calls will use and cost: as those before them, else by the length of what is asked."""

from collections.abc import Iterable, Sequence
from itertools import islice
from statistics import fmean
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import ConfigDict

from eval_pipeline.journal import Journal, Stream
from eval_pipeline.money import priced
from eval_pipeline.record import Record
from eval_pipeline.records import Prices, Usage

ENOUGH = 200
"""So many earlier calls, or questions, tell what the others are like."""
BY_LENGTH = "by the length of the questions"
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Estimate(NamedTuple):
    """What calls will use; the cost is None if nobody knows a price, `by` says what tells it."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    by: str = ""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, other: "Estimate") -> "Estimate":
        """Both together; where one cost is unknown, so is their sum."""
        costs = (self.cost_usd, other.cost_usd)
        return Estimate(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if None in costs else sum(filter(None, costs)),
            self.by or other.by,
        )


NO_CALLS = Estimate()


class Usual(NamedTuple):
    """What calls of one kind have used lately, on average; None where nobody said."""

    calls: int = 0
    output_tokens: float | None = None
    cost_usd: float | None = None


def usual(journal: Journal, stream: Stream[Any], model: str, graded_by: str | None = None) -> Usual:
    """What the model's answers, or the verdicts of one judge on them, have used lately."""
    newest_first = journal.read_newest(Stream(stream.name, _Used), model)
    told = (one.usage for one in newest_first if one.graded_by == graded_by and one.told)
    usages = list(islice(told, ENOUGH))
    return Usual(
        len(usages),
        _mean(usage.output_tokens for usage in usages),
        _mean(usage.cost_usd for usage in usages),
    )


class _Row(Protocol[T_co]):
    """What has a length and numbered places, and need not be more of a sequence."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> T_co: ...


def few(everything: _Row[T]) -> list[T]:
    """Some of them from all over, or all if they are not many."""
    step = -(-len(everything) // ENOUGH) or 1
    return [everything[index] for index in range(0, len(everything), step)]


def estimate(
    calls: int, guesses: Sequence[Usage], known: Usual, prices: Prices, noun: str
) -> Estimate:
    """So many calls like those that are guessed at, as far as earlier ones do not tell more."""
    if not calls:
        return NO_CALLS
    asked = _mean(guess.input_tokens for guess in guesses) or 0.0
    replied = known.output_tokens
    if replied is None:
        replied = _mean(guess.output_tokens for guess in guesses) or 0.0
    each = known.cost_usd
    if each is None:
        likely = (guess.model_copy(update={"output_tokens": round(replied)}) for guess in guesses)
        each = _mean(priced(usage, prices).cost_usd for usage in likely)
    return Estimate(
        calls,
        round(asked * calls),
        round(replied * calls),
        None if each is None else each * calls,
        f"by {known.calls} earlier {noun}" if known.calls else BY_LENGTH,
    )


class _Used(Record):
    """What a prediction or judgement used, without the rest of it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    usage: Usage = Usage()
    graded_by: str | None = None

    @property
    def told(self) -> bool:
        return self.usage.tokens is not None or self.usage.cost_usd is not None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None

"""What calls will use and cost: as those before them, else by the length of what is asked."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from eval_pipeline.money import priced
from eval_pipeline.records import Prices, Usage
from eval_pipeline.usual import ENOUGH, Usual, mean

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


class _Row(Protocol[T_co]):
    """What has a length and numbered places, and need not be more of a sequence."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> T_co: ...


def few(everything: _Row[T]) -> list[T]:
    """Some of them from all over, or all if they are not many."""
    step = -(-len(everything) // ENOUGH) or 1
    return [everything[index] for index in range(0, len(everything), step)]


class Part(NamedTuple):
    """Calls in one suite: how many, what some of them may use, and what earlier ones have used."""

    calls: int
    guesses: Sequence[Usage]
    known: Usual


def estimate(parts: Iterable[Part], prices: Prices, noun: str) -> Estimate:
    """What calls will use, as far as it goes by earlier ones in the same suite."""
    pending = [part for part in parts if part.calls]
    total = NO_CALLS
    for part in pending:
        total = total.plus(_of_one_suite(part, prices))
    return total._replace(by=_basis(pending, noun))


def _of_one_suite(part: Part, prices: Prices) -> Estimate:
    calls, guesses, known = part
    asked = mean(guess.input_tokens for guess in guesses) or 0.0
    replied = known.output_tokens
    if replied is None:
        replied = mean(guess.output_tokens for guess in guesses) or 0.0
    each = known.cost_usd
    if each is None:
        likely = (guess.model_copy(update={"output_tokens": round(replied)}) for guess in guesses)
        each = mean(priced(usage, prices).cost_usd for usage in likely)
    return Estimate(
        calls,
        round(asked * calls),
        round(replied * calls),
        None if each is None else each * calls,
    )


def _basis(pending: Sequence[Part], noun: str) -> str:
    """What tells it: earlier calls, and the length of what is asked in suites without any."""
    earlier = sum(part.known.calls for part in pending)
    told = [f"by {earlier} earlier {noun}"] if earlier else []
    if any(not part.known.calls for part in pending):
        told.append(BY_LENGTH)
    return " and ".join(told)

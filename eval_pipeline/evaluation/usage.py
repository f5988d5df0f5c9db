"""What calls use on average, and what verdicts will cost: by earlier ones, else by length."""

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Any, NamedTuple

from eval_pipeline.evaluation.budget import UsageBrief
from eval_pipeline.evaluation.grading import STEPS, Grader
from eval_pipeline.evaluation.state import repeat_if_compacted
from eval_pipeline.journal import JUDGED, Journal, Stream
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.prediction import Prediction, Usage

ENOUGH = 200
"""How many earlier calls, or questions, an estimate is based on."""
MOST_READ = 10_000
"""How many records are searched, so that a suite without any does not cost a full read."""


class AverageUsage(NamedTuple):
    """What calls of one kind have used lately, on average; None where it is unknown."""

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


ANSWERS_TO_ESTIMATE_BY = 50


@dataclass(frozen=True)
class VerdictCosts:
    """Whose answers are judged by whom, and where to find what that is judged by."""

    journal: Journal
    model: str
    grader: Grader
    items: Mapping[ItemKey, Item]
    # Reads the predictions of these ids.
    read: Callable[[Set[str]], Iterable[Prediction]]

    def expect(self, answers: Mapping[str, Set[str]], code: Mapping[str, Set[str]]) -> float | None:
        """Return the cost of all verdicts on these, which are ids by suite; None if unknown."""
        usd = self._code_usd(code)
        judge, known = self.grader.model, dict[str, AverageUsage]()
        # Not where rules come first: the journal does not say how much they leave to the model.
        if judge is not None and not self.grader.rules:
            known = average_usage(self.journal, JUDGED, self.model, answers, judge.model.id)
        for suite, some in answers.items():
            each = known[suite].cost_usd if suite in known else None
            if each is None:
                few = list(islice(self.read(some), ANSWERS_TO_ESTIMATE_BY))
                each = self.grader.guess_usd(few, self.items)
            if each is None:
                return None
            usd += each * len(some)
        return usd

    def _code_usd(self, code: Mapping[str, Set[str]]) -> float:
        """Steps cost nothing unless a model has reviewed them; code is no measure for answers."""
        if not code:
            return 0.0
        found = average_usage(self.journal, JUDGED, self.model, code, STEPS)
        return sum((found[suite].cost_usd or 0.0) * len(some) for suite, some in code.items())

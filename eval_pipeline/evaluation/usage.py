"""What verdicts will cost: as earlier ones in the same suite, else by what there is to read."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Any, NamedTuple

from pydantic import ConfigDict

from eval_pipeline.evaluation.grading import STEPS, Grader
from eval_pipeline.journal import JUDGED, FileCompactedError, Journal, Stream
from eval_pipeline.records.base import Record
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.prediction import Prediction, Usage

ENOUGH = 200
"""So many earlier calls, or questions, tell what the others are like."""
MOST_READ = 10_000
"""So far back they are looked for: a suite that has none must not cost a reading of everything."""


class Usual(NamedTuple):
    """What calls of one kind have used lately, on average; None where nobody said."""

    calls: int = 0
    output_tokens: float | None = None
    cost_usd: float | None = None


def usual(
    journal: Journal,
    stream: Stream[Any],
    model: str,
    suites: Iterable[str],
    graded_by: str | None = None,
) -> dict[str, Usual]:
    """What the model's answers in each suite, or the verdicts of one judge on them, have used."""
    names = list(suites)
    while True:
        try:
            return _usual(journal, Stream(stream.name, _Used), model, names, graded_by)
        except FileCompactedError:  # compacted meanwhile: they stand in another file now
            continue


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


class _Used(Record):
    """What a prediction, a judgement or a diagnosis used, without the rest of it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    suite: str
    usage: Usage = Usage()
    graded_by: str | None = None

    @property
    def told(self) -> bool:
        return self.usage.tokens is not None or self.usage.cost_usd is not None


def _usual(
    journal: Journal,
    stream: Stream[_Used],
    model: str,
    suites: Sequence[str],
    graded_by: str | None,
) -> dict[str, Usual]:
    found: dict[str, list[Usage]] = {suite: [] for suite in suites}
    lacking = set(suites)
    for one in islice(journal.read_newest(stream, model), MOST_READ):
        if not lacking:
            break
        if one.suite in lacking and one.graded_by == graded_by and one.told:
            found[one.suite].append(one.usage)
            if len(found[one.suite]) == ENOUGH:
                lacking.discard(one.suite)
    return {suite: _average(usages) for suite, usages in found.items()}


def _average(usages: Sequence[Usage]) -> Usual:
    return Usual(
        len(usages),
        mean(usage.output_tokens for usage in usages),
        mean(usage.cost_usd for usage in usages),
    )


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
        """Of all verdicts on these, which are ids by suite; None if nobody can tell."""
        usd = self._of_code(code)
        known = self._of_model(answers)
        for suite, some in answers.items():
            each = known.get(suite)
            if each is None:
                few = list(islice(self.read(some), ANSWERS_TO_ESTIMATE_BY))
                each = self.grader.guess_usd(few, self.items)
            if each is None:
                return None
            usd += each * len(some)
        return usd

    def _of_model(self, suites: Iterable[str]) -> dict[str, float | None]:
        """Nothing where rules come first: nobody kept how much they leave to the model."""
        judge = self.grader.model
        if judge is None or self.grader.rules:
            return {}
        found = usual(self.journal, JUDGED, self.model, suites, judge.model.id)
        return {suite: one.cost_usd for suite, one in found.items()}

    def _of_code(self, code: Mapping[str, Set[str]]) -> float:
        """Steps cost nothing unless a model has reviewed them; code is no measure for answers."""
        if not code:
            return 0.0
        found = usual(self.journal, JUDGED, self.model, code, STEPS)
        return sum((found[suite].cost_usd or 0.0) * len(some) for suite, some in code.items())

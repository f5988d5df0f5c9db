"""What verdicts will cost: as earlier ones in the same suite, else by what there is to read."""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import islice

from eval_pipeline.journal import JUDGED, Journal
from eval_pipeline.records import Item, ItemKey, Prediction
from eval_pipeline.stages.grading import STEPS, Grader
from eval_pipeline.usual import usual

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

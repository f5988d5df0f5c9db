"""Earlier work as the journal tells it, read for no more than decides what is left to do."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Self

from pydantic import AwareDatetime, ConfigDict
from pydantic_core import to_json

from eval_pipeline.items import Places
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal, Stream
from eval_pipeline.records import ItemKey, Outcome, Record, Run


class PastRun(Run):
    """A run without its plan, which stays the text that it was written as."""

    plan_text: bytes = b""

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Cuts the plan out first: as objects it would take ten times the memory."""
        line = json_data.encode() if isinstance(json_data, str) else bytes(json_data)
        # No value of the record can hold these, for a quote within a text is written as \".
        start, end = line.find(b'"plan":[') + len(b'"plan":'), line.find(b',"plan_filter":')
        if not len(b'"plan":') <= start < end:
            return super().model_validate_json(line, **options).model_copy(update={"plan": ()})
        run = super().model_validate_json(line[:start] + b"[]" + line[end:], **options)
        return run.model_copy(update={"plan_text": line[start:end]})

    def with_plan(self, plan: tuple[ItemKey, ...]) -> Run:
        """The run itself; the keys are taken as they are, not copied."""
        return Run.model_construct(**{**dict(self), "plan": plan})


class PredictionBrief(Record):
    """Of a prediction, what tells whether its item is done; the answer stays on disk."""

    model_config = ConfigDict(extra="ignore")

    prediction_id: str
    suite: str
    item_id: str
    outcome: Outcome
    request_hash: str
    finished_at: AwareDatetime

    @property
    def key(self) -> ItemKey:
        return ItemKey(self.suite, self.item_id)


class JudgementBrief(Record):
    """Of a judgement, what tells whether there is a score and whose it is."""

    model_config = ConfigDict(extra="ignore")

    prediction_id: str
    suite: str
    item_id: str
    judge: str
    judge_version: str
    score: float | None

    @property
    def key(self) -> ItemKey:
        return ItemKey(self.suite, self.item_id)


# The files of RUNS, PREDICTIONS and JUDGED, read for less.
PAST_RUNS = Stream(RUNS.name, PastRun)
PREDICTION_BRIEFS = Stream(PREDICTIONS.name, PredictionBrief)
JUDGEMENT_BRIEFS = Stream(JUDGED.name, JudgementBrief)


class LastWords:
    """Which of a run's predictions is the last word on each of these items."""

    def __init__(self, keys: Sequence[ItemKey], predictions: Iterable[PredictionBrief]) -> None:
        # Numbers in arrays: a few bytes per item, however many there are.
        self._places = Places(keys)
        self._moments = array("d", [0.0]) * len(keys)
        self._numbers = array("q", [-1]) * len(keys)
        self._is_result = bytearray(len(keys))
        for number, prediction in enumerate(predictions):
            self._note(number, prediction)

    def has_word(self, key: ItemKey, *, result: bool) -> bool:
        """Whether there is any; with `result`, whether it says something about the model."""
        place = self._places.find(key)
        if place is None or self._numbers[place] < 0:
            return False
        return not result or bool(self._is_result[place])

    def is_last(self, number: int, key: ItemKey) -> bool:
        """Whether the run's prediction of that number, counted from 0, is the last on its item."""
        place = self._places.find(key)
        return place is not None and self._numbers[place] == number

    def _note(self, number: int, prediction: PredictionBrief) -> None:
        place, moment = self._places.find(prediction.key), prediction.finished_at.timestamp()
        if place is not None and self._moments[place] <= moment:
            self._moments[place] = moment
            self._numbers[place] = number
            self._is_result[place] = prediction.outcome.is_result


def earlier_runs(journal: Journal, wanted: Run) -> list[Run]:
    """The model's runs, newest first; one with the wanted plan shares it, others come without."""
    text = to_json(wanted.plan)
    runs = []
    for past in journal.read(PAST_RUNS, wanted.model):
        plan = wanted.plan if _has_plan(past, wanted, text, journal) else ()
        runs.append(past.with_plan(plan))
    return sorted(runs, key=lambda run: run.opened_at, reverse=True)


def with_plan(run: Run, wanted: Run, journal: Journal) -> Run:
    """One of the earlier runs, with its own plan if that is not the wanted one."""
    return run if run.plan is wanted.plan else _whole(run, journal)


def is_judged(journal: Journal, run: Run) -> bool:
    """Whether one judge scored every item of the run."""
    places = Places(run.plan)
    scored: dict[tuple[str, str], bytearray] = {}
    for judgement in journal.read(JUDGEMENT_BRIEFS, run.model, run.run_id):
        place = places.find(judgement.key)
        if judgement.score is not None and place is not None:
            by = (judgement.judge, judgement.judge_version)
            scored.setdefault(by, bytearray(len(run.plan)))[place] = True
    return any(all(items) for items in scored.values())


def _has_plan(past: PastRun, wanted: Run, text: bytes, journal: Journal) -> bool:
    if past.plan_text == text:
        return True
    # Another text may still mean the same, and a run taken for another would be paid for again.
    alike = past.matches(wanted.model_copy(update={"plan": ()}))
    return alike and _whole(past, journal).plan == wanted.plan


def _whole(run: Run, journal: Journal) -> Run:
    return next(journal.read_file(RUNS, run.model, run.run_id))

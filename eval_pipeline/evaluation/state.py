"""The state of earlier work: what is done and what is left, as the journal has it."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from math import inf
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

from pydantic import AwareDatetime, ConfigDict
from pydantic_core import to_json

from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, FileCompactedError, Journal, Stream
from eval_pipeline.records.base import Record
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.suites.items import Places

P = ParamSpec("P")
T = TypeVar("T")


def repeat_if_compacted(read: Callable[P, T]) -> Callable[P, T]:
    """Make a function that reads the journal start over when a file was compacted meanwhile."""

    @wraps(read)
    def repeated(*args: P.args, **options: P.kwargs) -> T:
        while True:
            try:
                return read(*args, **options)
            except FileCompactedError:  # the lines are in another file now
                continue

    return repeated


class PastRun(Run):
    """A run without its plan, which stays the text that it was written as."""

    plan_text: bytes = b""

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Cut the plan out first: as objects it would take ten times the memory."""
        line = json_data.encode() if isinstance(json_data, str) else bytes(json_data)
        # No value of the record can hold these, for a quote within a text is written as \".
        start, end = line.find(b'"plan":[') + len(b'"plan":'), line.find(b',"plan_filter":')
        if not len(b'"plan":') <= start < end:
            return super().model_validate_json(line, **options).model_copy(update={"plan": ()})
        run = super().model_validate_json(line[:start] + b"[]" + line[end:], **options)
        return run.model_copy(update={"plan_text": line[start:end]})

    def with_plan(self, plan: tuple[ItemKey, ...]) -> Run:
        """Return the run itself; the keys are taken as they are, not copied."""
        return Run.model_construct(**{**dict(self), "plan": plan})


class JudgeKey(NamedTuple):
    """A judge in one version."""

    judge: str
    version: str


class _Brief(Record):
    """The fields of a prediction or a judgement that decide what is left; texts stay on disk."""

    model_config = ConfigDict(extra="ignore")

    prediction_id: str
    suite: str
    item_id: str
    sample: int = 0
    outcome: Outcome
    finished_at: AwareDatetime

    @property
    def key(self) -> ItemKey:
        return ItemKey(self.suite, self.item_id)


class PredictionBrief(_Brief):
    """The fields of a prediction that decide whether its reply is done."""

    request_hash: str


class JudgementBrief(_Brief):
    """The fields of a judgement that decide whether there is a score, and by which judge."""

    judge: str
    judge_version: str
    score: float | None
    launch: str | None = None

    @property
    def by(self) -> JudgeKey:
        return JudgeKey(self.judge, self.judge_version)


# The files of RUNS, PREDICTIONS and JUDGED, read for less.
PAST_RUNS = Stream(RUNS.name, PastRun)
PREDICTION_BRIEFS = Stream(PREDICTIONS.name, PredictionBrief)
JUDGEMENT_BRIEFS = Stream(JUDGED.name, JudgementBrief)


class ReplyKey(NamedTuple):
    """The name of a reply in a run: the item, and the number of the sample."""

    key: ItemKey
    sample: int


class Replies:
    """The number of each reply to these items: sample 0 of all items, then sample 1, and so on."""

    def __init__(self, keys: Sequence[ItemKey], samples: int) -> None:
        self._places = Places(keys)
        self._items = len(keys)
        self._samples = samples

    def __len__(self) -> int:
        return self._items * self._samples

    def find(self, key: ItemKey, sample: int) -> int | None:
        """Return the reply's number, if it is one of them."""
        place = self._places.find(key)
        if place is None or not 0 <= sample < self._samples:
            return None
        return sample * self._items + place


@dataclass(frozen=True)
class Pending:
    """The replies left to ask for, as numbers: each is named when its turn comes."""

    plan: Sequence[ItemKey]
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[ReplyKey]:
        return map(self.reply, self.numbers)

    def reply(self, number: int) -> ReplyKey:
        """Return the name of the reply of that number."""
        sample, place = divmod(number, len(self.plan))
        return ReplyKey(self.plan[place], sample)

    def by_suite(self) -> dict[str, Self]:
        """Return the pending replies of each suite that has any."""
        numbers: dict[str, array[int]] = {}
        for number in self.numbers:
            suite = self.plan[number % len(self.plan)].suite
            numbers.setdefault(suite, array("q")).append(number)
        return {suite: type(self)(self.plan, some) for suite, some in numbers.items()}

    def without(self, done: Sequence[int]) -> Self:
        """Return the rest, without those whose number has a value other than 0 in `done`."""
        return type(self)(self.plan, array("q", (one for one in self.numbers if not done[one])))


class FinalPredictions:
    """The final prediction for each reply: of those of a run, the one that finished last.

    The rule for all Python code; `load/predictions.sql` has the same one for the warehouse.
    """

    def __init__(self, keys: Sequence[ItemKey], samples: int) -> None:
        # Numbers in arrays: a few bytes per reply, however many there are.
        self.replies = Replies(keys, samples)
        self._moments = array("d", [-inf]) * len(self.replies)
        self._is_result = bytearray(len(self.replies))

    def add(self, prediction: PredictionBrief) -> int | None:
        """Add the run's next prediction; return its reply if it is the final one so far."""
        reply = self.replies.find(prediction.key, prediction.sample)
        moment = prediction.finished_at.timestamp()
        if reply is None or self._moments[reply] > moment:
            return None
        self._moments[reply] = moment
        self._is_result[reply] = prediction.outcome.is_result
        return reply

    def missing(self, *, result: bool) -> Sequence[int]:
        """Return the replies without a prediction; with `result`, also those without a result."""
        found = self._is_result if result else (moment > -inf for moment in self._moments)
        return array("q", (reply for reply, there in enumerate(found) if not there))


def find_pending(
    journal: Journal, run: Run, wanted: Run | None = None, *, failed_too: bool = True
) -> Pending:
    """Return the replies that this run (or the wanted one) plans and this run does not have."""
    wanted = wanted or run
    finals = FinalPredictions(wanted.plan, wanted.samples)
    for brief in journal.read(PREDICTION_BRIEFS, run.model, run.run_id):
        finals.add(brief)
    return Pending(wanted.plan, finals.missing(result=failed_too))


@repeat_if_compacted
def final_results(journal: Journal, run: Run) -> Mapping[str, ItemKey]:
    """Return the ids of the run's final predictions that are results, with their items.

    Read in one pass, for the model may still be asked, and the journal grow.
    """
    finals = FinalPredictions(run.plan, run.samples)
    ids: list[str | None] = [None] * len(finals.replies)
    for brief in journal.read(PREDICTION_BRIEFS, run.model, run.run_id):
        if (reply := finals.add(brief)) is not None:
            ids[reply] = brief.prediction_id if brief.outcome.is_result else None
    items = len(run.plan)
    return {found: run.plan[n % items] for n, found in enumerate(ids) if found is not None}


def read_predictions(
    journal: Journal, model: str, run_id: str, ids: Set[str]
) -> Iterator[Prediction]:
    """Yield these predictions as they are needed, however long judging takes."""
    left = set(ids)
    while left:
        try:
            for one in journal.read(PREDICTIONS, model, run_id):
                if one.prediction_id in left:
                    left.discard(one.prediction_id)
                    yield one
        except FileCompactedError:  # the lines are in another file now
            continue
        return


def read_run(journal: Journal, model: str, run_id: str) -> Run:
    """Return the run with its plan."""
    return next(journal.read_file(RUNS, model, run_id))


def earlier_runs(journal: Journal, wanted: Run) -> list[Run]:
    """Return the model's runs, newest first; those without the wanted plan come with none."""
    text, bare, runs = to_json(wanted.plan), wanted.model_copy(update={"plan": ()}), list[Run]()
    for past in journal.read(PAST_RUNS, wanted.model):
        has_plan = past.plan_text == text
        # Another text may still mean the same, and a run taken for another would be paid for again.
        if not has_plan and past.matches(bare):
            has_plan = read_run(journal, past.model, past.run_id).plan == wanted.plan
        runs.append(past.with_plan(wanted.plan if has_plan else ()))
    return sorted(runs, key=lambda run: run.opened_at, reverse=True)


def is_judged(journal: Journal, run: Run) -> bool:
    """Return whether one judge has given its verdict on every reply of the run."""
    replies = Replies(run.plan, run.samples)
    scored: dict[JudgeKey, bytearray] = {}
    for judgement in journal.read(JUDGEMENT_BRIEFS, run.model, run.run_id):
        reply = replies.find(judgement.key, judgement.sample)
        decided = judgement.score is not None or judgement.outcome is Outcome.UNDECIDED
        if decided and reply is not None:
            scored.setdefault(judgement.by, bytearray(len(replies)))[reply] = True
    return any(map(all, scored.values()))


def failed_items(journal: Journal, run: Run) -> set[ItemKey]:
    """Return the items of which any reply is missing, has no result, or was found wrong.

    An item that is only not judged yet has not failed. One version of a judge decides, by the
    rule of `run_standing`: the one with the most scores, then the one last at work. Its latest
    score on a reply counts, and a later failure to judge does not undo it.
    """
    results = final_results(journal, run)
    scores: dict[JudgeKey, dict[str, tuple[datetime, float]]] = {}
    for one in journal.read(JUDGEMENT_BRIEFS, run.model, run.run_id):
        if one.score is not None and one.prediction_id in results:
            given = scores.setdefault(one.by, {})
            score = (one.finished_at, one.score)
            given[one.prediction_id] = max(given.get(one.prediction_id, score), score)
    decisive = max(
        scores.values(),
        key=lambda given: (len(given), max(at for at, _ in given.values())),
        default={},
    )
    wrong = {prediction_id for prediction_id, (_, score) in decisive.items() if score < 1}
    fine = Counter(key for prediction_id, key in results.items() if prediction_id not in wrong)
    return {key for key in run.plan if fine[key] < run.samples}

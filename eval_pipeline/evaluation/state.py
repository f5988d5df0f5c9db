"""Earlier work as the journal tells it, read for no more than decides what is left to do."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self

from pydantic import AwareDatetime, ConfigDict
from pydantic_core import to_json

from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal, Stream
from eval_pipeline.records.base import Record
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.run import Run
from eval_pipeline.suites.items import Places


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
    sample: int = 0
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
    sample: int = 0
    judge: str
    judge_version: str
    outcome: Outcome
    score: float | None

    @property
    def key(self) -> ItemKey:
        return ItemKey(self.suite, self.item_id)


# The files of RUNS, PREDICTIONS and JUDGED, read for less.
PAST_RUNS = Stream(RUNS.name, PastRun)
PREDICTION_BRIEFS = Stream(PREDICTIONS.name, PredictionBrief)
JUDGEMENT_BRIEFS = Stream(JUDGED.name, JudgementBrief)


class ReplyKey(NamedTuple):
    """What names a reply of a run: the item, and the number of the sample."""

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
        """The reply's number, if it is one of them."""
        place = self._places.find(key)
        if place is None or not 0 <= sample < self._samples:
            return None
        return sample * self._items + place


@dataclass(frozen=True)
class Pending:
    """What is left to ask: numbers of replies, each of which is named when its turn comes."""

    plan: Sequence[ItemKey]
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> ReplyKey:
        return self.reply(self.numbers[index])

    def __iter__(self) -> Iterator[ReplyKey]:
        return map(self.reply, self.numbers)

    def reply(self, number: int) -> ReplyKey:
        """What the reply of that number is called."""
        sample, place = divmod(number, len(self.plan))
        return ReplyKey(self.plan[place], sample)

    def by_suite(self) -> dict[str, Self]:
        """The same, apart for each suite that has any of it."""
        numbers: dict[str, array[int]] = {}
        for number in self.numbers:
            suite = self.plan[number % len(self.plan)].suite
            numbers.setdefault(suite, array("q")).append(number)
        return {suite: type(self)(self.plan, some) for suite, some in numbers.items()}

    def without(self, done: Sequence[int]) -> Self:
        """The rest after those are done whose number has anything but 0."""
        return type(self)(self.plan, array("q", (one for one in self.numbers if not done[one])))


class LastWords:
    """Which of a run's predictions is the last word on each sample of these items."""

    def __init__(
        self, keys: Sequence[ItemKey], predictions: Iterable[PredictionBrief], samples: int = 1
    ) -> None:
        # Numbers in arrays: a few bytes per reply, however many there are.
        self.replies = Replies(keys, samples)
        self._moments = array("d", [0.0]) * len(self.replies)
        self._numbers = array("q", [-1]) * len(self.replies)
        self._is_result = bytearray(len(self.replies))
        for number, prediction in enumerate(predictions):
            self.note(number, prediction)

    def missing(self, *, result: bool) -> Sequence[int]:
        """The replies without any; with `result`, also those that say nothing about the model."""
        words = self._is_result if result else (number >= 0 for number in self._numbers)
        return array("q", (reply for reply, word in enumerate(words) if not word))

    def is_last(self, number: int, key: ItemKey, sample: int = 0) -> bool:
        """Whether the run's prediction of that number, counted from 0, is the last on its reply."""
        reply = self.replies.find(key, sample)
        return reply is not None and self._numbers[reply] == number

    def note(self, number: int, prediction: PredictionBrief) -> int | None:
        """The reply on which this prediction, the run's next, is the last word so far."""
        reply = self.replies.find(prediction.key, prediction.sample)
        moment = prediction.finished_at.timestamp()
        if reply is None or self._moments[reply] > moment:
            return None
        self._moments[reply] = moment
        self._numbers[reply] = number
        self._is_result[reply] = prediction.outcome.is_result
        return reply


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


def count_results(journal: Journal, run: Run, wanted: Run) -> int:
    """To how many of the wanted replies this run has one that says something about the model."""
    briefs = journal.read(PREDICTION_BRIEFS, run.model, run.run_id)
    words = LastWords(wanted.plan, briefs, wanted.samples)
    return wanted.planned - len(words.missing(result=True))


def is_judged(journal: Journal, run: Run) -> bool:
    """Whether one judge has said all that it will about every reply of the run."""
    replies = Replies(run.plan, run.samples)
    scored: dict[tuple[str, str], bytearray] = {}
    for judgement in journal.read(JUDGEMENT_BRIEFS, run.model, run.run_id):
        reply = replies.find(judgement.key, judgement.sample)
        decided = judgement.score is not None or judgement.outcome is Outcome.UNDECIDED
        if decided and reply is not None:
            by = (judgement.judge, judgement.judge_version)
            scored.setdefault(by, bytearray(len(replies)))[reply] = True
    return any(all(by_one) for by_one in scored.values())


class _DatedJudgement(JudgementBrief):
    """Of a judgement, also when it was given."""

    finished_at: AwareDatetime


_DATED_JUDGEMENTS = Stream(JUDGED.name, _DatedJudgement)


def failed_items(journal: Journal, run: Run) -> set[ItemKey]:
    """The items of which any reply is missing, has no result, or was found wrong.

    What is only not judged yet is none of them: nothing is wrong with it. Who finds replies wrong
    is one version of a judge, by the rule of `run_standing` as far as the journal tells: the one
    with the most scores, then the one last at work. As in `judged`, its latest score on a reply
    counts, and a later failure to judge does not undo it.
    """
    results = _last_results(journal, run)
    scores: dict[tuple[str, str], dict[str, tuple[datetime, float]]] = {}
    for one in journal.read(_DATED_JUDGEMENTS, run.model, run.run_id):
        if one.score is not None and one.prediction_id in results:
            told = scores.setdefault((one.judge, one.judge_version), {})
            word = (one.finished_at, one.score)
            told[one.prediction_id] = max(told.get(one.prediction_id, word), word)
    standing = max(scores.values(), key=_most_and_last_at_work, default={})
    wrong = {prediction_id for prediction_id, (_, score) in standing.items() if score < 1}
    fine = {reply for prediction_id, reply in results.items() if prediction_id not in wrong}
    samples = range(run.samples)
    return {key for key in run.plan if not all(ReplyKey(key, one) in fine for one in samples)}


def _most_and_last_at_work(scores: Mapping[str, tuple[datetime, float]]) -> tuple[int, datetime]:
    return len(scores), max(at for at, _ in scores.values())


def _last_results(journal: Journal, run: Run) -> dict[str, ReplyKey]:
    """The ids of the predictions that are the last word on a reply and a result."""
    last: dict[ReplyKey, tuple[datetime, str | None]] = {}
    for one in journal.read(PREDICTION_BRIEFS, run.model, run.run_id):
        reply = ReplyKey(one.key, one.sample)
        if reply not in last or last[reply][0] <= one.finished_at:
            last[reply] = (one.finished_at, one.prediction_id if one.outcome.is_result else None)
    return {name: reply for reply, (_, name) in last.items() if name is not None}


def _has_plan(past: PastRun, wanted: Run, text: bytes, journal: Journal) -> bool:
    if past.plan_text == text:
        return True
    # Another text may still mean the same, and a run taken for another would be paid for again.
    alike = past.matches(wanted.model_copy(update={"plan": ()}))
    return alike and _whole(past, journal).plan == wanted.plan


def _whole(run: Run, journal: Journal) -> Run:
    return next(journal.read_file(RUNS, run.model, run.run_id))

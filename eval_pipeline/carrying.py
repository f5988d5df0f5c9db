"""Answers of earlier runs that need not be asked for again, taken over into a new run."""

import logging
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace

from eval_pipeline.benchmark import past_items
from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.history import (
    JUDGEMENT_BRIEFS,
    PAST_RUNS,
    PREDICTION_BRIEFS,
    JudgementBrief,
    LastWords,
    Pending,
    PredictionBrief,
    ReplyKey,
)
from eval_pipeline.journal import JUDGED, PREDICTIONS, VERSIONS, Journal
from eval_pipeline.kinds import graded_alike
from eval_pipeline.records import ItemKey, Judgement, Prediction, Run

log = logging.getLogger(__name__)


def carry_over(
    journal: Journal, run: Run, pending: Pending, request_hash: Callable[[ReplyKey], str]
) -> Pending:
    """Takes over what was asked in exactly the same way before; the rest is still pending."""
    unjudged = []
    for earlier in _forebears(journal, run):
        if not pending:
            break
        found = _Carrying.of(journal, run, earlier, pending, request_hash)
        # Verdicts are paid for too: an answer without one waits for a run that has both.
        judged = found.judged()
        if judged.count < found.count:
            unjudged.append(earlier)
        pending = judged.write(pending)
        del found, judged  # so that the numbers of one run only are in memory
    for earlier in unjudged:
        if not pending:
            break
        pending = _Carrying.of(journal, run, earlier, pending, request_hash).write(pending)
    return pending


def _forebears(journal: Journal, run: Run) -> Iterator[Run]:
    """The runs that this one carries over, then those which these were to carry over, and so on."""
    seen, ahead = {run.run_id}, deque(run.carry_from)
    while ahead:
        run_id = ahead.popleft()
        if run_id not in seen and journal.exists(PAST_RUNS, run.model, run_id):
            earlier = next(journal.read_file(PAST_RUNS, run.model, run_id)).with_plan(())
            ahead.extend(earlier.carry_from)
            yield earlier
        seen.add(run_id)


@dataclass(frozen=True)
class _Carrying:
    """What is taken over from one run into another, read once more for each file it goes to."""

    journal: Journal
    run: Run
    earlier: Run
    words: LastWords
    # By the reply's number, a short form of the prediction's id; 0 for what is not taken over.
    ids: "array[int]"
    # By the item's place, whether its verdicts are taken over too.
    unchanged: Sequence[int]
    name: str

    @classmethod
    def of(
        cls,
        journal: Journal,
        run: Run,
        earlier: Run,
        pending: Pending,
        request_hash: Callable[[ReplyKey], str],
    ) -> "_Carrying":
        words = LastWords(run.plan, (), run.samples)
        briefs = journal.read(PREDICTION_BRIEFS, earlier.model, earlier.run_id)
        ids = _asked_alike(words, briefs, pending, request_hash)
        unchanged = _unchanged(journal, run, earlier, ids)
        # The same names and ids each time, so that doing it again after a crash changes nothing.
        name = f"carried-from-{earlier.run_id}-{fingerprint(ids.tobytes().hex())}"
        return cls(journal, run, earlier, words, ids, unchanged, name)

    @property
    def count(self) -> int:
        """How many answers are taken over."""
        return len(self.ids) - self.ids.count(0)

    def judged(self) -> "_Carrying":
        """Of these, the answers that have a verdict which is taken over with them."""
        ids = _zeros(self.ids)
        if self.count:
            where = (JUDGEMENT_BRIEFS, self.earlier.model, self.earlier.run_id)
            for verdict in self.journal.read(*where):
                if (reply := self._reply(verdict)) is not None:
                    ids[reply] = self.ids[reply]
        return replace(self, ids=ids)

    def write(self, pending: Pending) -> Pending:
        """The verdicts first, so that no answer is there without those it already has."""
        if self.count:
            where = (self.run.model, self.run.run_id, self.name)
            self.journal.write_whole(JUDGED, *where, records=self._judgements())
            self.journal.write_whole(PREDICTIONS, *where, records=self._predictions())
            told = (self.run.model, self.count, self.earlier.run_id[:8])
            log.info("%s: %d answers are those of run %s", *told)
        return pending.without(self.ids)

    def _predictions(self) -> Iterator[Prediction]:
        everything = self.journal.read(PREDICTIONS, self.earlier.model, self.earlier.run_id)
        for number, one in enumerate(everything):
            reply = self.words.replies.find(one.key, one.sample)
            if reply is None or not self.ids[reply]:
                continue
            if self.words.is_last(number, one.key, one.sample):
                yield one.model_copy(
                    update={
                        "run_id": self.run.run_id,
                        "prediction_id": self._new_id(one.prediction_id),
                        "carried_from": one.carried_from or self.earlier.run_id,
                    }
                )

    def _judgements(self) -> Iterator[Judgement]:
        for verdict in self.journal.read(JUDGED, self.earlier.model, self.earlier.run_id):
            if self._reply(verdict) is not None:
                yield verdict.model_copy(
                    update={
                        "run_id": self.run.run_id,
                        "prediction_id": self._new_id(verdict.prediction_id),
                        "carried_from": verdict.carried_from or self.earlier.run_id,
                    }
                )

    def _reply(self, verdict: Judgement | JudgementBrief) -> int | None:
        """The number of the reply with which this verdict is taken over."""
        reply = self.words.replies.find(ItemKey(verdict.suite, verdict.item_id), verdict.sample)
        if reply is None or verdict.score is None:
            return None
        if not self.unchanged[reply % len(self.unchanged)]:
            return None
        return reply if self.ids[reply] == _short(verdict.prediction_id) else None

    def _new_id(self, prediction_id: str) -> str:
        return fingerprint(prediction_id, self.run.run_id)


def _asked_alike(
    words: LastWords,
    briefs: Iterable[PredictionBrief],
    pending: Pending,
    request_hash: Callable[[ReplyKey], str],
) -> "array[int]":
    """The ids of the last words that are results and would be asked for in the same way."""
    # Only numbers are gathered: the answers of a large run would not fit into memory.
    ids, hashes, alike = (_zeros(words.replies) for _ in range(3))
    for number, one in enumerate(briefs):
        if (reply := words.note(number, one)) is not None:
            ids[reply] = _short(one.prediction_id) if one.outcome.is_result else 0
            hashes[reply] = _short(one.request_hash)
    for reply in pending.numbers:
        if ids[reply] and hashes[reply] == _short(request_hash(pending.reply(reply))):
            alike[reply] = ids[reply]
    return alike


def _unchanged(journal: Journal, run: Run, earlier: Run, ids: "array[int]") -> Sequence[int]:
    """Whether each item is judged in the same way: same judge prompt, question, reference."""
    plan = run.plan
    before, after = earlier.benchmark_version, run.benchmark_version
    if before == after:
        return b"\1" * len(plan)
    prompts = {one.benchmark_version: one.judge_prompt_hash for one in journal.read(VERSIONS)}
    if not any(ids) or prompts.get(before) != prompts[after]:
        return bytes(len(plan))
    old, new = past_items(journal, before), past_items(journal, after)
    return bytes(
        any(ids[place :: len(plan)]) and key in old and graded_alike(old[key], new[key])
        for place, key in enumerate(plan)
    )


def _short(text: str) -> int:
    """Eight bytes that stand for the text."""
    return int(fingerprint(text), 16)


def _zeros(replies: Sized) -> "array[int]":
    """A number for each of them."""
    return array("Q", [0]) * len(replies)

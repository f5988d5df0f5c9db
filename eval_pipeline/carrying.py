"""Answers of an earlier run that need not be asked for again, taken over into a new run."""

import logging
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eval_pipeline.benchmark import past_items
from eval_pipeline.history import PAST_RUNS, PREDICTION_BRIEFS, LastWords, Pending, ReplyKey
from eval_pipeline.journal import JUDGED, PREDICTIONS, VERSIONS, Journal
from eval_pipeline.records import Item, ItemKey, Judgement, Prediction, Run, fingerprint

log = logging.getLogger(__name__)


def carry_over(
    journal: Journal, run: Run, pending: Pending, request_hash: Callable[[ReplyKey], str]
) -> Pending:
    """Takes over what was asked in exactly the same way before; the rest is still pending."""
    for earlier in _forebears(journal, run):
        if not pending:
            break
        carrying = _Carrying.of(journal, run, earlier, pending, request_hash)
        if count := len(pending) - len(left := pending.without(carrying.ids)):
            carrying.write()
            log.info("%s: %d answers are those of run %s", run.model, count, earlier.run_id[:8])
        pending = left
    return pending


def _forebears(journal: Journal, run: Run) -> Iterator[Run]:
    """The run that this one carries over, then the one which that was to carry over, and so on."""
    seen = {run.run_id}
    while (run_id := run.carry_from) and run_id not in seen:
        if not journal.exists(PAST_RUNS, run.model, run_id):
            return
        seen.add(run_id)
        run = next(journal.read_file(PAST_RUNS, run.model, run_id))
        yield run


@dataclass(frozen=True)
class _Carrying:
    """What is taken over from one run into another, read once more for each file it goes to."""

    journal: Journal
    run: Run
    earlier: Run
    words: LastWords
    # By the reply's number, a short form of the prediction's id; 0 for what is not taken over.
    ids: "array[int]"

    @classmethod
    def of(
        cls,
        journal: Journal,
        run: Run,
        earlier: Run,
        pending: Pending,
        request_hash: Callable[[ReplyKey], str],
    ) -> "_Carrying":
        # Only numbers are gathered: the answers of a large run would not fit into memory.
        where = (PREDICTION_BRIEFS, earlier.model, earlier.run_id)
        words = LastWords(run.plan, journal.read(*where), run.samples)
        ids = array("Q", [0]) * len(words.replies)
        is_pending = bytearray(len(words.replies))
        for reply in pending.numbers:
            is_pending[reply] = True
        for number, one in enumerate(journal.read(*where)):
            found = words.replies.find(one.key, one.sample)
            if found is None or not is_pending[found] or not one.outcome.is_result:
                continue
            if not words.is_last(number, one.key, one.sample):
                continue
            if request_hash(pending.reply(found)) == one.request_hash:
                ids[found] = _short(one.prediction_id)
        return cls(journal, run, earlier, words, ids)

    def write(self) -> None:
        """The verdicts first, so that no answer is there without those it already has."""
        # The same names and ids each time, so that doing it again after a crash changes nothing.
        which = fingerprint(self.ids.tobytes().hex())
        name = f"carried-from-{self.earlier.run_id}-{which}"
        where = (self.run.model, self.run.run_id, name)
        self.journal.write_whole(JUDGED, *where, records=self._judgements())
        self.journal.write_whole(PREDICTIONS, *where, records=self._predictions())

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
        unchanged = self._unchanged()
        for verdict in self.journal.read(JUDGED, self.earlier.model, self.earlier.run_id):
            key = ItemKey(verdict.suite, verdict.item_id)
            reply = self.words.replies.find(key, verdict.sample)
            if reply is None or verdict.score is None or not unchanged[reply % len(unchanged)]:
                continue
            if self.ids[reply] == _short(verdict.prediction_id):
                yield verdict.model_copy(
                    update={
                        "run_id": self.run.run_id,
                        "prediction_id": self._new_id(verdict.prediction_id),
                        "carried_from": verdict.carried_from or self.earlier.run_id,
                    }
                )

    def _unchanged(self) -> Sequence[int]:
        """Whether each item is judged in the same way: same judge prompt, question, reference."""
        plan = self.run.plan
        before, after = self.earlier.benchmark_version, self.run.benchmark_version
        if before == after:
            return b"\1" * len(plan)
        versions = self.journal.read(VERSIONS)
        prompts = {one.benchmark_version: one.judge_prompt_hash for one in versions}
        if prompts[after] != prompts[before]:
            return bytes(len(plan))
        old, new = past_items(self.journal, before), past_items(self.journal, after)
        return bytes(
            any(self.ids[place :: len(plan)]) and key in old and _asks_the_same(old[key], new[key])
            for place, key in enumerate(plan)
        )

    def _new_id(self, prediction_id: str) -> str:
        return fingerprint(prediction_id, self.run.run_id)


def _asks_the_same(one: Item, other: Item) -> bool:
    return (one.question, one.answer) == (other.question, other.answer)


def _short(prediction_id: str) -> int:
    """Eight bytes that stand for the id."""
    return int(fingerprint(prediction_id), 16)

"""Answers of earlier runs that need not be asked for again, taken over into a new run."""

import logging
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from eval_pipeline.evaluation.state import (
    JUDGEMENT_BRIEFS,
    PAST_RUNS,
    PREDICTION_BRIEFS,
    JudgementBrief,
    LastWords,
    Pending,
    PredictionBrief,
    ReplyKey,
)
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import DIAGNOSES, JUDGED, PREDICTIONS, RECLASSIFIED, VERSIONS, Journal
from eval_pipeline.records.diagnosis import Diagnosis, Reclassification
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.suites.benchmark import Benchmark, past_items, past_version
from eval_pipeline.suites.kinds import gaps_hash, graded_alike

log = logging.getLogger(__name__)
Alike = Callable[[Run, ReplyKey, int], bool]
"""Whether a reply would be asked for as in an earlier run, of whose request the `short` hash is."""
Unchanged = Callable[[Run, Run, "array[int]"], Sequence[int]]
"""By the item's place in a run, whether verdicts of an earlier run still hold for it."""


def carry_over(
    journal: Journal, run: Run, pending: Pending, request_hash: Callable[[ReplyKey], str]
) -> Pending:
    """Takes over what was asked in exactly the same way before; the rest is still pending."""

    def alike(_earlier: Run, reply: ReplyKey, asked: int) -> bool:
        return asked == short(request_hash(reply))

    for found in _found(journal, run, pending, alike, partial(_unchanged, journal)):
        pending = found.write(pending)
        del found  # so that the numbers of one run only are in memory
    return pending


@dataclass(frozen=True)
class Carried:
    """What would be taken over: numbers of replies, and for each judge of those it has judged."""

    replies: Set[int]
    judged: Mapping[tuple[str, str], Set[int]]


def would_carry(
    journal: Journal,
    run: Run,
    pending: Pending,
    alike: Alike,
    unchanged: Unchanged,
) -> Carried:
    """What `carry_over` would take over; nothing is written, and the run need not be open yet."""
    replies: set[int] = set()
    judged: dict[tuple[str, str], set[int]] = defaultdict(set)
    for found in _found(journal, run, pending, alike, unchanged):
        replies.update(reply for reply, taken in enumerate(found.ids) if taken)
        for reply, verdict in found.verdicts():
            judged[verdict.judge, verdict.judge_version].add(reply)
    return Carried(replies, judged)


def _found(
    journal: Journal,
    run: Run,
    pending: Pending,
    alike: Alike,
    unchanged: Unchanged,
) -> "Iterator[_Carrying]":
    """What there is in each earlier run of what no other one has."""
    unjudged = []
    for earlier in _forebears(journal, run):
        if not pending:
            break
        found = _Carrying.of(journal, run, earlier, pending, alike, unchanged=unchanged)
        # Verdicts are paid for too: an answer without one waits for a run that has both.
        judged = found.judged()
        if judged.count < found.count:
            unjudged.append(earlier)
        pending = pending.without(judged.ids)
        yield judged
        del found, judged
    for earlier in unjudged:
        if not pending:
            break
        found = _Carrying.of(journal, run, earlier, pending, alike, unchanged=unchanged)
        pending = pending.without(found.ids)
        yield found


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
        alike: Alike,
        *,
        unchanged: Unchanged,
    ) -> "_Carrying":
        words = LastWords(run.plan, (), run.samples)
        briefs = journal.read(PREDICTION_BRIEFS, earlier.model, earlier.run_id)
        ids = _asked_alike(words, briefs, pending, partial(alike, earlier))
        # The same names and ids each time, so that doing it again after a crash changes nothing.
        name = f"carried-from-{earlier.run_id}-{fingerprint(ids.tobytes().hex())}"
        return cls(journal, run, earlier, words, ids, unchanged(run, earlier, ids), name)

    @property
    def count(self) -> int:
        """How many answers are taken over."""
        return len(self.ids) - self.ids.count(0)

    def judged(self) -> "_Carrying":
        """Of these, the answers that have a verdict which is taken over with them."""
        ids = _zeros(self.ids)
        for reply, _ in self.verdicts():
            ids[reply] = self.ids[reply]
        return replace(self, ids=ids)

    def verdicts(self) -> Iterator[tuple[int, JudgementBrief]]:
        """The verdicts that are taken over, each with the number of its reply."""
        if self.count:
            where = (JUDGEMENT_BRIEFS, self.earlier.model, self.earlier.run_id)
            for verdict in self.journal.read(*where):
                if (reply := self._reply(verdict)) is not None:
                    yield reply, verdict

    def write(self, pending: Pending) -> Pending:
        """The answers last, so that none is there without the verdicts and reasons it has."""
        if self.count:
            where = (self.run.model, self.run.run_id, self.name)
            self.journal.write_whole(JUDGED, *where, records=self._judgements())
            if diagnoses := list(self._diagnoses()):
                self.journal.write_whole(DIAGNOSES, *where, records=diagnoses)
            if said := list(self._reclassified()):
                self.journal.write_whole(RECLASSIFIED, *where, records=said)
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

    def _diagnoses(self) -> Iterator[Diagnosis]:
        """Why replies were wrong was paid for too; known faults of the item may be others now."""
        said = self.journal.read(DIAGNOSES, self.earlier.model, self.earlier.run_id)
        found = [one for one in said if one.explanation and self._number(one) is not None]
        items = past_items(self.journal, self.run.benchmark_version) if found else {}
        for one in found:
            if one.gaps_hash == gaps_hash(items[ItemKey(one.suite, one.item_id)]):
                yield one.model_copy(
                    update={
                        "run_id": self.run.run_id,
                        "prediction_id": self._new_id(one.prediction_id),
                        "carried_from": one.carried_from or self.earlier.run_id,
                    }
                )

    def _reclassified(self) -> Iterator[Reclassification]:
        """What people say of an item, as long as any of its replies is the same."""
        items, taken = len(self.run.plan), {n for n, one in enumerate(self.ids) if one}
        for one in self.journal.read(RECLASSIFIED, self.earlier.model, self.earlier.run_id):
            samples = range(self.run.samples) if one.sample is None else [one.sample]
            numbers = {self.words.replies.find(ItemKey(one.suite, one.item_id), s) for s in samples}
            numbers = {n for n in numbers & taken if n is not None and self.unchanged[n % items]}
            if numbers:
                yield one.model_copy(update={"run_id": self.run.run_id})

    def _reply(self, verdict: Judgement | JudgementBrief) -> int | None:
        """The number of the reply with which this verdict is taken over."""
        return None if verdict.score is None else self._number(verdict)

    def _number(self, said: Judgement | JudgementBrief | Diagnosis) -> int | None:
        """The number of the reply that it is about, if it is taken over with what is said of it."""
        reply = self.words.replies.find(ItemKey(said.suite, said.item_id), said.sample)
        if reply is None or not self.unchanged[reply % len(self.unchanged)]:
            return None
        return reply if self.ids[reply] == short(said.prediction_id) else None

    def _new_id(self, prediction_id: str) -> str:
        return fingerprint(prediction_id, self.run.run_id)


def _asked_alike(
    words: LastWords,
    briefs: Iterable[PredictionBrief],
    pending: Pending,
    is_alike: Callable[[ReplyKey, int], bool],
) -> "array[int]":
    """The ids of the last words that are results and would be asked for in the same way."""
    # Only numbers are gathered: the answers of a large run would not fit into memory.
    ids, hashes, alike = (_zeros(words.replies) for _ in range(3))
    for number, one in enumerate(briefs):
        if (reply := words.note(number, one)) is not None:
            ids[reply] = short(one.prediction_id) if one.outcome.is_result else 0
            hashes[reply] = short(one.request_hash)
    for reply in pending.numbers:
        if ids[reply] and is_alike(pending.reply(reply), hashes[reply]):
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


def short(text: str) -> int:
    """Eight bytes that stand for the text."""
    return int(fingerprint(text), 16)


def _zeros(replies: Sized) -> "array[int]":
    """A number for each of them."""
    return array("Q", [0]) * len(replies)


ENOUGH_ALIKE = 50
"""So many requests of one kind, compared with earlier ones, speak for the others."""


class _Same(NamedTuple):
    """Items of one version that are as they were in another: as a whole, and to the grader."""

    items: Set[ItemKey]
    graded: Set[ItemKey]


class Versions:
    """The items of benchmark versions, each read once for all models."""

    def __init__(self, benchmark: Benchmark, journal: Journal) -> None:
        self._journal = journal
        self._known = {benchmark.version.benchmark_version: benchmark}
        self._same: dict[tuple[str, str], _Same] = {}

    def items(self, version: str) -> Mapping[ItemKey, Item]:
        """Those that a run of that version was or will be asked."""
        return self.benchmark(version).items

    def unchanged(self, run: Run, earlier: Run, _ids: "array[int]") -> Sequence[int]:
        """By the item's place, whether verdicts of the earlier run hold; as in `carrying`."""
        if run.benchmark_version == earlier.benchmark_version:
            return b"\1" * len(run.plan)
        graded = self._compare(earlier, run).graded
        return bytes(key in graded for key in run.plan)

    def is_same(self, key: ItemKey, run: Run, earlier: Run) -> bool:
        """Whether the item is still what it was."""
        same_version = run.benchmark_version == earlier.benchmark_version
        return same_version or key in self._compare(earlier, run).items

    def benchmark(self, version: str) -> Benchmark:
        """The current one, or one that the journal knows."""
        if version not in self._known:
            past = past_version(self._journal, version), past_items(self._journal, version)
            self._known[version] = Benchmark(*past)
        return self._known[version]

    def _compare(self, earlier: Run, run: Run) -> _Same:
        pair = (earlier.benchmark_version, run.benchmark_version)
        if pair not in self._same:
            self._same[pair] = _compare(*map(self.benchmark, pair))
        return self._same[pair]


def _compare(before: Benchmark, after: Benchmark) -> _Same:
    same, graded = set(), set()
    judged_alike = before.version.judge_prompt_hash == after.version.judge_prompt_hash
    for key in after.items:
        if key not in before.items:
            continue
        old, new = before.items[key], after.items[key]
        if old == new:
            same.add(key)
        if judged_alike and graded_alike(old, new):
            graded.add(key)
    return _Same(same, graded)


@dataclass(frozen=True)
class Likeness:
    """Whether replies of a run would be asked for as before: to compare all would take minutes."""

    run: Run
    versions: Versions
    request_hash: Callable[[ReplyKey], str]
    _found: dict[tuple[str, str, int], Counter[bool]] = field(default_factory=dict)

    def __call__(self, earlier: Run, reply: ReplyKey, asked: int) -> bool:
        """As `carrying` wants to know it; what says the same again and again is believed."""
        suite = reply.key.suite
        if suite in self._coding or not self.versions.is_same(reply.key, self.run, earlier):
            return self._is_alike(reply, asked)
        found = self._found.setdefault((earlier.run_id, suite, reply.sample), Counter())
        if len(found) == 1 and found.total() >= ENOUGH_ALIKE:
            return found[True] > 0
        alike = self._is_alike(reply, asked)
        found[alike] += 1
        return alike

    def _is_alike(self, reply: ReplyKey, asked: int) -> bool:
        return asked == short(self.request_hash(reply))

    @property
    def _coding(self) -> Set[str]:
        """Tasks are few, and what is said beside them depends on more than their suite."""
        return self.versions.benchmark(self.run.benchmark_version).version.coding_suites

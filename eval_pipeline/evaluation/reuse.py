"""Answers of earlier runs that need not be asked for again, reused in a new run."""

import logging
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple, TypeVar

from eval_pipeline.evaluation.state import (
    JUDGEMENT_BRIEFS,
    PAST_RUNS,
    PREDICTION_BRIEFS,
    FinalPredictions,
    JudgeKey,
    JudgementBrief,
    Pending,
    Replies,
    ReplyKey,
)
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import DIAGNOSES, JUDGED, PREDICTIONS, RECLASSIFIED, Journal
from eval_pipeline.records.diagnosis import Diagnosis, Reclassification
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.suites.benchmark import Benchmark, past_items, past_version
from eval_pipeline.suites.kinds import gaps_hash, graded_alike

log = logging.getLogger(__name__)
ENOUGH_ALIKE = 50
"""How many compared requests of one kind speak for the others."""
RequestHash = Callable[[ReplyKey], str]
A = TypeVar("A", Prediction, Judgement, Diagnosis)


def reuse_answers(
    journal: Journal, run: Run, pending: Pending, request_hash: RequestHash
) -> Pending:
    """Copy what was asked in exactly the same way before; return what is still pending."""
    for found in _Search(journal, run, request_hash, Versions(journal)).find(pending):
        pending = found.write(pending)
        del found  # so that the numbers of one run only are in memory
    return pending


@dataclass(frozen=True)
class ReusableReplies:
    """The numbers of the replies that can be reused, and which of them each judge has judged."""

    replies: Set[int]
    judged: Mapping[JudgeKey, Set[int]]


NOTHING_REUSED = ReusableReplies(frozenset(), {})


def find_reusable(
    journal: Journal, run: Run, pending: Pending, request_hash: RequestHash, versions: "Versions"
) -> ReusableReplies:
    """Return what `reuse_answers` would copy; nothing is written, the run need not be open yet.

    Of many unchanged questions only some requests are compared: all would take minutes.
    """
    replies: set[int] = set()
    judged: dict[JudgeKey, set[int]] = defaultdict(set)
    for found in _Search(journal, run, request_hash, versions, ENOUGH_ALIKE).find(pending):
        replies.update(reply for reply, taken in enumerate(found.ids) if taken)
        for reply, verdict in found.verdicts():
            judged[verdict.by].add(reply)
    return ReusableReplies(replies, judged)


@dataclass(frozen=True)
class _Search:
    """A search through earlier runs for answers that a run can reuse."""

    journal: Journal
    run: Run
    request_hash: RequestHash
    versions: "Versions"
    # The number of comparisons with one result after which the others are taken to have it too.
    enough: int | None = None
    _results: dict[tuple[str, str, int], Counter[bool]] = field(
        default_factory=lambda: defaultdict(Counter)
    )

    def find(self, pending: Pending) -> "Iterator[_ReusedAnswers]":
        """Yield, per earlier run, the reusable answers not found in a newer one."""
        unjudged: list[Run] = []
        # Verdicts are paid for too: an answer without one waits for a run that has both.
        first = ((run, True) for run in self._ancestors())
        for earlier, is_first in chain(first, ((run, False) for run in unjudged)):
            if not pending:
                return
            found = self._read(earlier, pending)
            count = found.count
            if is_first and (found := found.judged()).count < count:
                unjudged.append(earlier)
            pending = pending.without(found.ids)
            yield found
            del found

    def _ancestors(self) -> Iterator[Run]:
        """Yield the runs whose answers this one reuses, then those whose answers they reuse."""
        model, seen, ahead = self.run.model, {self.run.run_id}, deque(self.run.carry_from)
        while ahead:
            run_id = ahead.popleft()
            if run_id not in seen and self.journal.exists(PAST_RUNS, model, run_id):
                earlier = next(self.journal.read_file(PAST_RUNS, model, run_id)).with_plan(())
                ahead.extend(earlier.carry_from)
                yield earlier
            seen.add(run_id)

    def _read(self, earlier: Run, pending: Pending) -> "_ReusedAnswers":
        # Only numbers are gathered: the answers of a large run would not fit into memory.
        run, finals = self.run, FinalPredictions(self.run.plan, samples=self.run.samples)
        found, hashes, ids = (_zeros(finals.replies) for _ in range(3))
        for one in self.journal.read(PREDICTION_BRIEFS, earlier.model, earlier.run_id):
            if (reply := finals.add(one)) is not None:
                found[reply] = short(one.prediction_id) if one.outcome.is_result else 0
                hashes[reply] = short(one.request_hash)
        if candidates := [reply for reply in pending.numbers if found[reply]]:
            matches = self._comparison(earlier, pending)
            for reply in candidates:
                ids[reply] = found[reply] if matches(reply, hashes[reply]) else 0
        unchanged = self.versions.compare(earlier, run).graded if any(ids) else bytes(len(run.plan))
        # The same names and ids each time, so that writing again after a crash changes nothing.
        name = f"carried-from-{earlier.run_id}-{fingerprint(ids.tobytes().hex())}"
        return _ReusedAnswers(self.journal, run, earlier, finals.replies, ids, unchanged, name)

    def _comparison(self, earlier: Run, pending: Pending) -> Callable[[int, int], bool]:
        """Return whether a reply would be asked for by the request with this `short` hash."""

        def is_same(number: int, asked: int) -> bool:
            return asked == short(self.request_hash(pending.reply(number)))

        if self.enough is None:
            return is_same
        enough, unchanged = self.enough, self.versions.compare(earlier, self.run).items
        # Coding tasks are few and differ.
        coding = self.versions.benchmark(self.run.benchmark_version).version.coding_suites

        def is_alike(number: int, asked: int) -> bool:
            key, sample = pending.reply(number)
            if key.suite in coding or not unchanged[number % len(unchanged)]:
                return is_same(number, asked)
            known = self._results[earlier.run_id, key.suite, sample]
            if len(known) == 1 and known.total() >= enough:
                return known[True] > 0
            result = is_same(number, asked)
            known[result] += 1
            return result

        return is_alike


@dataclass(frozen=True)
class _ReusedAnswers:
    """The answers one run takes from another, read once more for each file they go to."""

    journal: Journal
    run: Run
    earlier: Run
    replies: Replies
    # By the reply's number, a short form of the prediction's id; 0 for what is not reused.
    ids: "array[int]"
    # By the item's place, whether its verdicts are reused too.
    unchanged: Sequence[int]
    name: str

    @property
    def count(self) -> int:
        """How many answers are reused."""
        return len(self.ids) - self.ids.count(0)

    def judged(self) -> "_ReusedAnswers":
        """Return those of the answers that have a verdict which is reused with them."""
        ids = _zeros(self.ids)
        for reply, _ in self.verdicts():
            ids[reply] = self.ids[reply]
        return replace(self, ids=ids)

    def verdicts(self) -> Iterator[tuple[int, JudgementBrief]]:
        """Yield the verdicts that are reused, each with the number of its reply."""
        if self.count:
            where = (JUDGEMENT_BRIEFS, self.earlier.model, self.earlier.run_id)
            for verdict in self.journal.read(*where):
                if verdict.score is not None and (reply := self._number(verdict)) is not None:
                    yield reply, verdict

    def write(self, pending: Pending) -> Pending:
        """Write the answers last, so that none is ever there without its verdicts and diagnoses."""
        if self.count:
            there = self.earlier.model, self.earlier.run_id
            where = self.run.model, self.run.run_id, self.name
            judgements = (
                self._copy(one)
                for one in self.journal.read(JUDGED, *there)
                if one.score is not None and self._number(one) is not None
            )
            self.journal.write_whole(JUDGED, *where, records=judgements)
            if diagnoses := list(self._diagnoses()):
                self.journal.write_whole(DIAGNOSES, *where, records=diagnoses)
            if said := list(self._reclassified()):
                self.journal.write_whole(RECLASSIFIED, *where, records=said)
            predictions = (
                self._copy(one)
                for one in self.journal.read(PREDICTIONS, *there)
                if (reply := self.replies.find(one.key, one.sample)) is not None
                and self.ids[reply] == short(one.prediction_id)
            )
            self.journal.write_whole(PREDICTIONS, *where, records=predictions)
            told = (self.run.model, self.count, self.earlier.run_id[:8])
            log.info("%s: %d answers are those of run %s", *told)
        return pending.without(self.ids)

    def _diagnoses(self) -> Iterator[Diagnosis]:
        """Yield diagnoses, which were paid for too, unless the item's known faults have changed."""
        said = self.journal.read(DIAGNOSES, self.earlier.model, self.earlier.run_id)
        found = [one for one in said if one.explanation and self._number(one) is not None]
        items = past_items(self.journal, self.run.benchmark_version) if found else {}
        for one in found:
            if one.gaps_hash == gaps_hash(items[one.key]):
                yield self._copy(one)

    def _reclassified(self) -> Iterator[Reclassification]:
        """Yield the classifications by people of items of which any reply is reused."""
        items, taken = len(self.run.plan), {n for n, one in enumerate(self.ids) if one}
        for one in self.journal.read(RECLASSIFIED, self.earlier.model, self.earlier.run_id):
            key = ItemKey(one.suite, one.item_id)
            samples = range(self.run.samples) if one.sample is None else [one.sample]
            numbers = {self.replies.find(key, sample) for sample in samples}
            if any(n is not None and self.unchanged[n % items] for n in numbers & taken):
                yield one.model_copy(update={"run_id": self.run.run_id})

    def _number(self, said: Judgement | JudgementBrief | Diagnosis) -> int | None:
        """Return the number of the reply that a record is about, if both are reused."""
        reply = self.replies.find(said.key, said.sample)
        if reply is None or not self.unchanged[reply % len(self.unchanged)]:
            return None
        return reply if self.ids[reply] == short(said.prediction_id) else None

    def _copy(self, one: A) -> A:
        """Return the record as one of the new run."""
        changes = {
            "run_id": self.run.run_id,
            "prediction_id": fingerprint(one.prediction_id, self.run.run_id),
            "carried_from": one.carried_from or self.earlier.run_id,
        }
        return one.model_copy(update=changes)


def short(text: str) -> int:
    """Return eight bytes that represent the text."""
    return int(fingerprint(text), 16)


def _zeros(replies: Sized) -> "array[int]":
    return array("Q", [0]) * len(replies)


class Unchanged(NamedTuple):
    """For each place in a plan, whether the item is unchanged, and whether its grading is."""

    items: Sequence[int]
    graded: Sequence[int]


class Versions:
    """The items of benchmark versions, and which of them have changed; cached."""

    def __init__(self, journal: Journal, current: Benchmark | None = None) -> None:
        self._journal = journal
        self._known = {current.version.benchmark_version: current} if current else {}
        self._compared: dict[tuple[str, str, tuple[ItemKey, ...]], Unchanged] = {}

    def benchmark(self, version: str) -> Benchmark:
        """Return the current one, or one that the journal knows."""
        if version not in self._known:
            past = past_version(self._journal, version), past_items(self._journal, version)
            self._known[version] = Benchmark(*past)
        return self._known[version]

    def compare(self, earlier: Run, run: Run) -> Unchanged:
        """Return which items of the run's plan are as they were in the earlier run's version."""
        before, after = earlier.benchmark_version, run.benchmark_version
        if before == after:
            return Unchanged(b"\1" * len(run.plan), b"\1" * len(run.plan))
        key = (before, after, run.plan)
        if key not in self._compared:
            old, new = self.benchmark(before), self.benchmark(after)
            same, graded = bytearray(len(run.plan)), bytearray(len(run.plan))
            same_prompt = old.version.judge_prompt_hash == new.version.judge_prompt_hash
            for place, item in enumerate(run.plan):
                if item in old.items:
                    was, now = old.items[item], new.items[item]
                    same[place] = was == now
                    graded[place] = same_prompt and graded_alike(was, now)
            self._compared[key] = Unchanged(same, graded)
        return self._compared[key]

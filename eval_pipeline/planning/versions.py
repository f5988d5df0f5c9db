"""Benchmark versions side by side: their items, and for which of them answers still hold."""

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from eval_pipeline.benchmark import Benchmark, past_items, past_version
from eval_pipeline.carrying import short
from eval_pipeline.history import ReplyKey
from eval_pipeline.journal import Journal
from eval_pipeline.kinds import graded_alike
from eval_pipeline.records import Item, ItemKey, Run

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

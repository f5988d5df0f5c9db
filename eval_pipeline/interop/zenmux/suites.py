"""Which benchmark version the questions of a results folder belong to."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from eval_pipeline.errors import MendableError
from eval_pipeline.hashing import RunningFingerprint
from eval_pipeline.interop.zenmux.convert import PROMPT_HASH, SOURCE
from eval_pipeline.journal import VERSIONS, Journal
from eval_pipeline.records.item import (
    PROTOCOL,
    BenchmarkVersion,
    ExamQuestion,
    Item,
    ItemKey,
    SuiteVersion,
)
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import Benchmark, keep, load_benchmark, past_items, version_hash
from eval_pipeline.suites.kinds import decisive

OWN = "zenmux-hle"
"""The suite of questions of which nothing is known here but what the results say."""
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Home:
    """A suite, in a version of the benchmark, that has all the questions."""

    benchmark: Benchmark
    suite: str

    @property
    def version(self) -> str:
        return self.benchmark.version.benchmark_version

    @property
    def several_suites(self) -> bool:
        return len(self.benchmark.version.suites) > 1

    def plan(self, ids: Set[str]) -> tuple[ItemKey, ...]:
        """These questions in the order of the data set."""
        keys = (key for key in self.benchmark.items if key.suite == self.suite)
        return tuple(key for key in keys if key.item_id in ids)


class Homes:
    """Where questions may belong: to the settings' suites, to earlier versions, to their own."""

    def __init__(self, journal: Journal, settings: Settings) -> None:
        self.journal = journal
        self.warning: str | None = None
        self._loaded = self._load(settings)

    def find(self, ids: Iterable[str]) -> Home | None:
        """The first that has all of them, those with the text of their questions before others."""
        wanted = frozenset(ids)
        if (loaded := self._loaded) and (home := _home_in(loaded, wanted)):
            keep(loaded, self.journal)
            return home
        found = [home for past in self._past() if (home := _home_in(past, wanted))]
        return next((one for one in found if one.suite != OWN), found[0] if found else None)

    def make(self, ids: Iterable[str], references: Mapping[str, str], at: datetime) -> Home:
        """A version of their own; it is older than any other, so that it never is the current."""
        if self._loaded and not self._versions():
            keep(self._loaded, self.journal)
        items = {ItemKey(OWN, one): _question(one, references.get(one, "")) for one in ids}
        benchmark = Benchmark(_version(items.values(), at), items)
        keep(benchmark, self.journal)
        return Home(benchmark, OWN)

    def _load(self, settings: Settings) -> Benchmark | None:
        try:
            return load_benchmark(settings)
        except MendableError as error:
            self.warning = f"The suites of the settings can not be loaded: {error}"
            return None

    def _versions(self) -> list[BenchmarkVersion]:
        return sorted(self.journal.read(VERSIONS), key=lambda one: one.loaded_at, reverse=True)

    def _past(self) -> Iterator[Benchmark]:
        seen: set[str] = set()
        for version in self._versions():
            if version.benchmark_version not in seen:
                seen.add(version.benchmark_version)
                yield Benchmark(version, past_items(self.journal, version.benchmark_version))


def _home_in(benchmark: Benchmark, wanted: Set[str]) -> Home | None:
    for suite in benchmark.version.suites:
        if suite.kind == "exam" and suite.items >= len(wanted):
            known = {key.item_id for key in benchmark.items if key.suite == suite.suite}
            if wanted <= known:
                return Home(benchmark, suite.suite)
    return None


def _question(item_id: str, reference: str) -> ExamQuestion:
    return ExamQuestion(
        suite=OWN,
        id=item_id,
        question="",
        image=None,
        answer=reference,
        answer_type="exactMatch",
        category=UNKNOWN,
        rationale="",
        raw_subject="",
    )


def _version(items: Iterable[Item], at: datetime) -> BenchmarkVersion:
    running, count = RunningFingerprint(), 0
    for item in items:
        running.add(decisive(item))
        count += 1
    version = BenchmarkVersion(
        benchmark_version="",
        suites=(SuiteVersion(suite=OWN, suite_version=running.value(), items=count),),
        answer_prompt_hash=SOURCE,
        judge_prompt_hash=PROMPT_HASH,
        protocol=PROTOCOL,
        loaded_at=at,
    )
    return version.model_copy(update={"benchmark_version": version_hash(version)})

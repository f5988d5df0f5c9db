"""Their benchmark versions as ours: of the tasks that runs planned, apart from every other one."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryFile

from eval_pipeline.hashing import RunningFingerprint, fingerprint
from eval_pipeline.interop.convex_scores.convert import SOURCE, moment
from eval_pipeline.interop.convex_scores.documents import RunDocument, VersionDocument
from eval_pipeline.interop.remote.versions import keep_version
from eval_pipeline.journal import VERSIONS, Journal
from eval_pipeline.journal.files import as_line
from eval_pipeline.records.coding import CodingTask, TaskConfig
from eval_pipeline.records.item import PROTOCOL, BenchmarkVersion, SuiteVersion
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import keep, load_benchmark, past_items, version_hash
from eval_pipeline.suites.kinds import decisive

IMPORTED = fingerprint(SOURCE)
"""In the place of a judge's prompt: by it an imported version is known."""
UNMINTED = "unminted"
LONGEST_KEY, SHORT = 40, 12
UNKNOWN_TASK = "(The text of the task is not part of the scores that were imported.)"
_NUMBERED = re.compile(r"\d{3}-")


@dataclass
class Cohort:
    """Runs that are of one benchmark version: what it is called, and the tasks that are all."""

    key: str
    tasks: frozenset[str]
    since: float
    minted: bool
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Under what it is published."""
        return f"{SOURCE} {self.key if len(self.key) <= LONGEST_KEY else self.key[:SHORT]}"


def cohorts_of(
    runs: Sequence[RunDocument], versions: Mapping[str, VersionDocument]
) -> dict[str, Cohort]:
    """Of which cohort each run is, by its id."""
    known = {one.version: one for one in versions.values() if _counts(one)}
    found: dict[str, Cohort] = {}
    of_version: defaultdict[str, list[RunDocument]] = defaultdict(list)
    for run in runs:
        version = versions.get(run.version or "")
        if version is not None and version.version in known:
            of_version[version.version].append(run)
    for name, own in of_version.items():
        since = known[name].since or own[0].created
        cohort = Cohort(name, _all(own, known[name]), since, minted=True)
        found |= {run.id: cohort for run in own if frozenset(run.planned) <= cohort.tasks}
    rest = [run for run in runs if run.id not in found]
    return found | _reconstructed(rest, minted=not known)


def _counts(version: VersionDocument) -> bool:
    return version.provenance != UNMINTED and bool(version.evals)


def _all(runs: Sequence[RunDocument], version: VersionDocument) -> frozenset[str]:
    """What most runs of the version's size planned; while there is none, what any run did."""
    full = Counter(plan for run in runs if len(plan := frozenset(run.planned)) == version.evals)
    if full:
        return full.most_common(1)[0][0]
    return frozenset(task for run in runs for task in run.planned)


def _reconstructed(runs: Sequence[RunDocument], *, minted: bool) -> dict[str, Cohort]:
    """Without versions, whoever planned at least as much as those before began one."""
    found: dict[str, Cohort] = {}
    by_plan: dict[frozenset[str], Cohort] = {}
    latest: Cohort | None = None
    for run in runs:
        plan = frozenset(run.planned)
        is_part = latest is not None and plan < latest.tasks
        if latest is None or not is_part:
            key = f"plan-{fingerprint(*sorted(plan))}"
            latest = by_plan.setdefault(plan, Cohort(key, plan, run.created, minted))
        found[run.id] = latest
    return found


@dataclass(frozen=True)
class Keeper:
    """Keeps versions; those that were imported before stay as they were."""

    journal: Journal
    suite: str
    tasks: Mapping[str, CodingTask]
    first_own_load: datetime
    publish: bool

    @classmethod
    def of(
        cls, journal: Journal, settings: Settings, wanted: Iterable[str], *, publish: bool
    ) -> "Keeper":
        """Loads the project's own benchmark first: what is imported must never be what is asked."""
        if not any(not _is_imported(one) for one in journal.read(VERSIONS)):
            keep(load_benchmark(settings), journal)
        own = [one for one in journal.read(VERSIONS) if not _is_imported(one)]
        suite, tasks = _suite_with(journal, own, frozenset(wanted))
        return cls(journal, suite, tasks, min(one.loaded_at for one in own), publish)

    def keep(self, cohort: Cohort) -> BenchmarkVersion:
        """The cohort's version, with its items in the journal."""
        version = self._known(cohort) or self._made(cohort)
        if cohort.minted and self.publish:
            later = version.loaded_at + timedelta(microseconds=1)
            named = version.model_copy(update={"minted_as": cohort.name, "loaded_at": later})
            self._write(named, ())
        return version

    def _known(self, cohort: Cohort) -> BenchmarkVersion | None:
        for one in self.journal.read(VERSIONS):
            if one.answer_prompt_hash == _prompt_hash(cohort) and one.minted_as is None:
                items = past_items(self.journal, one.benchmark_version)
                if cohort.tasks <= {key.item_id for key in items}:
                    return one
        return None

    def _made(self, cohort: Cohort) -> BenchmarkVersion:
        items = [self._item(name, cohort) for name in sorted(cohort.tasks)]
        hashed = RunningFingerprint()
        for item in items:
            hashed.add(decisive(item))
        suite = SuiteVersion(
            suite=items[0].suite, suite_version=hashed.value(), items=len(items), kind="coding"
        )
        version = BenchmarkVersion(
            benchmark_version="",
            suites=(suite,),
            answer_prompt_hash=_prompt_hash(cohort),
            judge_prompt_hash=IMPORTED,
            protocol=PROTOCOL,
            loaded_at=_before(self.first_own_load, moment(cohort.since)),
        )
        version = version.model_copy(update={"benchmark_version": version_hash(version)})
        self._write(version, items)
        return version

    def _write(self, version: BenchmarkVersion, items: Iterable[CodingTask]) -> None:
        with TemporaryFile() as file:
            file.writelines(map(as_line, (version, *items)))
            keep_version(self.journal, file)

    def _item(self, name: str, cohort: Cohort) -> CodingTask:
        """The task as the settings have it, if it is the same one; else what is known of it."""
        ours, text = self.tasks.get(name), cohort.texts.get(name, "").strip()
        if ours is not None and text in ("", ours.question):
            return ours
        category = name.partition("/")[0]
        return CodingTask(
            suite=self.suite,
            id=name,
            category=_NUMBERED.sub("", category, count=1) or category,
            question=text or UNKNOWN_TASK,
            toolchain="convex",
            config=TaskConfig(),
            answer={},
            grader={},
            grader_version=fingerprint(SOURCE, cohort.key),
        )


def _is_imported(version: BenchmarkVersion) -> bool:
    return version.judge_prompt_hash == IMPORTED


def _prompt_hash(cohort: Cohort) -> str:
    return fingerprint(SOURCE, cohort.key)


def _suite_with(
    journal: Journal, own: Sequence[BenchmarkVersion], wanted: frozenset[str]
) -> tuple[str, Mapping[str, CodingTask]]:
    """The suite of our latest version that has most of these tasks, if any has one."""
    latest = max(own, key=lambda version: version.loaded_at)
    suites: dict[str, dict[str, CodingTask]] = {}
    if latest.coding_suites:
        items = past_items(journal, latest.benchmark_version)
        for key in items:
            if key.item_id in wanted and isinstance(item := items[key], CodingTask):
                suites.setdefault(key.suite, {})[key.item_id] = item
    most = max(suites, key=lambda name: len(suites[name]), default=None)
    return (SOURCE, {}) if most is None else (most, suites[most])


def _before(first_own_load: datetime, since: datetime) -> datetime:
    """When it counts as loaded: in their order, and before anything of our own.

    What was loaded last is what is asked next, and what was published last is what the
    leaderboard shows: that is never to be an imported one where there is one of our own.
    """
    since = max(since, datetime(2000, 1, 2, tzinfo=UTC))
    if since < first_own_load - timedelta(seconds=2):
        return since
    later = max((since - first_own_load) / timedelta(days=1), 0.0)
    return first_own_load - timedelta(seconds=1 / (1 + later))

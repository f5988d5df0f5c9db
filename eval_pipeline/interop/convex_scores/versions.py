"""Benchmark versions of convex-evals as versions of ours, made of the tasks that runs planned."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from eval_pipeline.hashing import fingerprint
from eval_pipeline.interop.convex_scores.convert import SOURCE, moment
from eval_pipeline.interop.convex_scores.read import RunDocument, VersionDocument
from eval_pipeline.interop.remote.receive import Receiver
from eval_pipeline.interop.remote.versions import version_of
from eval_pipeline.journal import VERSIONS
from eval_pipeline.records.coding import CodingTask, TaskConfig
from eval_pipeline.records.item import BenchmarkVersion
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import keep, load_benchmark, past_items

IMPORTED = fingerprint(SOURCE)
"""The hash of the judge's prompt that only imported versions have."""
LONGEST_KEY, SHORT = 40, 12
UNKNOWN_TASK = "(The text of the task is not part of the scores that were imported.)"
_NUMBERED = re.compile(r"\d{3}-")


@dataclass
class Cohort:
    """The runs of one benchmark version: its name, and all its tasks."""

    key: str
    tasks: frozenset[str]
    since: float
    minted: bool
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name under which it is published."""
        return f"{SOURCE} {self.key if len(self.key) <= LONGEST_KEY else self.key[:SHORT]}"

    @property
    def hash(self) -> str:
        return fingerprint(SOURCE, self.key)


def cohorts_of(
    runs: Sequence[RunDocument], versions: Mapping[str, VersionDocument]
) -> dict[str, Cohort]:
    """Return the cohort of each run, by the run's id."""
    known = {
        one.version: one for one in versions.values() if one.provenance != "unminted" and one.evals
    }
    found: dict[str, Cohort] = {}
    of_version: defaultdict[str, list[RunDocument]] = defaultdict(list)
    for run in runs:
        version = versions.get(run.version or "")
        if version is not None and version.version in known:
            of_version[version.version].append(run)
    for name, own in of_version.items():
        since = known[name].since or own[0].created
        cohort = Cohort(name, _all_tasks(own, known[name]), since, minted=True)
        found |= {run.id: cohort for run in own if frozenset(run.planned) <= cohort.tasks}
    rest = [run for run in runs if run.id not in found]
    return found | _reconstructed(rest, minted=not known)


def _all_tasks(runs: Sequence[RunDocument], version: VersionDocument) -> frozenset[str]:
    """Return what most runs of the version's size planned; without any, what all runs planned."""
    full = Counter(plan for run in runs if len(plan := frozenset(run.planned)) == version.evals)
    if full:
        return full.most_common(1)[0][0]
    return frozenset(task for run in runs for task in run.planned)


def _reconstructed(runs: Sequence[RunDocument], *, minted: bool) -> dict[str, Cohort]:
    """Return cohorts by plan: a run begins one unless its plan is a part of the one before."""
    found: dict[str, Cohort] = {}
    by_plan: dict[frozenset[str], Cohort] = {}
    latest: Cohort | None = None
    for run in runs:
        plan = frozenset(run.planned)
        if latest is None or not plan < latest.tasks:
            key = f"plan-{fingerprint(*sorted(plan))}"
            latest = by_plan.setdefault(plan, Cohort(key, plan, run.created, minted))
        found[run.id] = latest
    return found


class VersionImporter:
    """Imports benchmark versions; those that were imported before stay as they were."""

    def __init__(
        self, here: Receiver, settings: Settings, wanted: Set[str], *, publish: bool
    ) -> None:
        """Load the project's own benchmark first, so that an imported one is never the current."""
        self._here = here
        self._publish = publish
        if not self._own_versions():
            keep(load_benchmark(settings), here.journal)
        own = self._own_versions()
        self._first_own_load = min(one.loaded_at for one in own)
        self._suite, self._tasks = self._suite_with(wanted, own)

    def keep(self, cohort: Cohort) -> BenchmarkVersion:
        """Return the cohort's version; it and its items are in the journal."""
        version = self._find(cohort) or self._make(cohort)
        if cohort.minted and self._publish:
            later = version.loaded_at + timedelta(microseconds=1)
            named = version.model_copy(update={"minted_as": cohort.name, "loaded_at": later})
            self._here.keep_version(named)
        return version

    def _own_versions(self) -> list[BenchmarkVersion]:
        versions = self._here.journal.read(VERSIONS)
        return [one for one in versions if one.judge_prompt_hash != IMPORTED]

    def _suite_with(
        self, wanted: Set[str], own: Sequence[BenchmarkVersion]
    ) -> tuple[str, Mapping[str, CodingTask]]:
        """Return the suite of our latest version that has most of these tasks, if any has one."""
        latest = max(own, key=lambda version: version.loaded_at)
        suites: defaultdict[str, dict[str, CodingTask]] = defaultdict(dict)
        if latest.coding_suites:
            items = past_items(self._here.journal, latest.benchmark_version)
            for key in items:
                if key.item_id in wanted and isinstance(item := items[key], CodingTask):
                    suites[key.suite][key.item_id] = item
        return max(suites.items(), key=lambda suite: len(suite[1]), default=(SOURCE, {}))

    def _find(self, cohort: Cohort) -> BenchmarkVersion | None:
        for one in self._here.journal.read(VERSIONS):
            if one.answer_prompt_hash == cohort.hash and one.minted_as is None:
                items = past_items(self._here.journal, one.benchmark_version)
                if cohort.tasks <= {key.item_id for key in items}:
                    return one
        return None

    def _make(self, cohort: Cohort) -> BenchmarkVersion:
        items = [self._item(name, cohort) for name in sorted(cohort.tasks)]
        loaded_at = _before(self._first_own_load, moment(cohort.since))
        version = version_of(items, cohort.hash, IMPORTED, loaded_at)
        self._here.keep_version(version, items)
        return version

    def _item(self, name: str, cohort: Cohort) -> CodingTask:
        """Return the settings' task if its text is the same; else what is known of the task."""
        ours, text = self._tasks.get(name), cohort.texts.get(name, "").strip()
        if ours is not None and text in ("", ours.question):
            return ours
        category = name.partition("/")[0]
        return CodingTask(
            suite=self._suite,
            id=name,
            category=_NUMBERED.sub("", category, count=1) or category,
            question=text or UNKNOWN_TASK,
            toolchain="convex",
            config=TaskConfig(),
            answer={},
            grader={},
            grader_version=cohort.hash,
        )


def _before(first_own_load: datetime, since: datetime) -> datetime:
    """Return when it counts as loaded: in their order, and before any version of our own.

    The version loaded last is asked next, and the version published last is on the leaderboard:
    neither is ever to be an imported one where there is one of our own.
    """
    since = max(since, datetime(2000, 1, 2, tzinfo=UTC))
    if since < first_own_load - timedelta(seconds=2):
        return since
    later = max((since - first_own_load) / timedelta(days=1), 0.0)
    return first_own_load - timedelta(seconds=1 / (1 + later))

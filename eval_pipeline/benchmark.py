"""Every suite's items and the benchmark version: what is asked, and what a pass means."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline.environment import SettingsError
from eval_pipeline.exam.dataset import load_questions
from eval_pipeline.exam.judge import check_prompt
from eval_pipeline.journal import ITEMS, VERSIONS, Journal, JournalError
from eval_pipeline.records import (
    PROTOCOL,
    BenchmarkVersion,
    Item,
    ItemKey,
    SuiteVersion,
    fingerprint,
    now,
)
from eval_pipeline.settings import Settings

# By name, so that a field which items get later does not change the version of older ones.
HASHED = {
    "id",
    "question",
    "image",
    "answer",
    "answer_type",
    "category",
    "rationale",
    "raw_subject",
}


@dataclass(frozen=True)
class Benchmark:
    """All items of one benchmark version."""

    version: BenchmarkVersion
    items: Mapping[ItemKey, Item]


def load_benchmark(settings: Settings) -> Benchmark:
    """Reads every suite of the settings; all of it or nothing."""
    suites = {suite.name: load_questions(suite, settings) for suite in settings.suites}
    versions = tuple(
        SuiteVersion(
            suite=name,
            suite_version=fingerprint(*(item.model_dump(include=HASHED) for item in items)),
            items=len(items),
        )
        for name, items in suites.items()
    )
    answer_prompt = fingerprint(
        read_prompt(settings, settings.experiments["default"].system_prompt)
    )
    judge_prompt = fingerprint(judge_prompt_of(settings))
    return Benchmark(
        version=BenchmarkVersion(
            benchmark_version=fingerprint(
                [suite.model_dump() for suite in versions], answer_prompt, judge_prompt, PROTOCOL
            ),
            suites=versions,
            answer_prompt_hash=answer_prompt,
            judge_prompt_hash=judge_prompt,
            protocol=PROTOCOL,
            loaded_at=now(),
        ),
        items={ItemKey(item.suite, item.id): item for items in suites.values() for item in items},
    )


def keep(benchmark: Benchmark, journal: Journal) -> None:
    """Journals the benchmark, unless it is the one that was loaded last."""
    newest = _newest(journal)
    if newest and newest.benchmark_version == benchmark.version.benchmark_version:
        return
    for suite in benchmark.version.suites:
        if not journal.exists(ITEMS, suite.suite, suite.suite_version):
            items = [item for key, item in benchmark.items.items() if key.suite == suite.suite]
            journal.write_whole(ITEMS, suite.suite, suite.suite_version, records=items)
    stamp = f"{benchmark.version.loaded_at:%Y%m%dT%H%M%S.%f}-{benchmark.version.benchmark_version}"
    journal.write_whole(VERSIONS, stamp, records=[benchmark.version])


def current(journal: Journal, settings: Settings) -> Benchmark:
    """The benchmark as it was loaded last; if it never was, it is loaded now."""
    version = _newest(journal)
    if version is None:
        benchmark = load_benchmark(settings)
        keep(benchmark, journal)
        return benchmark
    return Benchmark(version, _items(journal, version))


def past_items(journal: Journal, benchmark_version: str) -> Mapping[ItemKey, Item]:
    """The items that a run of that version was asked."""
    for version in journal.read(VERSIONS):
        if version.benchmark_version == benchmark_version:
            return _items(journal, version)
    raise JournalError(
        f"{journal.root} has runs of the benchmark version {benchmark_version}, but not its items."
    )


def read_prompt(settings: Settings, path: Path) -> str:
    """A prompt file's text; paths are relative to the settings file."""
    try:
        return settings.path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The prompt file {path} can not be read: {error}.") from None


def judge_prompt_of(settings: Settings) -> str:
    """The judge's prompt, refused if it leaves out what there is to judge."""
    prompt = read_prompt(settings, settings.judge.prompt)
    if problem := check_prompt(prompt):
        raise SettingsError(f"The judge prompt {settings.judge.prompt} {problem}.")
    return prompt


def _newest(journal: Journal) -> BenchmarkVersion | None:
    return max(journal.read(VERSIONS), key=lambda version: version.loaded_at, default=None)


def _items(journal: Journal, version: BenchmarkVersion) -> Mapping[ItemKey, Item]:
    return {
        ItemKey(item.suite, item.id): item
        for suite in version.suites
        for item in journal.read_file(ITEMS, suite.suite, suite.suite_version)
    }

"""Every suite's items and the benchmark version: what is asked, and what a pass means."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from eval_pipeline.errors import RunError
from eval_pipeline.hashing import RunningFingerprint, fingerprint
from eval_pipeline.journal import ITEMS, VERSIONS, Journal, JournalError, translate_os_errors
from eval_pipeline.records.base import now
from eval_pipeline.records.item import PROTOCOL, BenchmarkVersion, Item, ItemKey, SuiteVersion
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.sections import Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.exam.judge import check_prompt
from eval_pipeline.suites.items import Items
from eval_pipeline.suites.kinds import Prompts, decisive, gaps_hash, load_items, read_prompt


@dataclass(frozen=True)
class Benchmark:
    """All items of one benchmark version."""

    version: BenchmarkVersion
    items: Mapping[ItemKey, Item]


def load_benchmark(settings: Settings) -> Benchmark:
    """Reads every suite of the settings; all of it or nothing."""
    # A file without a name, beside where the items will be kept: if anything fails, it is gone.
    with ExitStack() as opened, translate_os_errors(settings.data):
        settings.data.mkdir(parents=True, exist_ok=True)
        files: list[BinaryIO] = [
            opened.enter_context(TemporaryFile(dir=settings.data)) for _ in settings.suites
        ]
        pairs = zip(settings.suites, files, strict=True)
        suites = tuple(_stage(suite, settings, file) for suite, file in pairs)
        return Benchmark(_version(suites, settings), Items(files))


def _stage(suite: Suite, settings: Settings, file: BinaryIO) -> SuiteVersion:
    """Writes the items to the file as they are read, so that they are never in memory together."""
    version, count = RunningFingerprint(), 0
    for item in load_items(suite, settings):
        file.write(item.model_dump_json().encode() + b"\n")
        version.add(decisive(item))
        count += 1
    file.flush()
    return SuiteVersion(
        suite=suite.name, suite_version=version.value(), items=count, kind=suite.kind
    )


def _version(suites: tuple[SuiteVersion, ...], settings: Settings) -> BenchmarkVersion:
    version = BenchmarkVersion(
        benchmark_version="",
        suites=suites,
        answer_prompt_hash=Prompts.of(settings, settings.experiments["default"]).hash,
        judge_prompt_hash=fingerprint(judge_prompt_of(settings)),
        protocol=PROTOCOL,
        loaded_at=now(),
    )
    return version.model_copy(update={"benchmark_version": version_hash(version)})


def version_hash(version: BenchmarkVersion) -> str:
    """What a version is called: a hash of all that decides what a pass means."""
    return fingerprint(
        [suite.model_dump(exclude={"kind"}) for suite in version.suites],
        version.answer_prompt_hash,
        version.judge_prompt_hash,
        version.protocol,
    )


def keep(benchmark: Benchmark, journal: Journal) -> None:
    """Journals the benchmark, unless it is the one that was loaded last."""
    items = benchmark.items
    for suite in benchmark.version.suites:
        if not _is_kept(items, suite, journal):
            chosen = (items[key] for key in items if key.suite == suite.suite)
            journal.write_whole(ITEMS, suite.suite, suite.suite_version, records=chosen)
    newest = _newest(journal)
    if not newest or newest.benchmark_version != benchmark.version.benchmark_version:
        note(benchmark.version, journal)


def _is_kept(items: Mapping[ItemKey, Item], suite: SuiteVersion, journal: Journal) -> bool:
    """Whether the items are there as they are; known faults of tasks are no part of a version."""
    path = _items_file(journal, suite)
    if path is None or suite.kind != "coding":
        return path is not None
    with path.open("rb") as file:
        kept = Items([file])
    return all(gaps_hash(items[key]) == gaps_hash(kept[key]) for key in kept)


def mint(journal: Journal, settings: Settings, name: str | None = None) -> BenchmarkVersion:
    """Publishes the benchmark as it is now: from here on the leaderboard is about it.

    Nobody is asked anything. Runs of the version before stay, and are not shown beside new ones.
    """
    benchmark = load_benchmark(settings)
    earlier = minted(journal)
    version = benchmark.version.benchmark_version
    if earlier and earlier[-1].benchmark_version == version:
        known = earlier[-1].minted_as
        raise RunError(f"Nothing has changed since {known} was published ({version}).")
    taken = {one.minted_as for one in earlier}
    if name in taken:
        raise RunError(f"There is a version {name} already; choose another name.")
    keep(benchmark, journal)
    free = next(one for number in count(1) if (one := f"v{number}") not in taken)
    changes = {"minted_as": name or free, "loaded_at": now()}
    published = benchmark.version.model_copy(update=changes)
    note(published, journal)
    return published


def minted(journal: Journal) -> list[BenchmarkVersion]:
    """Every version that was published, the latest last."""
    named = (version for version in journal.read(VERSIONS) if version.minted_as is not None)
    return sorted(named, key=lambda version: version.loaded_at)


def note(version: BenchmarkVersion, journal: Journal) -> None:
    """Journals that the version was loaded, or published, then."""
    stamp = f"{version.loaded_at:%Y%m%dT%H%M%S.%f}-{version.benchmark_version}"
    journal.write_whole(VERSIONS, stamp, records=[version])


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
    return _items(journal, past_version(journal, benchmark_version))


def past_version(journal: Journal, benchmark_version: str) -> BenchmarkVersion:
    """The version as it was when its items were loaded."""
    for version in journal.read(VERSIONS):
        if version.benchmark_version == benchmark_version:
            return version
    raise JournalError(
        f"{journal.root} has runs of the benchmark version {benchmark_version}, but not its items."
    )


def judge_prompt_of(settings: Settings) -> str:
    """The judge's prompt, refused if it leaves out what there is to judge."""
    prompt = read_prompt(settings, settings.judge.prompt)
    if problem := check_prompt(prompt):
        raise SettingsError(f"The judge prompt {settings.judge.prompt} {problem}.")
    return prompt


def _newest(journal: Journal) -> BenchmarkVersion | None:
    return max(journal.read(VERSIONS), key=lambda version: version.loaded_at, default=None)


def _items(journal: Journal, version: BenchmarkVersion) -> Items:
    with ExitStack() as opened:
        files: list[BinaryIO] = []
        for suite in version.suites:
            if (path := _items_file(journal, suite)) is None:
                raise JournalError(
                    f"{journal.root} has the version {suite.suite_version} of the suite "
                    f"{suite.suite}, but not its items. Materialize dataset."
                )
            files.append(opened.enter_context(path.open("rb")))
        return Items(files)


def _items_file(journal: Journal, suite: SuiteVersion) -> Path | None:
    files = journal.files(ITEMS, suite.suite)
    return next((path for path in files if path.stem == suite.suite_version), None)

"""Benchmark versions from elsewhere: kept only if the items make up the hashes that are claimed."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import BinaryIO

from eval_pipeline.hashing import RunningFingerprint
from eval_pipeline.interop.remote.messages import (
    MOST_BYTES,
    MOST_ITEMS,
    KeptVersion,
    RefusedError,
    parsed,
)
from eval_pipeline.journal import ITEMS, VERSIONS, Journal
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import ITEM, PROTOCOL, BenchmarkVersion, Item, SuiteVersion
from eval_pipeline.suites.benchmark import note, version_hash
from eval_pipeline.suites.coding.files import UnsafePath, check_files
from eval_pipeline.suites.kinds import decisive

PATIENCE_S = 10.0


def version_of(
    items: Sequence[Item], answer_prompt_hash: str, judge_prompt_hash: str, loaded_at: datetime
) -> BenchmarkVersion:
    """Return the benchmark version of the items of one suite, as another program asked them."""
    running = RunningFingerprint()
    for item in items:
        running.add(decisive(item))
    suite = SuiteVersion(
        suite=items[0].suite, suite_version=running.value(), items=len(items), kind=items[0].kind
    )
    version = BenchmarkVersion(
        benchmark_version="",
        suites=(suite,),
        answer_prompt_hash=answer_prompt_hash,
        judge_prompt_hash=judge_prompt_hash,
        protocol=PROTOCOL,
        loaded_at=loaded_at,
    )
    return version.model_copy(update={"benchmark_version": version_hash(version)})


def keep_version(journal: Journal, file: BinaryIO) -> KeptVersion:
    """Keep a version whose items make up its hashes: the first line, and an item in each other.

    Suites whose items are here already need not be sent again.
    """
    version = _read_version(file)
    posted = _check_items(file, version)
    with journal.claim_soon(VERSIONS, "any benchmark version", PATIENCE_S):
        missing = [
            one for one in version.suites if not journal.exists(ITEMS, one.suite, one.suite_version)
        ]
        if absent := [one.suite for one in missing if one.suite not in posted]:
            return KeptVersion(state="incomplete", missing=tuple(absent))
        is_new = _is_new(journal, version)
        for suite in missing:
            chosen = (item for item in _items(file) if item.suite == suite.suite)
            journal.write_whole(ITEMS, suite.suite, suite.suite_version, records=chosen)
        if is_new:
            note(version, journal)
    return KeptVersion(state="new" if is_new else "known")


def _read_version(file: BinaryIO) -> BenchmarkVersion:
    version = parsed(next(_lines(file), b""), BenchmarkVersion.model_validate, "line 1")
    names = [one.suite for one in version.suites]
    if not names or len({*names}) < len(names):
        raise RefusedError("line 1: a version has suites, and each of them once.")
    if version_hash(version) != version.benchmark_version:
        raise RefusedError("line 1: benchmark_version is not the hash of what the version is of.")
    return version


def _check_items(file: BinaryIO, version: BenchmarkVersion) -> set[str]:
    """Return the names of the suites that have items in the file, which have to be all of them."""
    suites = {one.suite: one for one in version.suites}
    hashes = {name: RunningFingerprint() for name in suites}
    ids: dict[str, set[str]] = {name: set() for name in suites}
    for number, item in enumerate(_items(file), start=2):
        if item.suite not in suites:
            raise RefusedError(f"line {number}: the version has no such suite.")
        if item.kind != suites[item.suite].kind:
            raise RefusedError(f"line {number}: the suite is of another kind.")
        _check_paths(item, number)
        if item.id in ids[item.suite]:
            raise RefusedError(f"line {number}: there is an item of this id before it.")
        ids[item.suite].add(item.id)
        hashes[item.suite].add(decisive(item))
    posted = {name for name in suites if ids[name]}
    for name in posted:
        made_up = len(ids[name]), hashes[name].value()
        if made_up != (suites[name].items, suites[name].suite_version):
            raise RefusedError(f"The items of the suite {name} do not make up its suite_version.")
    return posted


def _check_paths(item: Item, number: int) -> None:
    """Refuse paths that would lead elsewhere when an answer to a task is graded here."""
    try:
        if isinstance(item, CodingTask):
            for files in (item.answer, item.grader, *item.wrong.values()):
                check_files(files)
    except UnsafePath as unsafe:
        raise RefusedError(f"line {number}: {unsafe}") from None


def _is_new(journal: Journal, version: BenchmarkVersion) -> bool:
    """Return whether it is not noted yet; refuse a name that means something else here."""
    is_new = True
    suites = {(suite.suite, suite.suite_version): suite for suite in version.suites}
    for one in journal.read(VERSIONS):
        if any(
            suites.get((suite.suite, suite.suite_version), suite) != suite for suite in one.suites
        ):
            raise RefusedError(
                "A suite of it is known here with another number of items or kind.", 409
            )
        same = one.benchmark_version == version.benchmark_version
        if one == version:
            is_new = False
        elif same and one.loaded_at == version.loaded_at:
            raise RefusedError("Of that version and moment something else is known here.", 409)
        elif not same and version.minted_as and one.minted_as == version.minted_as:
            raise RefusedError(f"Another version is published as {version.minted_as} here.", 409)
    return is_new


def _items(file: BinaryIO) -> Iterator[Item]:
    lines = _lines(file)
    next(lines)
    for number, line in enumerate(lines, start=2):
        if number > MOST_ITEMS + 1:
            raise RefusedError(f"More than {MOST_ITEMS} items are not taken.", 413)
        yield parsed(line, ITEM.validate_python, f"line {number}")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while line := file.readline(MOST_BYTES + 1):
        if len(line) > MOST_BYTES:
            raise RefusedError(f"A line of more than {MOST_BYTES} bytes is not taken.", 413)
        yield line

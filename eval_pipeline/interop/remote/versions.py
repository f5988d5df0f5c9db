"""A benchmark version from elsewhere: kept only if its items make up the hashes that it claims."""

from collections.abc import Iterator
from typing import BinaryIO

from pydantic import TypeAdapter

from eval_pipeline.hashing import RunningFingerprint
from eval_pipeline.interop.remote.errors import ConflictError, RefusedError, TooLargeError
from eval_pipeline.interop.remote.messages import MOST_BYTES, MOST_ITEMS, KeptVersion, parsed
from eval_pipeline.journal import ITEMS, VERSIONS, Journal
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import ITEM, BenchmarkVersion, Item, SuiteVersion
from eval_pipeline.suites.benchmark import note, version_hash
from eval_pipeline.suites.coding.files import UnsafePath, check_files
from eval_pipeline.suites.kinds import decisive

_VERSION = TypeAdapter(BenchmarkVersion)
PATIENCE_S = 10.0


def keep_version(journal: Journal, file: BinaryIO) -> KeptVersion:
    """Takes in a version: the file's first line, and after it an item of its suites in each line.

    Suites whose items are here already need not be sent again.
    """
    version = _read_version(file)
    posted = _check_items(file, version)
    with journal.claim_soon(VERSIONS, "any benchmark version", PATIENCE_S):
        missing = [one for one in version.suites if not _is_kept(journal, one)]
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
    version = parsed(next(_lines(file), b""), _VERSION, "line 1")
    names = [one.suite for one in version.suites]
    if not names or len({*names}) < len(names):
        raise RefusedError("line 1: a version has suites, and each of them once.")
    if version_hash(version) != version.benchmark_version:
        raise RefusedError("line 1: benchmark_version is not the hash of what the version is of.")
    return version


class _Posted:
    """The items of one suite as they come, which have to make up its hash."""

    def __init__(self, suite: SuiteVersion) -> None:
        self._suite = suite
        self._hash = RunningFingerprint()
        self._ids: set[str] = set()

    def add(self, item: Item, number: int) -> None:
        """The next one."""
        if item.kind != self._suite.kind:
            raise RefusedError(f"line {number}: the suite is of another kind.")
        if isinstance(item, CodingTask):
            _check_paths(item, number)
        if item.id in self._ids:
            raise RefusedError(f"line {number}: there is an item of this id before it.")
        self._ids.add(item.id)
        self._hash.add(decisive(item))

    def check(self) -> None:
        """Those were all."""
        suite = self._suite
        if self._ids and (len(self._ids), self._hash.value()) != (suite.items, suite.suite_version):
            raise RefusedError(
                f"The items of the suite {suite.suite} do not make up its suite_version."
            )

    @property
    def is_empty(self) -> bool:
        return not self._ids


def _check_paths(task: CodingTask, number: int) -> None:
    """Where files would be written, should anybody grade an answer to the task here."""
    try:
        for files in (task.answer, task.grader, *task.wrong.values()):
            check_files(files)
    except UnsafePath as unsafe:
        raise RefusedError(f"line {number}: {unsafe}") from None


def _check_items(file: BinaryIO, version: BenchmarkVersion) -> set[str]:
    """The names of the suites whose items are in the file, which have to be all of them."""
    suites = {one.suite: _Posted(one) for one in version.suites}
    for number, item in enumerate(_items(file), start=2):
        if number > MOST_ITEMS + 1:
            raise TooLargeError(f"More than {MOST_ITEMS} items are not taken.")
        if item.suite not in suites:
            raise RefusedError(f"line {number}: the version has no such suite.")
        suites[item.suite].add(item, number)
    for posted in suites.values():
        posted.check()
    return {name for name, posted in suites.items() if not posted.is_empty}


def _is_kept(journal: Journal, suite: SuiteVersion) -> bool:
    return journal.exists(ITEMS, suite.suite, suite.suite_version)


def _is_new(journal: Journal, version: BenchmarkVersion) -> bool:
    """Whether it was not loaded, or published, then; refused if a name in it means another one."""
    is_new = True
    suites = {(suite.suite, suite.suite_version): suite for suite in version.suites}
    for one in journal.read(VERSIONS):
        if any(
            suites.get((suite.suite, suite.suite_version), suite) != suite for suite in one.suites
        ):
            raise ConflictError("A suite of it is known here with another number of items or kind.")
        same = one.benchmark_version == version.benchmark_version
        if one == version:
            is_new = False
        elif same and one.loaded_at == version.loaded_at:
            raise ConflictError("Of that version and moment something else is known here.")
        elif not same and version.minted_as and one.minted_as == version.minted_as:
            raise ConflictError(f"Another version is published as {version.minted_as} here.")
    return is_new


def _items(file: BinaryIO) -> Iterator[Item]:
    lines = _lines(file)
    next(lines)
    for number, line in enumerate(lines, start=2):
        yield parsed(line, ITEM, f"line {number}")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while line := file.readline(MOST_BYTES + 1):
        if len(line) > MOST_BYTES:
            raise TooLargeError(f"A line of more than {MOST_BYTES} bytes is not taken.")
        yield line

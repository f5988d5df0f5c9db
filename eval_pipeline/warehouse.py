"""The DuckDB file: built from the journal beside the old one, swapped in whole, opened to read."""

import logging
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from filelock import FileLock, Timeout

from eval_pipeline.building import Order, WarehouseError, build
from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.journal import STREAMS, Journal, Stream, translate_os_errors
from eval_pipeline.journal.files import FileCompactedError, JournalError, remove
from eval_pipeline.opening import opened
from eval_pipeline.processes import is_running
from eval_pipeline.queries import migration_names, recipe
from eval_pipeline.records import now
from eval_pipeline.shown import Shown, covers, note_shown, read_shown, shown_of

__all__ = ["Warehouse", "WarehouseError"]

log = logging.getLogger(__name__)
TRIES = 3
QUERIES = "sql"
"""The part of the file that is not of the journal: if the queries change, all is built anew."""
RESULTS = ("runs", "items", "model_catalog")
"""The tables, in files of every version, that are empty while nothing was evaluated."""
LONG = {"predictions", "judged"}
"""If these have changed, building on the old file would save nothing and make it larger."""


@dataclass(frozen=True)
class Warehouse:
    """The file that people query, and the journal it is a view of."""

    path: Path
    journal: Journal

    def publish(self, *parts: Stream[Any], force: bool = False) -> None:
        """Brings these parts of the file up to date with the journal, or all; one at a time."""
        if self.journal.read_only:
            return self._leave_as_it_is(force=force)
        with translate_os_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._claimed(parts) as waited_with:
                if waited_with and not force and self._shows(waited_with):
                    return None
                for _ in range(TRIES - 1):
                    with suppress(FileCompactedError):  # a file was compacted meanwhile
                        return self._publish(parts, force=force)
                return self._publish(parts, force=force)

    def _leave_as_it_is(self, *, force: bool) -> None:
        """It shows what production has published."""
        if force:
            raise WarehouseError(
                f"{self.path} is production's, and is not replaced from here. If somebody has it "
                "open to write, close it there."
            )
        if not self.path.exists():
            raise WarehouseError(
                f"{self.path}: production has published nothing yet, and from here it is only "
                "read. Its own services are told that they are: docs/deployments.md"
            )
        self._refuse_older(
            "and production's. Look with the version that it has, or update it there: "
            "evals migrate up"
        )

    def claim(self) -> FileLock:
        """Whoever holds it is the only one that replaces the file."""
        return FileLock(self.path.with_suffix(".lock"), thread_local=False)

    @contextmanager
    def _claimed(self, parts: Sequence[Stream[Any]]) -> Iterator[Shown | None]:
        """The same; tells who had to wait what there was to show when it began to."""
        claim, waited_with = self.claim(), None
        try:
            claim.acquire(timeout=0)
        except Timeout:
            with suppress(FileCompactedError):
                waited_with = shown_of(self.journal, parts)
            claim.acquire()
        try:
            yield waited_with
        finally:
            claim.release()

    def _shows(self, wanted: Shown) -> bool:
        """Whether somebody has published all of that meanwhile, however much has come since."""
        with self._published() as known:
            same_queries = known.get(QUERIES) == fingerprint(*recipe())
            return same_queries and covers(read_shown(self.path), known, wanted)

    def stands_alone(self) -> bool:
        """Whether the file has results that no journal here could give again."""
        return not self.journal.snapshot() and _has_results(self.path)

    @contextmanager
    def reading(self, *, apart: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """A short read-only connection; if somebody holds the file to write, to a fresh one.

        `apart` is for SQL that people write: see `opened`.
        """
        if not self.path.exists():
            self.publish()
        with self._opened(apart=apart) as connection:
            older = _is_older(connection, self.path)
            if not older:
                yield connection
        if older:
            try:
                self.publish()
            except JournalError as error:  # a folder that can only be read
                if not apart:  # our own queries know columns that it has not
                    raise WarehouseError(
                        f"{self.path} is of an older version of eval_pipeline, and can not be "
                        f"brought up to date. {error}"
                    ) from error
            with self._opened(apart=apart) as connection:
                yield connection

    @contextmanager
    def _opened(self, *, apart: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(opened(self.path, apart=apart))
            except (duckdb.IOException, OSError):
                log.info("%s is open for writing elsewhere; a fresh one replaces it.", self.path)
                self.publish(force=True)
                connection = stack.enter_context(opened(self.path, apart=apart))
            yield connection

    def _publish(self, parts: Sequence[Stream[Any]], *, force: bool) -> None:
        _remove_leftovers(self.path)
        snapshots = shown_of(self.journal)
        if not any(snapshots.values()) and _has_results(self.path):
            return self._leave_alone(force=force)
        wanted = {name: fingerprint(*snapshot) for name, snapshot in snapshots.items()}
        wanted[QUERIES] = fingerprint(*recipe())
        name = f".{self.path.stem}-{os.getpid()}-{secrets.token_hex(3)}.new"
        new = self.path.with_name(name).absolute()
        with self._published() as known:
            asked = [one.name for one in parts or STREAMS]
            changed = [part for part in asked if known.get(part) != wanted[part]]
            whole = force or known.get(QUERIES) != wanted[QUERIES] or not LONG.isdisjoint(changed)
            base = None if whole else self.path.absolute()
            if whole or changed:
                build(new, Order(self.journal, wanted, changed, base))
        if whole or changed:
            self.swap_in(new)
            return note_shown(self.path, snapshots)
        # Nobody has the file open to write, so a log beside it is not its own.
        return self._set_log_aside()

    def _leave_alone(self, *, force: bool) -> None:
        """To build the file from a journal that has nothing would be to lose it."""
        if force:
            raise WarehouseError(
                f"{self.path} stands alone: there is nothing in {self.journal.root} to build it "
                "from. Nothing was changed. If somebody has it open to write, close it there."
            )
        self._refuse_older(
            "and there is no journal to build it from. Bring it up to date: evals migrate up"
        )

    def _refuse_older(self, advice: str) -> None:
        with opened(self.path) as connection:
            older = _is_older(connection, self.path)
        if older:
            raise WarehouseError(f"{self.path} is of an older version of eval_pipeline, {advice}")

    @contextmanager
    def _published(self) -> Iterator[Mapping[str, str]]:
        """Which state of the journal the file shows; meanwhile nobody may change it."""
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(opened(self.path))
            except (duckdb.Error, OSError):
                yield {}
                return
            try:
                _is_older(connection, self.path)
                found = connection.sql("select part, snapshot from published").fetchall()
            except (duckdb.CatalogException, duckdb.BinderException):
                found = []
            yield dict(found)

    def swap_in(self, built: Path) -> None:
        """Puts a whole file in the place of the one that is there; only who has claimed it may."""
        with built.open("rb") as file:
            os.fsync(file.fileno())
        self._set_log_aside()
        built.replace(self.path)

    def _set_log_aside(self) -> None:
        """A write-ahead log that someone's shell left would be replayed into our file."""
        left = self.path.with_name(f"{self.path.name}.wal")
        with suppress(FileNotFoundError):
            left.rename(left.with_name(f"{left.name}.{now():%Y%m%dT%H%M%S.%f}"))


def _has_results(path: Path) -> bool:
    """Whether there is anything to lose; of a file that can not be read nobody knows."""
    if not path.exists():
        return False
    try:
        with opened(path) as connection:
            return any(connection.table(name).limit(1).fetchall() for name in RESULTS)
    except (duckdb.Error, OSError):
        return True


def _is_older(connection: duckdb.DuckDBPyConnection, path: Path) -> bool:
    """Whether migrations are missing in the file; one from a newer version is refused."""
    applied = {name for (name,) in connection.sql("select name from schema_migrations").fetchall()}
    known = set(migration_names())
    if unknown := sorted(applied - known):
        raise WarehouseError(
            f"{path} was written by a newer version of eval_pipeline (it has {unknown[-1]}): "
            "update, or move the file away to have it built anew from the journal."
        )
    return applied < known


def _remove_leftovers(path: Path) -> None:
    """Half-built files of processes that were killed; the lock says that nobody builds now."""
    for leftover in path.parent.glob(f".{path.stem}-*.new*"):
        remove(leftover)
    # Who is just opening the file has a second name for it.
    for link in path.parent.glob(f".{path.stem}-*.reading"):
        if not is_running(int(link.name.split("-")[-2])):
            remove(link)

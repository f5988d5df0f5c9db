"""The DuckDB file: built from the journal beside the old one, swapped in whole, opened to read."""

import json
import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
from filelock import FileLock, Timeout

from eval_pipeline.connections import cursor
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import STREAMS, Journal, Stream, translate_os_errors
from eval_pipeline.journal.files import FileCompactedError, JournalError, quoted, remove, swap_in
from eval_pipeline.processes import is_running
from eval_pipeline.records.base import now
from eval_pipeline.results.build import Order, WarehouseError, build
from eval_pipeline.results.queries import recipe
from eval_pipeline.results.schema import VERSION, schema_version

__all__ = ["Warehouse", "WarehouseError"]

log = logging.getLogger(__name__)
TRIES = 3
QUERIES = "sql"
"""The part of `published` for the queries: if they change, the whole file is rebuilt."""
RESULTS = ("runs", "items", "model_catalog")
"""The tables, in files of every version, that are empty while nothing was evaluated."""
LONG = {"predictions", "judged"}
"""If these have changed, building on the old file would save nothing and make it larger."""
_numbers = count(1)


@contextmanager
def opened(path: Path, *, apart: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a short read-only connection to the present file.

    With an engine of its own (`apart`) for SQL that people write: that finds nothing but this file,
    and what it sets affects no other connection.
    """
    name, is_own = _name(path)
    with ExitStack() as stack:
        try:
            if is_own and not apart:
                connection = stack.enter_context(_attached(name))
            else:  # an engine opens no file twice under the same name
                connection = stack.enter_context(duckdb.connect(str(name), read_only=True))
        finally:
            if is_own:
                name.unlink()  # an open file needs it no longer
        yield connection


def _name(path: Path) -> tuple[Path, bool]:
    """Link the file under a name of its own, so that no foreign write-ahead log is read."""
    link = path.with_name(f".{path.stem}-{os.getpid()}-{secrets.token_hex(6)}.reading")
    try:
        os.link(path, link)
    except FileNotFoundError:
        raise
    except OSError:  # a folder that can only be read, or a file system without links
        return path, False
    return link, True


@contextmanager
def _attached(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    database = f"results_{next(_numbers)}"
    with cursor() as connection:
        connection.execute(f"attach {quoted(path)} as {database} (read_only)")
        connection.execute(f"use {database}")
        try:
            yield connection
        finally:
            connection.close()
            with cursor() as other:
                other.execute(f"detach {database}")


Shown = Mapping[str, Sequence[str]]
"""By stream, the lines of `Journal.snapshot`."""


def shown_of(journal: Journal, parts: Sequence[Stream[Any]] = ()) -> dict[str, list[str]]:
    """Return the present state of these parts of the journal, or of all."""
    return {one.name: journal.snapshot(one) for one in parts or STREAMS}


def covers(shown: Shown, known: Mapping[str, str], wanted: Shown) -> bool:
    """Return whether a file shows all that is wanted; `known` are its parts' fingerprints.

    A file of the journal only grows, so the same file with more in it will do.
    """
    return all(
        known.get(part) == fingerprint(*shown.get(part, ())) and _holds(shown.get(part, ()), lines)
        for part, lines in wanted.items()
    )


def _holds(shown: Iterable[str], wanted: Iterable[str]) -> bool:
    # Names of files have no blanks: what is odd in them is quoted.
    there = {name: rest for name, _, rest in (line.partition(" ") for line in shown)}
    return all(
        there.get(name) == rest or _is_larger(there.get(name, ""), rest)
        for name, _, rest in (line.partition(" ") for line in wanted)
    )


def _is_larger(there: str, wanted: str) -> bool:
    """Return whether both are nothing but sizes, and the first is larger."""
    return there.isdecimal() and wanted.isdecimal() and int(there) > int(wanted)


@dataclass(frozen=True)
class Warehouse:
    """The file that people query, and the journal it is a view of."""

    path: Path
    journal: Journal

    @property
    def _note(self) -> Path:
        """Return the path of the note that records what the file was built from."""
        return self.path.with_name(f".{self.path.stem}.shown")

    def publish(self, *parts: Stream[Any], force: bool = False) -> None:
        """Bring these parts of the file, or all, up to date; one process at a time."""
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
        """Refuse what would need a new file: production publishes it."""
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
            "and production's. Look with the version that it has, or update it there: evals rebuild"
        )

    def claim(self) -> FileLock:
        """Return the lock whose holder alone replaces the file."""
        return FileLock(self.path.with_suffix(".lock"), thread_local=False)

    @contextmanager
    def _claimed(self, parts: Sequence[Stream[Any]]) -> Iterator[Shown | None]:
        """Hold the lock; yield what there was to show when a wait for it began, if any."""
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
        """Return whether another process has published all of that meanwhile."""
        with self._published() as known:
            try:
                shown = json.loads(self._note.read_bytes())
            except (OSError, ValueError):
                return False
            return known.get(QUERIES) == fingerprint(*recipe()) and covers(shown, known, wanted)

    @contextmanager
    def reading(self, *, apart: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a short read-only connection; a file that is held to write is replaced first.

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
            return swap_in(self._note, json.dumps(snapshots).encode())
        # The file is not open to write, so a log beside it is not its own.
        return self._set_log_aside()

    def _leave_alone(self, *, force: bool) -> None:
        """Keep a file whose journal is empty: rebuilding it would lose its results."""
        if force:
            raise WarehouseError(
                f"{self.path} stands alone: there is nothing in {self.journal.root} to build it "
                "from. Nothing was changed. If somebody has it open to write, close it there."
            )
        self._refuse_older(
            f"and there is no journal in {self.journal.root} to build it from: restore that, or "
            "read the file with the version that wrote it."
        )

    def _refuse_older(self, advice: str) -> None:
        with opened(self.path) as connection:
            older = _is_older(connection, self.path)
        if older:
            raise WarehouseError(f"{self.path} is of an older version of eval_pipeline, {advice}")

    @contextmanager
    def _published(self) -> Iterator[Mapping[str, str]]:
        """Yield the state of the journal that the file shows, while it stays as it is."""
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
        """Put a whole file in the place of the present one; only the lock's holder may."""
        with built.open("rb") as file:
            os.fsync(file.fileno())
        self._set_log_aside()
        built.replace(self.path)

    def _set_log_aside(self) -> None:
        """Rename a write-ahead log left by a shell, which would be replayed into our file."""
        left = self.path.with_name(f"{self.path.name}.wal")
        with suppress(FileNotFoundError):
            left.rename(left.with_name(f"{left.name}.{now():%Y%m%dT%H%M%S.%f}"))


def _has_results(path: Path) -> bool:
    """Return whether the file has results, or may have some because it is unreadable."""
    if not path.exists():
        return False
    try:
        with opened(path) as connection:
            return any(connection.table(name).limit(1).fetchall() for name in RESULTS)
    except (duckdb.Error, OSError):
        return True


def _is_older(connection: duckdb.DuckDBPyConnection, path: Path) -> bool:
    """Return whether the schema is an older one; a file of a newer version is refused."""
    if (version := schema_version(connection)) > VERSION:
        raise WarehouseError(
            f"{path} was written by a newer version of eval_pipeline (schema {version}, here "
            f"{VERSION}): update, or move the file away to have it rebuilt from the journal."
        )
    return version < VERSION


def _remove_leftovers(path: Path) -> None:
    """Remove half-built files of killed processes; the lock rules out any living one."""
    for leftover in path.parent.glob(f".{path.stem}-*.new*"):
        remove(leftover)
    # A process that is opening the file has a second name for it.
    for link in path.parent.glob(f".{path.stem}-*.reading"):
        if not is_running(int(link.name.split("-")[-2])):
            remove(link)

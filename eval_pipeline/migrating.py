"""A DuckDB file of an older version brought up to this one, and how far it and the journal are."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from threading import Event, Thread

import duckdb

from eval_pipeline.building import WarehouseError
from eval_pipeline.deriving import DERIVED, derive
from eval_pipeline.errors import MendableError
from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.journal import FORMAT, Journal
from eval_pipeline.journal.files import remove, sync
from eval_pipeline.opening import opened
from eval_pipeline.queries import apply_migration, clear, migration_names
from eval_pipeline.warehouse import Warehouse

BACKUPS = 3
"""How many files from before migrations are kept."""
EVERY_S = 10.0
"""How often a step that takes long says how far it is."""
TELLING = "set enable_progress_bar = true; set enable_progress_bar_print = false"
"""Without this DuckDB does not keep count of it."""
Tell = Callable[[str], None]


class MigrationError(MendableError):
    """That can not be migrated, or not so; the message says what to do."""


class State(StrEnum):
    """How something on disk compares with this version of the code."""

    NONE = "none"
    BEHIND = "behind"
    CURRENT = "current"
    NEWER = "newer"


@dataclass(frozen=True)
class Schema:
    """The migrations that a file has seen, and those that there are."""

    applied: Mapping[str, datetime]
    known: Sequence[str] = field(default_factory=migration_names)

    @property
    def missing(self) -> list[str]:
        return [name for name in self.known if name not in self.applied]

    @property
    def state(self) -> State:
        if not self.applied:
            return State.NONE
        if set(self.applied) - set(self.known):
            return State.NEWER
        return State.BEHIND if self.missing else State.CURRENT

    @property
    def number(self) -> int:
        """That of the last migration; 0 if there is no file."""
        return max(map(number, self.applied), default=0)


def number(migration: str) -> int:
    """The number that a migration's name begins with."""
    return int(migration.partition("_")[0])


def latest() -> int:
    """The number of the last migration there is."""
    return number(migration_names()[-1])


def schema_of(path: Path) -> Schema:
    """Which migrations the file at this path has seen."""
    if not path.exists():
        return Schema({})
    try:
        with opened(path) as connection:
            found = connection.sql("select name, applied_at from schema_migrations order by name")
            return Schema(dict(found.fetchall()))
    except duckdb.CatalogException:
        raise WarehouseError(f"{path} is no file of eval_pipeline: move it away.") from None
    except duckdb.Error as error:
        advice = "Close it where it is open to write; if it is damaged and has a journal"
        raise WarehouseError(
            f"{path} can not be opened ({error}). {advice}: evals rebuild"
        ) from None


def journal_state(journal: Journal) -> State:
    """How the journal's format compares with the one that this version writes."""
    written = journal.written_format()
    if not written:
        return State.NONE
    if not written.isdigit() or int(written) > FORMAT:
        return State.NEWER
    return State.BEHIND if int(written) < FORMAT else State.CURRENT


def backups(path: Path) -> list[Path]:
    """The files from before migrations that are kept, oldest schema first."""
    return sorted(path.parent.glob(f"{path.name}.before-[0-9]*"))


def pending(warehouse: Warehouse, to: int | None = None) -> list[str]:
    """What `migrate` would apply, up to that number; refused if that makes no sense."""
    schema = schema_of(warehouse.path)
    if schema.state is State.NEWER:
        raise WarehouseError(
            f"{warehouse.path} was written by a newer version of eval_pipeline (it has "
            f"{max(schema.applied)}): update. Nothing was changed."
        )
    if to is None:
        return schema.missing
    if not schema.number <= to <= latest():
        raise MigrationError(
            f"--to: the file has schema {schema.number}, there is no way back, and the last "
            f"migration is {latest()}. What was before is in: "
            f"{', '.join(one.name for one in backups(warehouse.path)) or 'no backup'}."
        )
    if to < latest() and not warehouse.stands_alone():
        raise MigrationError(
            "--to is for a file that stands alone: with a journal the file is built from it, "
            "always up to the last migration."
        )
    return [name for name in schema.missing if number(name) <= to]


def migrate(warehouse: Warehouse, to: int | None = None, *, tell: Tell) -> list[str]:
    """Brings the file up to date: from the journal, or where it stands alone as it is."""
    if not (names := pending(warehouse, to)):
        return names
    if warehouse.stands_alone():
        return _migrate_alone(warehouse, to, tell)
    tell(f"Building {warehouse.path} anew from {warehouse.journal.root}.")
    warehouse.publish()
    return names


def _migrate_alone(warehouse: Warehouse, to: int | None, tell: Tell) -> list[str]:
    """Works on a copy, which is swapped in when all is done: the file is never half migrated."""
    path = warehouse.path
    with _explained(path), warehouse.claim():
        if not (names := pending(warehouse, to)):  # somebody else has just done it
            return names
        _refuse_log(path)
        copy = _working_copy(path, names[-1])
        bring_up(copy, names, whole=to in (None, latest()), tell=tell)
        if copy != _name_of_copy(path, names[-1]):
            raise WarehouseError(f"{path} was changed meanwhile. Once more: evals migrate up")
        _keep_backup(path, number(names[0]))
        warehouse.swap_in(copy)
        sync(path.parent)
    return names


def bring_up(copy: Path, names: Sequence[str], *, whole: bool, tell: Tell) -> None:
    """Applies these migrations to a file of one's own, without those that it has seen already."""
    derived = DERIVED if whole else ()
    total = len(names) + len(derived)
    with duckdb.connect(str(copy)) as connection:
        connection.execute(TELLING)
        done = {name for (name,) in connection.sql("select name from schema_migrations").fetchall()}
        _empty_derived(connection)
        for place, name in enumerate(names, 1):
            if name not in done:
                with _told(connection, f"{place} of {total}: {name}", tell):
                    apply_migration(connection, name)
        for place, table in enumerate(derived, len(names) + 1):
            with _told(connection, f"{place} of {total}: computing {table}", tell):
                derive(connection, table)
        # Closing would swallow it if the disk has no room for the last bytes.
        connection.execute("checkpoint")


@contextmanager
def _told(connection: duckdb.DuckDBPyConnection, step: str, tell: Tell) -> Iterator[None]:
    """Tells that the step begins and, while it lasts, how far its present statement is."""
    ended = Event()

    def watch() -> None:
        while not ended.wait(EVERY_S):
            tell(f"{step}, {max(0.0, connection.query_progress()):.0f} % of the present statement")

    tell(step)
    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _empty_derived(connection: duckdb.DuckDBPyConnection) -> None:
    """Rows that are computed anew are none to migrate: DuckDB refuses columns that they lack."""
    there = connection.sql("select table_name from duckdb_tables()").fetchall()
    clear(connection, [name for (name,) in there if name in DERIVED])


def _name_of_copy(path: Path, last: str) -> Path:
    """By this name an unfinished copy is known to be of the file as it still is."""
    there = path.stat()
    known_by = fingerprint(there.st_size, there.st_mtime_ns, last)
    return path.with_name(f".{path.stem}-{known_by}.migrating")


def _working_copy(path: Path, last: str) -> Path:
    """The copy that was begun earlier, or a new one; those of other files go."""
    copy = _name_of_copy(path, last)
    for other in path.parent.glob(f".{path.stem}-*.migrating*"):
        if not other.name.startswith(copy.name):
            remove(other)
    if not copy.exists():
        unfinished = copy.with_name(f"{copy.name}.part")
        with opened(path):  # nobody may change it meanwhile
            shutil.copyfile(path, unfinished)
        sync(unfinished)
        unfinished.replace(copy)
    return copy


def _keep_backup(path: Path, first: int) -> None:
    """The file itself under a second name, where it stays when another takes its place."""
    backup = path.with_name(f"{path.name}.before-{first:04}")
    backup.unlink(missing_ok=True)
    try:
        os.link(path, backup)
    except OSError:  # a file system without links
        shutil.copyfile(path, backup)
        sync(backup)
    others = [one for one in backups(path) if one != backup]
    for old in others[: max(0, len(others) + 1 - BACKUPS)]:
        remove(old)


def _refuse_log(path: Path) -> None:
    log = path.with_name(f"{path.name}.wal")
    if log.exists():
        raise WarehouseError(
            f"{log} has changes that are not in {path.name} yet. Open the file with a DuckDB "
            "client and close it there, or move the log away; then: evals migrate up"
        )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What goes wrong leaves the file as it is; what was begun would go wrong again."""
    try:
        yield
    except (duckdb.Error, OSError) as error:
        for copy in path.parent.glob(f".{path.stem}-*.migrating*"):
            remove(copy)
        raise WarehouseError(
            f"{path} could not be migrated ({error}). It is as it was before. When that is "
            "mended: evals migrate up"
        ) from error

"""Dagster's history in SQLite at half the price, in the tests' own process.

Dagster makes an engine for every statement: it opens the file, learns what it can do, compiles what
it is to do, and forgets all that. Here the engines of the files last used are kept, each with its
connection, and all of them know what one has compiled. What they read and write, and when, is as
ever; commands that a test starts as processes do it as Dagster does.
"""

import atexit
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from alembic.script import ScriptDirectory
from dagster._core.storage.event_log import in_memory as events_in_memory
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs import in_memory as runs_in_memory
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from sqlalchemy import Engine, NullPool, QueuePool, create_engine, event
from sqlalchemy.exc import DisconnectionError

STORAGES = (
    events_in_memory,
    runs_in_memory,
    sqlite_event_log,
    sqlite_run_storage,
    sqlite_schedule_storage,
)
AT_ONCE = 8
"""A run has a file of its own, and a process may not have too many of them open."""


class Kept(Engine):
    """The engine of a file, which Dagster wants to be rid of after every statement."""

    def dispose(self, close: bool = True) -> None:
        """Not yet."""

    def close(self) -> None:
        """Ends the connection for good."""
        super().dispose()


_kept: dict[str, Kept] = {}
_one_at_a_time = Lock()


def keep_engines() -> None:
    """From now on, until the process ends."""
    for storage in STORAGES:
        storage.create_engine = _engine  # type: ignore[attr-defined]
    atexit.register(_close_all)
    read = cache(ScriptDirectory.from_config)
    ScriptDirectory.from_config = staticmethod(read)  # type: ignore[method-assign]


def _close_all() -> None:
    for engine in _kept.values():
        engine.close()


def _engine(url: str, **options: Any) -> Engine:
    if options.get("poolclass") is not NullPool:
        return _knowing(create_engine(url, **options))
    with _one_at_a_time:
        engine = _kept[url] = _kept.pop(url) if url in _kept else _for_file(url, options)
        if len(_kept) > AT_ONCE:
            _kept.pop(next(iter(_kept))).close()
    return engine


def _for_file(url: str, options: dict[str, Any]) -> Kept:
    pool = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": -1}
    engine = _knowing(create_engine(url, **{**options, **pool}))
    engine.__class__ = Kept
    assert isinstance(engine, Kept)
    path = Path(str(engine.url.database))
    event.listen(engine, "connect", partial(_note_file, path))
    event.listen(engine, "checkout", partial(_refuse_if_replaced, path))
    return engine


def _knowing(engine: Engine) -> Engine:
    """With all that was compiled so far, which is kept by dialect."""
    engine.dialect = engine.pool._dialect = _first().dialect
    engine._compiled_cache = _first()._compiled_cache
    return engine


@cache
def _first() -> Engine:
    engine = create_engine("sqlite://")
    engine.connect().close()
    return engine


def _note_file(path: Path, connection: Any, record: Any) -> None:
    """The pragma makes it if there is none; no test pulls the plug."""
    connection.execute("pragma synchronous = off")
    record.info["file"] = _file(path)


def _refuse_if_replaced(path: Path, connection: Any, record: Any, _: object) -> None:
    """A test may have removed it, and another one may be there now."""
    if record.info["file"] != _file(path):
        raise DisconnectionError


def _file(path: Path) -> int | None:
    return path.stat().st_ino if path.exists() else None

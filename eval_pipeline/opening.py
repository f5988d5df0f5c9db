"""The DuckDB file opened to read: undisturbed by whoever has it open, and at little cost."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import duckdb

from eval_pipeline.engines import cursor
from eval_pipeline.journal.files import quoted

_numbers = count(1)


@contextmanager
def opened(path: Path, *, apart: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A short read-only connection to the file as it is now.

    With an engine of its own (`apart`) for SQL that people write: that finds nothing but this file,
    and what it sets is nobody else's.
    """
    name, is_own = _name(path)
    try:
        if is_own and not apart:
            connection, database = _attach(name)
        else:  # an engine opens no file twice under the same name
            connection, database = duckdb.connect(str(name), read_only=True), None
    finally:
        if is_own:
            name.unlink()  # whoever has the file open needs it no longer
    try:
        yield connection
    finally:
        connection.close()
        if database is not None:
            _detach(database)


def _name(path: Path) -> tuple[Path, bool]:
    """A name of its own for the file, so that nobody's write-ahead log is read with it."""
    link = path.with_name(f".{path.stem}-{os.getpid()}-{secrets.token_hex(6)}.reading")
    try:
        os.link(path, link)
    except FileNotFoundError:
        raise
    except OSError:  # a folder that can only be read, or a file system without links
        return path, False
    return link, True


def _attach(path: Path) -> tuple[duckdb.DuckDBPyConnection, str]:
    connection, database = cursor(), f"results_{next(_numbers)}"
    try:
        connection.execute(f"attach {quoted(path)} as {database} (read_only)")
        connection.execute(f"use {database}")
    except BaseException:
        connection.close()
        raise
    return connection, database


def _detach(database: str) -> None:
    with cursor() as connection:
        connection.execute(f"detach {database}")

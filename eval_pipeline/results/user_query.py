"""SQL that people write: one statement that only reads, and what is wrong with it in words."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import duckdb

from eval_pipeline.errors import MendableError
from eval_pipeline.runtime import OneShotEvent, ThreadTask

MOST_LINES, MOST_CHARACTERS = 8, 1000
MOST_ROWS = 200
"""The most rows that are printed."""
INTERRUPTED = 130
PATIENCE_S, MOMENT_S = 1.5, 0.05
"""The time a query has to notice an interrupt, and the pause between two interrupts."""
_SETTINGS = (
    # Variables of the program are no tables.
    "python_enable_replacements",
    # A query must not fetch and load code, as DuckDB does for a web address.
    "autoinstall_known_extensions",
    "autoload_known_extensions",
)
_WRITERS = re.compile("enable_logging|enable_profiling|json_execute_serialized_sql", re.IGNORECASE)
"""Functions that write files from within a SELECT, or hide one that does."""
_EXTENSION = re.compile(r"try installing and loading the (\w+) extension")
"""DuckDB's advice to load an extension, which is refused here."""
_HIDING = re.compile(r"\bquery\b|\bu&", re.IGNORECASE)
T = TypeVar("T")


class QueryError(MendableError):
    """Raised where SQL cannot be run; the message says why, mostly in DuckDB's words."""


class FirstRows(NamedTuple):
    """The beginning of a result, and how many rows come after it."""

    columns: Sequence[str]
    are_numbers: Sequence[bool]
    rows: Sequence[tuple[Any, ...]]
    more: int


def only_reading(db: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The statement, ready to be part of another one; refused if it would do more than read."""
    for setting in _SETTINGS:
        db.execute(f"set {setting} = false")
    sql = sql.strip().rstrip("; \n")
    with in_words():
        statements = db.extract_statements(sql)
        if not statements:
            raise QueryError('There is no SQL in it. As an example: evals query "from leaderboard"')
        has_text = any(one.query.strip() for one in statements)
        if has_text and len(statements) > 1:
            raise QueryError("That is more than one statement: run them one by one.")
        _refuse_kinds([one.type for one in statements])
        text = statements[0].query.strip().rstrip(";") if has_text else sql
        _refuse_writers(db, text, taken_apart=not has_text)
        db.sql(text)
    return text


def _refuse_kinds(kinds: Sequence[duckdb.StatementType]) -> None:
    """A pivot is taken apart into statements without a text: its values as types, and a SELECT."""
    kind = duckdb.StatementType
    *before, last = kinds
    if last == kind.SELECT and all(one == kind.CREATE for one in before):
        return
    # Around a pivot that is part of something else there is a transaction.
    framing = (kind.SELECT, kind.CREATE, kind.TRANSACTION)
    others = [one for one in kinds if one not in framing] or [kind.CREATE]
    found = others[0] if before else last
    raise QueryError(
        f"Results are only read here, and this is a statement of type "
        f"{found.name.replace('_', ' ')}: begin with SELECT, FROM, WITH, DESCRIBE, SHOW or "
        "SUMMARIZE. To write, attach the file to a database of your own."
    )


def _refuse_writers(db: duckdb.DuckDBPyConnection, text: str, *, taken_apart: bool) -> None:
    """The plan names every function, however it is spelled; what is taken apart has none yet."""
    if taken_apart:
        found = _WRITERS.search(text) or _HIDING.search(text)
    else:
        plan = db.execute(f"explain (format json) from (\n{text}\n)").fetchall()
        found = _WRITERS.search(" ".join(_functions(json.loads(plan[-1][1]))))
    if found:
        raise QueryError(f"Results are only read here, and {found[0].lower()} could write.")


def _functions(plan: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the names of a plan's operators, without the values in it."""
    for one in plan:
        yield str(one["name"])
        yield from _functions(one["children"])


@contextmanager
def working(db: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Run the work in another thread until the block ends: DuckDB may ignore Ctrl-C."""
    worker = ThreadTask(work)
    try:
        worker.start()
        yield worker.result
    finally:
        _stop(db, worker.ended)


def interruptibly(db: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> T:
    """Return the result of the work, which Ctrl-C interrupts."""
    with working(db, work) as result:
        return result()


def _stop(db: duckdb.DuckDBPyConnection, ended: OneShotEvent) -> None:
    """Interrupt the query until it ends: closing its connection would wait for it."""
    until = time.monotonic() + PATIENCE_S
    while not ended.happened:
        with suppress(KeyboardInterrupt):
            if ended.wait(MOMENT_S):
                return
            if time.monotonic() > until:
                os._exit(INTERRUPTED)  # a query deep in one function never notices
            db.interrupt()


def first_rows(db: duckdb.DuckDBPyConnection, sql: str) -> FirstRows:
    """As much of a result as fits on a screen or some."""
    rows = f"from (\n{sql}\n)"
    with in_words():
        result = db.sql(rows)
        found = result.limit(MOST_ROWS + 1).fetchall()
        more = 0
        if len(found) > MOST_ROWS:
            (count,) = db.sql(f"select count(*) {rows}").fetchall()[0]
            more = max(1, count - MOST_ROWS)
    numbers = [_is_number(str(kind)) for kind in result.types]
    return FirstRows(result.columns, numbers, found[:MOST_ROWS], more)


@contextmanager
def in_words() -> Iterator[None]:
    """Turn DuckDB's errors into short messages."""
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:  # DuckDB's for an interruption that Python has noticed first
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        if needed := _EXTENSION.search(str(error)):
            raise QueryError(
                f"That needs DuckDB's extension {needed[1]}, and extensions are not loaded here: "
                "of what is not in the tables, only local files can be read."
            ) from None
        lines = str(error).splitlines()[:MOST_LINES]
        raise QueryError("\n".join(lines)[:MOST_CHARACTERS].rstrip()) from None


def _is_number(kind: str) -> bool:
    return kind.endswith("INT") or kind.startswith(("DECIMAL", "INTEGER", "DOUBLE", "FLOAT"))

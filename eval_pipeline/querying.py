"""SQL that people write: one statement that only reads, and what is wrong with it in words."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import duckdb

from eval_pipeline.errors import MendableError

MOST_LINES, MOST_CHARACTERS = 8, 1000
MOST_ROWS = 200
"""More of them nobody reads from a terminal."""


class QueryError(MendableError):
    """The SQL can not be run; the message says why, mostly in DuckDB's words."""


class FirstRows(NamedTuple):
    """The beginning of a result, and how many rows come after it."""

    columns: Sequence[str]
    are_numbers: Sequence[bool]
    rows: Sequence[tuple[Any, ...]]
    more: int


def only_reading(db: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The statement, ready to be part of another one; refused if it would do more than read."""
    # What is in the program's memory is nobody's table.
    db.execute("set python_enable_replacements = false")
    sql = sql.strip().rstrip("; \n")
    with in_words():
        statements = db.extract_statements(sql)
        if not statements:
            raise QueryError('There is no SQL in it. As an example: evals query "from leaderboard"')
        # A pivot is taken apart into several statements, which have no text of their own.
        texts = [one.query.strip() for one in statements if one.query.strip()] or [sql]
        if len(texts) > 1:
            raise QueryError("That is more than one statement: run them one by one.")
        if statements[-1].type != duckdb.StatementType.SELECT:
            kind = statements[-1].type.name.replace("_", " ")
            raise QueryError(
                f"Results are only read here, and this is a statement of type {kind}: begin with "
                "SELECT, FROM, WITH, DESCRIBE, SHOW or SUMMARIZE. To write, attach the file to a "
                "database of your own."
            )
        text = texts[0].rstrip(";")
        db.sql(text)
    return text


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
    """What DuckDB says of an error, as far as people read it."""
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:  # DuckDB's for an interruption that Python has noticed first
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        lines = str(error).splitlines()[:MOST_LINES]
        raise QueryError("\n".join(lines)[:MOST_CHARACTERS].rstrip()) from None


def _is_number(kind: str) -> bool:
    return kind.endswith("INT") or kind.startswith(("DECIMAL", "INTEGER", "DOUBLE", "FLOAT"))

"""How commands speak: sentences and tables for people, JSON for programs, and how they end."""

import json
import logging
import sys
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import date, datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval_pipeline.cli.log_lines import write
from eval_pipeline.untrusted import printable

if TYPE_CHECKING:  # loading it takes a moment that `evals --help` does without
    from rich.console import Console, RenderableType

LOGGER = "eval_pipeline.cli"
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


class End(IntEnum):
    """What the exit code says."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    BUDGET = 3
    INTERRUPTED = 130


def console() -> "Console":
    """The terminal, or the pipe, that the command writes to."""
    from rich.console import Console

    return Console()


def say(text: str) -> None:
    """Prints it as it is: what looks like markup may be part of somebody's name."""
    typer.echo(printable(text))


def complain(text: str, level: int = logging.WARNING) -> None:
    """The same where errors go, which may be a log for programs."""
    write(logging.LogRecord(LOGGER, level, __file__, 0, text, None, None))


def show(*tables: "RenderableType") -> None:
    """Prints tables; without a terminal they are as wide as they need to be."""
    from rich.console import Console

    terminal = Console()
    wide = Console(width=WIDE) if not terminal.is_terminal else terminal
    for table in tables:
        wide.print(table)


def print_json(value: object) -> None:
    """One JSON document: dates as in ISO 8601, numbers that are none as null."""
    _printed.set(True)
    typer.echo(escaped(json.dumps(_plain(value), indent=2, ensure_ascii=False)))


def print_error(how: End, words: str) -> None:
    """What went wrong as the one document, unless there is one already."""
    if not _printed.get():
        ended = "wrong use" if how is End.WRONG_USE else "failed"
        print_json({"ended": ended, "error": words})


def nothing_is_printed() -> None:
    """A command begins."""
    _printed.set(False)


_printed: ContextVar[bool] = ContextVar("printed", default=False)
"""Whether a JSON document is on stdout: programs want one and no more."""


def escaped(document: str) -> str:
    """The same JSON without anything that a terminal would obey or not show."""
    return "".join(
        # JSON knows a character above U+FFFF as two halves.
        one if one in "\n\t" or one.isprintable() else json.dumps(one)[1:-1]
        for one in document
    )


WIDE = 160
"""Columns of a table that goes to a file or a pipe, where nothing wraps it."""


def end(how: End) -> None:
    """Ends the command, unless it is simply done."""
    if how is not End.DONE:
        sys.exit(how)


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(name): _plain(one) for name, one in value.items()}
        case str() | bool() | int() | None:
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else None  # noqa: PLR0124
        case datetime() | date():
            return value.isoformat()
        case Iterable():
            return [_plain(one) for one in value]
        case _:
            return str(value)

"""Command output (text, tables, JSON, log lines, pager), exit codes, and access to the results."""

import json
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eval_pipeline.errors import MendableError
from eval_pipeline.logs import JsonLines
from eval_pipeline.text import printable

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    import duckdb
    from rich.console import Console, RenderableType

    from eval_pipeline.evaluation.item import Section
    from eval_pipeline.journal import Stream
    from eval_pipeline.results.warehouse import Warehouse
    from eval_pipeline.settings.settings import Settings


LOGGER = "eval_pipeline.cli"


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


VARIABLE, JSON = "EVALS_LOG", "json"
_looking: ContextVar[bool] = ContextVar("looking", default=False)


def json_lines() -> JsonLines | None:
    """What makes the lines, if they are to be JSON."""
    from eval_pipeline.settings.settings import Settings

    try:
        settings = Settings.from_env()
    except MendableError:  # nobody knows the keys, and what says so has none of them
        return JsonLines(str) if asked_for() else None
    return JsonLines(settings.redact) if settings.log == JSON else None


def asked_for() -> bool:
    """Whether the environment asks for them, which can be told before settings are read."""
    return os.environ.get(VARIABLE) == JSON


def write(record: logging.LogRecord) -> None:
    """Writes it to stderr."""
    lines = None
    if not _looking.get():  # reading the settings may have something to say, too
        looking = _looking.set(True)
        try:
            lines = json_lines()
        finally:
            _looking.reset(looking)
    text = printable(logging.Formatter().format(record)) if lines is None else lines.format(record)
    typer.echo(text, err=True)


class LastResort(logging.Handler):
    """For what is logged while nobody follows."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        write(record)


PAGERS = ("EVALS_PAGER", "PAGER")
"""Who names what shows long texts, the first one first; an empty name means: nothing does."""
USUAL = "less"


def page_through(sections: "Iterable[Section]") -> None:
    """Prints the sections; what does not fit on the screen goes through a pager."""
    text = "\n\n".join(
        f"== {_clean(one.heading)} ==\n{_clean(one.text)}".rstrip() for one in sections
    )
    pager = _pager()
    if pager and sys.stdout.isatty() and not _fits(text):
        _show_in(pager, text)
    else:
        typer.echo(text)


def _pager() -> list[str]:
    named = next((os.environ[name] for name in PAGERS if name in os.environ), USUAL)
    try:
        command = shlex.split(named)
    except ValueError:  # a quote without its other half
        return []
    return command if command and shutil.which(command[0]) else []


def _show_in(pager: list[str], text: str) -> None:
    # Ctrl-C in a pager is meant for the pager.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        subprocess.run(pager, input=f"{text}\n", text=True, encoding="utf-8", check=False)  # noqa: S603
    finally:
        signal.signal(signal.SIGINT, before)


def _clean(text: str) -> str:
    return printable(text.replace("\r\n", "\n"))


def _fits(text: str) -> bool:
    columns, height = shutil.get_terminal_size()
    return sum(len(line) // columns + 1 for line in text.split("\n")) < height


LARGE = 200_000_000
"""Bytes of answers and verdicts that take a while to publish: not while a launch writes more."""


def open_warehouse(settings: "Settings | None" = None) -> "Warehouse":
    """The results of the project in the current folder."""
    from eval_pipeline.journal.deployment import open_journal
    from eval_pipeline.results.warehouse import Warehouse
    from eval_pipeline.settings.settings import Settings

    settings = settings or Settings.from_env()
    return Warehouse(settings.database, open_journal(settings))


@contextmanager
def results(
    settings: "Settings | None" = None, *parts: "Stream[Any]", apart: bool = False
) -> "Iterator[duckdb.DuckDBPyConnection]":
    """The results with what was journalled by now, also by launches at work or killed.

    `apart` is for whoever sets something: see `opened`.
    """
    from eval_pipeline.journal import JournalError

    warehouse = open_warehouse(settings)
    try:
        warehouse.publish(*(parts or _worth_waiting_for(warehouse)))
    except JournalError as error:  # such as a folder that can only be read
        complain(f"{error}\nWhat follows is what was known before.")
    with warehouse.reading(apart=apart) as db:
        yield db


def report_on(settings: "Settings", model: str, run_id: str) -> Path | None:
    """Where the report on why that run's items failed is, if there is one."""
    from eval_pipeline.analysis.report.paths import known_report

    return known_report(settings.reports, run_id, model)


def _worth_waiting_for(warehouse: "Warehouse") -> "list[Stream[Any]]":
    """All parts, or the small ones while a launch keeps making large ones larger."""
    from eval_pipeline.journal import JUDGED, PREDICTIONS, REJUDGED, STREAMS
    from eval_pipeline.journal.locks import running_run_ids

    journal, large = warehouse.journal, (PREDICTIONS, JUDGED, REJUDGED)
    if not warehouse.path.exists() or not running_run_ids(journal.root):
        return list(STREAMS)
    if sum(path.stat().st_size for one in large for path in journal.files(one)) < LARGE:
        return list(STREAMS)
    complain("A launch is at work: answers and verdicts are told as they were published last.")
    return [one for one in STREAMS if one not in large]

"""Command output (text, tables, JSON, log lines, pager) and exit codes."""

import json
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import date, datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType

from eval_pipeline.errors import MendableError
from eval_pipeline.logs import JsonLines
from eval_pipeline.text import printable

if TYPE_CHECKING:  # imported late: `evals --help` does without this
    from eval_pipeline.evaluation.item import Section

WIDE = 160
"""Columns of a table that goes to a file or a pipe, where nothing wraps it."""
PAGERS, DEFAULT_PAGER = ("EVALS_PAGER", "PAGER"), "less"
"""The variables that name the pager, the first one first; an empty name means none."""
json_printed: ContextVar[bool] = ContextVar("json_printed", default=False)
"""Whether a JSON document is on stdout: programs want one and no more."""
_reads_settings: ContextVar[bool] = ContextVar("reads_settings", default=False)


class End(IntEnum):
    """What the exit code says."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    BUDGET = 3
    INTERRUPTED = 130

    @property
    def word(self) -> str:
        """The exit code in words, as JSON documents have it."""
        return self.name.lower().replace("_", " ")


def end(how: End) -> None:
    """End the command, unless it is simply done."""
    if how is not End.DONE:
        sys.exit(how)


def end_in_order() -> None:
    """Raise KeyboardInterrupt on Ctrl-C from now on: there is something to clean up or to land."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def say(*texts: str) -> None:
    """Print texts without interpreting markup, since what looks like it may be part of a name."""
    for text in texts:
        typer.echo(printable(text))


def show(*parts: RenderableType | None) -> None:
    """Print the tables and texts there are; in a file, tables are as wide as they need to be."""
    terminal = Console()
    wide = terminal if terminal.is_terminal else Console(width=WIDE)
    for part in parts:
        if isinstance(part, str):
            say(part)
        elif part is not None:
            wide.print(part)


def print_json(value: object) -> None:
    """Print one JSON document: dates as in ISO 8601, numbers that are none as null."""
    json_printed.set(True)
    typer.echo(escaped(json.dumps(_plain(value), indent=2, ensure_ascii=False)))


def report(document: object, *parts: RenderableType | None, as_json: bool) -> None:
    """Print the document for programs, or else the parts for people."""
    if as_json:
        print_json(document)
    else:
        show(*parts)


def escaped(document: str) -> str:
    """Return the same JSON without anything that a terminal would obey or not show."""
    return "".join(
        # JSON knows a character above U+FFFF as two halves.
        one if one in "\n\t" or one.isprintable() else json.dumps(one)[1:-1]
        for one in document
    )


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):  # a NamedTuple
        value = value._asdict()
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


def complain(text: str, level: int = logging.WARNING) -> None:
    """Print a text on stderr, which may be a log for programs."""
    LastResort().emit(logging.LogRecord("eval_pipeline.cli", level, __file__, 0, text, None, None))


class LastResort(logging.Handler):
    """Writes to stderr what is logged while no progress is shown."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        lines = None
        if not _reads_settings.get():  # reading the settings may log something, too
            reads = _reads_settings.set(True)
            try:
                lines = json_lines()
            finally:
                _reads_settings.reset(reads)
        typer.echo(lines.format(record) if lines else printable(self.format(record)), err=True)


def json_lines() -> JsonLines | None:
    """Return what formats log lines, if they are to be JSON."""
    from eval_pipeline.settings.settings import Settings

    try:
        settings = Settings.from_env()
    except MendableError:  # the keys are unknown, and the message has none of them
        return JsonLines(str) if json_log_requested() else None
    return JsonLines(settings.redact) if settings.log == "json" else None


def json_log_requested() -> bool:
    """Return whether the environment asks for a JSON log, known before settings are read."""
    return os.environ.get("EVALS_LOG") == "json"


def page_through(sections: "Iterable[Section]") -> None:
    """Print the sections; what does not fit on the screen goes through a pager."""
    text = "\n\n".join(
        f"== {_clean(one.heading)} ==\n{_clean(one.text)}".rstrip() for one in sections
    )
    pager = _pager() if sys.stdout.isatty() and not _fits(text) else []
    if not pager:
        return typer.echo(text)
    # Ctrl-C in a pager is meant for the pager.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        subprocess.run(pager, input=f"{text}\n", text=True, encoding="utf-8", check=False)  # noqa: S603
    finally:
        signal.signal(signal.SIGINT, before)


def _pager() -> list[str]:
    named = next((os.environ[name] for name in PAGERS if name in os.environ), DEFAULT_PAGER)
    try:
        command = shlex.split(named)
    except ValueError:  # a quote without its other half
        return []
    return command if command and shutil.which(command[0]) else []


def _clean(text: str) -> str:
    return printable(text.replace("\r\n", "\n"))


def _fits(text: str) -> bool:
    columns, height = shutil.get_terminal_size()
    return sum(len(line) // columns + 1 for line in text.split("\n")) < height

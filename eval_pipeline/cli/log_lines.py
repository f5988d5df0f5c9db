"""How commands write to stderr: as people read it, or as JSON lines if the settings say so."""

import logging
import os
from contextvars import ContextVar

import typer

from eval_pipeline.errors import MendableError
from eval_pipeline.logs import JsonLines
from eval_pipeline.untrusted import printable

VARIABLE, JSON = "EVALS_LOG", "json"
_looking: ContextVar[bool] = ContextVar("looking", default=False)


def json_lines() -> JsonLines | None:
    """What makes the lines, if they are to be JSON."""
    from eval_pipeline.settings import Settings

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

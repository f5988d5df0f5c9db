"""Our log as JSON lines, for programs that collect logs; without keys, and about which run."""

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TextIO

LOGGER = "eval_pipeline"
FACTS = "facts"
"""The name under which a record may carry numbers: `extra={FACTS: {...}}`."""
_known: ContextVar[Mapping[str, str]] = ContextVar("known", default=MappingProxyType({}))


@contextmanager
def about(**facts: str) -> Iterator[None]:
    """What is logged within, also by tasks and threads that begin there, is about this."""
    before = _known.set({**_known.get(), **facts})
    try:
        yield
    finally:
        _known.reset(before)


def in_words(facts: Mapping[str, object]) -> str:
    """The same for people who read it as a line."""
    return " ".join(f"{name}={fact}" for name, fact in facts.items())


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and what it is about."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": _utc(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            **_about(record),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        # As ASCII nothing in it ends the line, or is obeyed by a terminal.
        return self._redact(json.dumps(told, default=str))


class _Lines(logging.StreamHandler[TextIO]):
    """To stderr, whatever that is by then."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


def write_lines(lines: JsonLines, logger: str = LOGGER) -> None:
    """From now on what is logged there goes to stderr as such lines, each once."""
    log = logging.getLogger(logger)
    known = [one for one in log.handlers if isinstance(one, _Lines)]
    for handler in known or [_Lines()]:
        handler.setFormatter(lines)
        log.addHandler(handler)


def _message(record: logging.LogRecord) -> str:
    """As it was said: within a run Dagster puts its own words before it."""
    dagster = getattr(record, "dagster_meta", None)
    return str(dagster["orig_message"]) if dagster else record.getMessage()


def _about(record: logging.LogRecord) -> dict[str, Any]:
    facts = getattr(record, FACTS, None)
    return {**_known.get(), **({FACTS: facts} if facts else {})}


def _utc(seconds: float) -> str:
    when = datetime.fromtimestamp(seconds, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")

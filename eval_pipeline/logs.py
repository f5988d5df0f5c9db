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
    """Add facts to what is logged within, also by tasks and threads that begin there."""
    before = _known.set({**_known.get(), **facts})
    try:
        yield
    finally:
        _known.reset(before)


def in_words(facts: Mapping[str, object]) -> str:
    """Return the facts as people read them in a line."""
    return " ".join(f"{name}={fact}" for name, fact in facts.items())


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and what it is about."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        # Within a run Dagster puts its own words before the message.
        dagster = getattr(record, "dagster_meta", None)
        told: dict[str, Any] = {
            "time": when.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": str(dagster["orig_message"]) if dagster else record.getMessage(),
            **_known.get(),
        }
        if facts := getattr(record, FACTS, None):
            told[FACTS] = facts
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        # As ASCII nothing in it ends the line, or is obeyed by a terminal.
        return self._redact(json.dumps(told, default=str))


class _Lines(logging.StreamHandler[TextIO]):
    """Writes to stderr, whatever that is by then."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


def write_lines(lines: JsonLines, logger: str = LOGGER) -> None:
    """Write what is logged there to stderr as such lines from now on, each once."""
    log = logging.getLogger(logger)
    known = [one for one in log.handlers if isinstance(one, _Lines)]
    for handler in known or [_Lines()]:
        handler.setFormatter(lines)
        log.addHandler(handler)

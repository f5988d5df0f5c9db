"""Following a launch: what its stages say, on stderr, and at a terminal the bars below it."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from eval_pipeline.cli.log_lines import json_lines
from eval_pipeline.logs import LOGGER, write_lines
from eval_pipeline.untrusted import printable


@contextmanager
def following(*, as_json: bool = False) -> Iterator[None]:
    """Shows what the stages say and, where a person looks on, how far each model is.

    Questions are to be asked before: within, the terminal's last lines belong to the bars.
    """
    if (lines := json_lines()) is not None:
        write_lines(lines)
        with _log_to():
            yield
        return
    if as_json or not _somebody_looks_on():
        handler = logging.StreamHandler()
        handler.setFormatter(Plain("%(message)s"))
        with _log_to(handler):
            yield
        return
    from eval_pipeline.cli.progress.display import Display
    from eval_pipeline.progress import watching

    with watching() as watch, Display(watch) as display, _log_to(display.log):
        yield


class Plain(logging.Formatter):
    """As it is, without what a terminal would obey."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _somebody_looks_on() -> bool:
    """Whether there is a terminal that can move its cursor; CI may have one, but only keeps it."""
    if not sys.stderr.isatty() or os.environ.get("CI"):
        return False
    from rich.console import Console

    return Console(stderr=True).is_interactive


@contextmanager
def _log_to(*handlers: logging.Handler) -> Iterator[None]:
    """With what is worth knowing, and not only what is wrong."""
    log = logging.getLogger(LOGGER)
    level = log.level
    log.setLevel(logging.INFO)
    for handler in handlers:
        log.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            log.removeHandler(handler)
        log.setLevel(level)

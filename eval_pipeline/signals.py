"""What interrupts work besides Ctrl-C: to be told to end, and to lose the terminal."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTIONS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
STDOUT, STDERR = 1, 2
Handler = Callable[[int, FrameType | None], None]


@contextmanager
def all_like_ctrl_c() -> Iterator[None]:
    """Within it each of these signals does what Ctrl-C does; in the main thread only."""
    with (
        _handled(signal.SIGTERM, _interrupt),
        _handled(signal.SIGHUP, _hanging_up()),
        _unheard_are_not_told(),
    ):
        yield


@contextmanager
def _handled(number: signal.Signals, handler: Handler) -> Iterator[None]:
    """Handles the signal so, unless it is to be ignored, as `nohup` wants it."""
    before = signal.getsignal(number)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        # Ignored meanwhile means for good.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Does what Ctrl-C does just now, which Dagster decides within its runs."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(number, frame)


def _hanging_up() -> Handler:
    """Interrupts once, however often it is told, and nobody fails at writing to a terminal gone."""
    terminals = [file for file in (STDOUT, STDERR) if os.isatty(file)]

    def hang_up(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for terminal in terminals:
            os.dup2(nowhere, terminal)
        os.close(nowhere)
        _interrupt(number, frame)

    return hang_up


@contextmanager
def _unheard_are_not_told() -> Iterator[None]:
    """An interruption that hits where Python can raise nothing is no fault to be printed."""
    before = sys.unraisablehook

    def tell(what: "sys.UnraisableHookArgs") -> None:
        if issubclass(what.exc_type, Exception):
            before(what)

    sys.unraisablehook = tell
    try:
        yield
    finally:
        sys.unraisablehook = before

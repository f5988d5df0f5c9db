"""What Ctrl-C does to `evals`: it ends at once, or in order once there is something to land."""

import os
import signal
import sys
from contextlib import suppress

INTERRUPTED = 130


def interrupt_ends_at_once() -> None:
    """End the process on Ctrl-C: an exception would get lost in whatever is being imported."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def end_in_order() -> None:
    """Raise KeyboardInterrupt on Ctrl-C from now on: there is something to clean up or to land."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_interrupted() -> None:
    """Flush and exit; Python itself would end threads within C++, which aborts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed by its reader
            stream.flush()
    os._exit(INTERRUPTED)


def _exit(*_: object) -> None:
    os._exit(INTERRUPTED)

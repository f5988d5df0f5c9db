"""Where `evals` begins, and what Ctrl-C does to it: it ends at once, or in order."""

import os
import signal
import sys
from contextlib import suppress

INTERRUPTED = 130


def main() -> None:
    """Loads the command and runs it; as long as it only loads and reads, Ctrl-C ends it at once."""
    # An exception would get lost, or garbled, in whatever is being imported.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)
    try:
        from eval_pipeline.cli.main import main as begin

        begin()
    except KeyboardInterrupt:
        _end_now()
    except SystemExit as ending:
        if ending.code == INTERRUPTED:
            _end_now()
        raise


def end_in_order() -> None:
    """From now on Ctrl-C is an exception: there is something to clean up or to land."""
    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_now() -> None:
    """What had to be done is done: Python itself would end threads within C++, which aborts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(INTERRUPTED)


def _end_at_once(*_: object) -> None:
    os._exit(INTERRUPTED)

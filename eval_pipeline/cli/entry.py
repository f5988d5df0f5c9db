"""The entry point of `evals`, and how Ctrl-C ends it."""

import os
import signal
import sys
from contextlib import suppress

INTERRUPTED = 130


def main() -> None:
    """Load the command and run it; while it only loads and reads, Ctrl-C ends it at once.

    An exception would get lost in whatever is being imported.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        from eval_pipeline.cli.main import main as run_command

        run_command()
    except KeyboardInterrupt:
        _exit_interrupted()
    except SystemExit as ending:
        if ending.code == INTERRUPTED:
            _exit_interrupted()
        raise


def _exit_interrupted() -> None:
    """Flush and exit; Python itself would end threads within C++, which aborts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed by its reader
            stream.flush()
    os._exit(INTERRUPTED)

"""Runs a program with a time limit, bounded output, and nothing left behind."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """How a program ended and what it wrote."""

    exit_code: int | None
    output: bytes
    timed_out: bool
    truncated: bool


def run(
    argv: Sequence[str], *, stdin: bytes = b"", seconds: float, max_output: int = 65536
) -> Result:
    """Runs `argv` in a group of its own and stops the group when its time is up."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    timed_out = threading.Event()

    def stop() -> None:
        timed_out.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(seconds, stop)
    timer.start()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(stdin)
        process.stdin.close()
    exit_code = process.wait()
    timer.cancel()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    output = process.stdout.read()
    process.stdout.close()
    return Result(
        None if timed_out.is_set() else exit_code,
        output[:max_output],
        timed_out.is_set(),
        len(output) > max_output,
    )

"""Runs a program with a time limit, bounded output, and nothing left behind."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from subprocess import PIPE, STDOUT, Popen, TimeoutExpired
from threading import Thread
from typing import IO

CHUNK = 65536


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
    """Runs `argv` in a process group of its own, which does not outlive the call."""
    # Unbuffered pipes, because a flush in `close` would raise what `write` has raised before.
    with Popen(
        argv, stdin=PIPE, stdout=PIPE, stderr=STDOUT, bufsize=0, start_new_session=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        output = _Output(process.stdout, max_output)
        threads = [Thread(target=_feed, args=(process.stdin, stdin)), Thread(target=output.read)]
        for thread in threads:
            thread.start()
        try:
            exit_code = _wait(process, seconds)
        finally:
            _kill_group(process)
            # With the group gone nobody holds the pipes, so both threads come to an end.
            for thread in threads:
                thread.join()
    return Result(exit_code, bytes(output.kept), exit_code is None, output.truncated)


class _Output:
    """The beginning of a stream that is read to its end."""

    def __init__(self, pipe: IO[bytes], limit: int) -> None:
        self._pipe = pipe
        self._limit = limit
        self.kept = bytearray()
        self.truncated = False

    def read(self) -> None:
        while chunk := self._pipe.read(CHUNK):
            room = self._limit - len(self.kept)
            self.kept += chunk[:room]
            self.truncated = self.truncated or len(chunk) > room


def _feed(pipe: IO[bytes], data: bytes) -> None:
    """Writes `data` as far as somebody reads it."""
    rest = memoryview(data)
    with pipe, suppress(BrokenPipeError):
        while rest:
            rest = rest[pipe.write(rest) :]


def _wait(process: Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except TimeoutExpired:
        return None


def _kill_group(process: Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)

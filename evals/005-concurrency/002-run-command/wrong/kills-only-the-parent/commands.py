"""Runs a program with a time limit and bounded output."""

import subprocess
import tempfile
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
    """Runs `argv` with files for its streams, and stops it when its time is up."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as sink:
        source.write(stdin)
        source.seek(0)
        process = subprocess.Popen(argv, stdin=source, stdout=sink, stderr=subprocess.STDOUT)
        exit_code: int | None = None
        try:
            exit_code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        sink.seek(0)
        output = sink.read(max_output + 1)
    return Result(exit_code, output[:max_output], exit_code is None, len(output) > max_output)

"""Runs a program with a time limit and bounded output."""

import subprocess
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
    """Runs `argv` and stops it when its time is up."""
    try:
        finished = subprocess.run(
            argv,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        output = error.output or b""
        return Result(None, output[:max_output], True, len(output) > max_output)
    output = finished.stdout
    return Result(finished.returncode, output[:max_output], False, len(output) > max_output)

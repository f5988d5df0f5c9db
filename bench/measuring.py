"""What a command took: seconds, CPU seconds, peak memory, measured in a process of its own.

Linux counts the memory of the process that started another one as that one's too, until it has
loaded its own program. So the commands are started by this module, run as a small program: it
imports nothing that is large.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

# Kilobytes on Linux, bytes on a Mac.
_PER_MB = 1024 * 1024 if sys.platform == "darwin" else 1024
LONGEST_S = 600.0


@dataclass(frozen=True)
class Taken:
    """What something took; `started_at` is in seconds since 1970."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    started_at: float = 0.0


class BenchError(Exception):
    """Something could not be measured; the message says what went wrong."""


def measured(
    command: Sequence[str], folder: Path, env: dict[str, str], longest_s: float = LONGEST_S
) -> Taken:
    """Runs the command to its end and says what all of it took."""
    launcher = [sys.executable, "-S", "-E", __file__, str(longest_s), *command]
    # The command has its own time limit; the launcher's is there for the launcher.
    return reported(launcher, folder, env, longest_s + 10)


def reported(
    command: Sequence[str], folder: Path, env: dict[str, str], longest_s: float = LONGEST_S
) -> Taken:
    """Runs a command that says itself, in its last line, what a part of it took."""
    said = finished(command, folder, env, longest_s)
    return Taken(**json.loads(said.splitlines()[-1]))


def finished(
    command: Sequence[str], folder: Path, env: dict[str, str], longest_s: float = LONGEST_S
) -> str:
    """Runs the command and returns what it printed; if it fails, that is the error."""
    with started(command, folder, env, output=subprocess.PIPE) as process:
        try:
            said, trouble = process.communicate(timeout=longest_s)
        except subprocess.TimeoutExpired:
            raise BenchError(f"it took longer than {longest_s:g} s") from None
    if process.returncode != 0:
        raise BenchError(f"{said}{trouble}"[-2000:].strip())
    return said


@contextmanager
def started(
    command: Sequence[str], folder: Path, env: dict[str, str], output: int = subprocess.DEVNULL
) -> "Iterator[subprocess.Popen[str]]":
    """A process that leads a group; with the block, it and all it has started are killed."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


class Stopwatch:
    """What this process takes from here on."""

    def __init__(self) -> None:
        self._started_at, self._started, self._cpu = time.time(), time.perf_counter(), _cpu_s()

    def taken(self) -> Taken:
        return Taken(
            wall_s=time.perf_counter() - self._started,
            cpu_s=_cpu_s() - self._cpu,
            peak_mb=peak_mb(),
            started_at=self._started_at,
        )


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_mb() -> float:
    """The largest memory this process had since it loaded its program."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _PER_MB
    return next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) / 1024


def _run(command: Sequence[str], longest_s: float) -> Taken:
    started_at, started = time.time(), time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    timer = threading.Timer(longest_s, process.kill)
    timer.start()
    _, status, used = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"it ended with {process.returncode}")
    return Taken(
        wall_s=time.perf_counter() - started,
        cpu_s=used.ru_utime + used.ru_stime,
        peak_mb=used.ru_maxrss / _PER_MB,
        started_at=started_at,
    )


if __name__ == "__main__":
    print(json.dumps(asdict(_run(sys.argv[2:], float(sys.argv[1])))))

"""A copy of the project's root in a temporary folder, for tests that run its commands."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def a_project(folder: Path) -> Path:
    """What a user has in the project root, without the code, which is installed."""
    for name in ("eval_pipeline.toml", "dagster.yaml", "workspace.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "data" / "sample", folder / "data" / "sample")
    return folder


def environment(**variables: str) -> dict[str, str]:
    """The environment after `source .venv/bin/activate`, with no DAGSTER_HOME."""
    return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **variables}


def run(
    project: Path, command: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command line as a user types it."""
    return subprocess.run(
        command.split(),
        cwd=project,
        env=environment(**(variables or {})),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@contextmanager
def running(project: Path, *command: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is interrupted at the end, so that it ends what it has started itself."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=project, env=environment(), stdout=output, stderr=output
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

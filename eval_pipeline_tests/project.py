"""A copy of the project's root in a temporary folder, for tests that run its commands."""

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from eval_pipeline.cli.main import main

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


# The toolchains of coding tasks would have to be fetched into every such folder.
CODING = re.compile(r'\[\[suites\]\]\nname = "coding"\n.*?\n\n', re.DOTALL)

EVALUATE = {"run", "fix", "job"}
"""The commands that end with results."""


def a_project(folder: Path, *, questions: int | None = None) -> Path:
    """What a user has in the project root, without coding tasks and without the code itself.

    With so many of the sample's questions, where it does not matter how many there are.
    """
    for name in ("dagster.yaml", "workspace.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    settings, found = CODING.subn("", (ROOT / "eval_pipeline.toml").read_text("utf-8"))
    assert found == 1
    (folder / "eval_pipeline.toml").write_text(settings, "utf-8")
    lines = (ROOT / "data" / "sample" / "questions.jsonl").read_text("utf-8").splitlines(True)
    (folder / "data" / "sample").mkdir(parents=True)
    (folder / "data" / "sample" / "questions.jsonl").write_text("".join(lines[:questions]), "utf-8")
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
        timeout=200,
        check=False,
    )


LASTING = {"EVALS_DEPLOYMENT": "", "EVALS_PRODUCTION": ""}


def call(
    project: Path, command: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The same for `evals` in this process: a new one takes seconds to load Dagster."""
    out, err, ended_with = StringIO(), StringIO(), 0
    with (
        _own_log(),
        undrawn() if EVALUATE & {*command.split()} else nullcontext(),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.MonkeyPatch.context() as own,
    ):
        own.chdir(project)
        own.setattr(sys, "argv", command.split())
        # What a command sets for those that it starts goes with it.
        for name, value in {**LASTING, **(variables or {})}.items():
            own.setenv(name, value)
        try:
            main()
        except SystemExit as ended:
            ended_with = int(ended.code or 0)
    return subprocess.CompletedProcess(command, ended_with, out.getvalue(), err.getvalue())


@contextmanager
def undrawn() -> Iterator[None]:
    """No pictures: drawing them takes longer than all the rest of a small run.

    The tests of plots have them drawn, and so has every process of its own.
    """
    with pytest.MonkeyPatch.context() as own:
        own.setattr("eval_pipeline.defs.assets.plots", lambda db, folder, *names: {})
        yield


@contextmanager
def _own_log() -> Iterator[None]:
    """Commands tell the log to write to their terminal; that ends with them."""
    log = logging.getLogger("eval_pipeline")
    handlers, level = log.handlers[:], log.level
    try:
        yield
    finally:
        log.handlers[:] = handlers
        log.setLevel(level)


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
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

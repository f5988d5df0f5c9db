"""What it means to be a toolchain, how its tools are run, and what its steps have in common."""

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from eval_pipeline.errors import MendableError
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.coding import CodingTask, Files, Step, StepName, TaskLimits, TestResult
from eval_pipeline.suites.coding.files import private_folder, write_files
from eval_pipeline.suites.coding.sandbox.base import Finished, Limits, Sandbox

LONGEST_S = 900.0
"""Seconds that a tool may take while a toolchain is prepared, over a slow line too."""


class ToolchainError(MendableError):
    """A toolchain could not be prepared or is not: says what to do."""


class GraderError(Exception):
    """The grader itself is at fault, such as a reference answer that does not pass it."""


@dataclass(frozen=True)
class Workbench:
    """Where one answer is graded."""

    sandbox: Sandbox
    # The answer's files, already written; steps may add generated ones. Nothing else is in it.
    folder: Path
    # The toolchain's prepared environment, which every command may read and none may change.
    home: Path
    # The names of the tests that the reference answer passed; None while that is found out.
    expected_tests: Sequence[str] | None


class Toolchain(Protocol):
    """One language with its tools; a module that has one is all that a new language needs."""

    @property
    def name(self) -> str:
        """As tasks and settings call it."""

    @property
    def version(self) -> str:
        """A hash of its explicit version, lock files and configuration; in every grader version."""

    @property
    def steps(self) -> tuple[StepName, ...]:
        """The steps it can take, besides `filesystem`, in their order."""

    def is_prepared(self, home: Path) -> bool:
        """Whether `prepare` has ended well there."""

    def prepare(self, home: Path) -> None:
        """Fetches and builds all that the steps need; afterwards no network is needed."""

    def refuses(self, path: str, *, project: bool = False) -> str | None:
        """Why an answer, or a whole project, must not bring this file, which decides on checks."""

    def backend(self, task: CodingTask) -> str | None:
        """What stands in for a server that the code needs, to be said beside the result."""

    async def run(self, step: StepName, task: CodingTask, workbench: Workbench) -> Step:
        """Takes one step; SandboxError or status `error` where the answer can not be blamed."""


def toolchain_version(
    numbers: Sequence[int | str], files: Iterable[Path], earlier: Mapping[str, str]
) -> str:
    """Hash explicit version numbers with the files that pin tools and configure checks.

    `earlier` maps a version to the hash by which results from before explicit versions know it.
    """
    version = fingerprint(list(numbers), *(path.read_text("utf-8") for path in files))
    return earlier.get(version, version)


def run_tool(
    toolchain: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    folder: Path | None = None,
    descriptors: tuple[int, ...] = (),
) -> None:
    """Runs a tool that prepares a toolchain: it sees no answer, nor any of our keys."""
    try:
        subprocess.run(  # noqa: S603  (every word of it is ours)
            argv,
            cwd=folder,
            env=env,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = f"{error} {(getattr(error, 'stdout', None) or '')[-2000:]}".strip()
        raise ToolchainError(f"The {toolchain} toolchain could not be prepared: {said}") from error


def limits_of(step: StepName, task: CodingTask, usual: Limits) -> Limits:
    """What a step may use: as the task says, else as usual."""
    own = task.config.limits.get(step, TaskLimits())
    return replace(usual, **own.model_dump(exclude_none=True))


def finished_step(
    name: StepName, finished: Finished, reason: str, tests: tuple[TestResult, ...] = ()
) -> Step:
    """A step that passed unless there is a reason why not."""
    return Step(
        name=name,
        status="failed" if reason else "passed",
        reason=reason,
        output=finished.output,
        seconds=finished.seconds,
        tests=tests,
    )


@contextmanager
def grader_folder(files: Files) -> Iterator[Path]:
    """The files of grader/ in a folder that commands may read."""
    with private_folder("grader") as folder:
        write_files(folder, {path.removeprefix("grader/"): text for path, text in files.items()})
        yield folder

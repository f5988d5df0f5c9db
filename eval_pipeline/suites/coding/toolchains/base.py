"""What it means to be a toolchain: how files in a language are checked, step by step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from eval_pipeline.errors import MendableError
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.coding import CodingTask, Step, StepName
from eval_pipeline.suites.coding.sandbox.base import Sandbox


class ToolchainError(MendableError):
    """A toolchain could not be prepared or is not: says what to do."""


class GraderError(Exception):
    """The grader itself is at fault, such as a reference answer that does not pass it."""


def toolchain_version(
    numbers: Sequence[int | str], files: Iterable[Path], earlier: Mapping[str, str]
) -> str:
    """Hash explicit version numbers with the files that pin tools and configure checks.

    `earlier` maps a version to the hash by which results from before explicit versions know it.
    """
    version = fingerprint(list(numbers), *(path.read_text("utf-8") for path in files))
    return earlier.get(version, version)


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
        ...

    @property
    def version(self) -> str:
        """A hash of its explicit version, lock files and configuration; in every grader version."""
        ...

    @property
    def steps(self) -> tuple[StepName, ...]:
        """The steps it can take, besides `filesystem`, in their order."""
        ...

    def is_prepared(self, home: Path) -> bool:
        """Whether `prepare` has ended well there."""
        ...

    def prepare(self, home: Path) -> None:
        """Fetches and builds all that the steps need; afterwards no network is needed."""
        ...

    def refuses(self, path: str, *, project: bool = False) -> str | None:
        """Why an answer, or a whole project, must not bring this file, which decides on checks."""
        ...

    def backend(self, task: CodingTask) -> str | None:
        """What stands in for a server that the code needs, to be said beside the result."""
        ...

    async def run(self, step: StepName, task: CodingTask, workbench: Workbench) -> Step:
        """Takes one step; SandboxError or status `error` where the answer can not be blamed."""
        ...

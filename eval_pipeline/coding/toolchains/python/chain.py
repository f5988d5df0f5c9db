"""Python as a toolchain: an answer's dependencies, types, style and tests."""

import platform
from functools import cached_property
from pathlib import Path

from eval_pipeline.coding.records import CodingTask, Step, StepName
from eval_pipeline.coding.toolchains.python import checking, environment, testing
from eval_pipeline.coding.toolchains.python.refusals import refusal
from eval_pipeline.coding.toolchains.toolchain import Workbench
from eval_pipeline.fingerprints import fingerprint


class Python:
    """Answers in Python, in an environment with what engineers of data use."""

    name = "python"
    steps: tuple[StepName, ...] = ("install", "typecheck", "lint", "tests")

    @cached_property
    def version(self) -> str:
        """Of the language, the lock, the configuration and all code that checks."""
        files = sorted(
            path
            for folder in (environment.HERE, environment.ORACLE)
            for path in folder.rglob("*")
            if path.suffix in (".py", ".ini", ".lock")
        )
        language = platform.python_version_tuple()[:2]
        return fingerprint(list(language), *(path.read_text("utf-8") for path in files))

    def is_prepared(self, home: Path) -> bool:
        """Whether building it has come to its end."""
        return environment.Environment(home).ready is not None

    def prepare(self, home: Path) -> None:
        """Builds the environment from its lock, in an empty folder."""
        environment.build(home)

    def refuses(self, path: str, *, project: bool = False) -> str | None:
        """Why an answer must not bring this file."""
        return refusal(path)

    def backend(self, task: CodingTask) -> str | None:
        """Nothing stands in for anything."""
        return None

    async def run(self, step: StepName, task: CodingTask, workbench: Workbench) -> Step:
        """Takes one step."""
        if step == "install":
            return await checking.install(workbench)
        if step == "tests":
            return await testing.test(task, workbench)
        return await checking.check(step, task, workbench)

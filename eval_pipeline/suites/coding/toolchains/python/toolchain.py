"""Python as a toolchain: an answer's dependencies, types, style and tests."""

import platform
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from eval_pipeline.records.coding import CodingTask, Step, StepName
from eval_pipeline.suites.coding.isolated_tests.verdict import VERSION as ISOLATION_VERSION
from eval_pipeline.suites.coding.toolchains.base import Workbench, toolchain_version
from eval_pipeline.suites.coding.toolchains.python import checks, environment, tests

VERSION = 1
"""Raise this when a change of this package's code may change a verdict, never for a refactoring."""
CONFIGURATION = (environment.LOCK, environment.HERE / "mypy.ini", environment.HERE / "pytest.ini")
EARLIER: Mapping[str, str] = {
    "2c640656e686c9da": "bd32f9e56cf113ae",  # Python 3.11
    "84ed7ac6be498d11": "5496ce95356a3005",  # Python 3.12
    "548804428fd07060": "624bbec6d5c4b1a6",  # Python 3.13
}
"""Hashes of source text, from before explicit versions: results under them stay comparable."""


class Python:
    """Answers in Python, in an environment with what engineers of data use."""

    name = "python"
    steps: tuple[StepName, ...] = ("install", "typecheck", "lint", "tests")
    prepare = staticmethod(environment.build)

    @cached_property
    def version(self) -> str:
        """Hash the explicit versions, the language, the lock and the configuration of checks."""
        numbers = (VERSION, ISOLATION_VERSION, *platform.python_version_tuple()[:2])
        return toolchain_version(numbers, CONFIGURATION, EARLIER)

    def is_prepared(self, home: Path) -> bool:
        return environment.Environment(home).ready is not None

    def refuses(self, path: str, *, project: bool = False) -> str | None:
        return checks.refusal(path)

    def backend(self, task: CodingTask) -> str | None:
        return None

    async def run(self, step: StepName, task: CodingTask, workbench: Workbench) -> Step:
        if step == "install":
            return await checks.install(workbench)
        if step == "tests":
            return await tests.test(task, workbench)
        return await checks.check(step, task, workbench)

"""Coding tasks in a few lines, and a workbench on which real answers to them are graded."""

import asyncio
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval_pipeline.records.coding import CodingTask, Files, Step, StepName, TaskConfig
from eval_pipeline.suites.coding.files import write_files
from eval_pipeline.suites.coding.sandbox.base import Sandbox
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox
from eval_pipeline.suites.coding.toolchains.base import Workbench
from eval_pipeline.suites.coding.toolchains.registry import prepare, toolchain

DATA = Path(__file__).parents[1] / "data"
"""The project's own, so that a toolchain which takes a minute to prepare is prepared once."""


def a_task(grader: str | Files = "", answer: str = "", **changes: Any) -> CodingTask:
    """A task with one module `answer` and one file of tests."""
    fields: dict[str, Any] = {
        "suite": "evals",
        "id": "000-things/000-a-thing",
        "category": "things",
        "question": "Write answer.py.",
        "toolchain": "python",
        "config": TaskConfig(),
        "answer": {"answer.py": answer},
        "grader": {"grader/test_answer.py": grader} if isinstance(grader, str) else grader,
        "grader_version": "1",
    }
    return CodingTask(**fields | changes)


def with_interface(*names: str, **limits: Any) -> TaskConfig:
    """As of a task whose module `answer` has these names, all of them over plain data."""
    return TaskConfig(interface={"answer": names}, limits=limits)


@cache
def prepared(name: str = "python") -> Path:
    """Where the toolchain is prepared, which may take a minute the first time."""
    return prepare(toolchain(name), DATA, print)


def lend_toolchains(data: Path, *names: str) -> None:
    """Lets another project use what is prepared: python, unless others are named."""
    for name in names or ("python",):
        prepared(name)
    data.mkdir(parents=True, exist_ok=True)
    (data / "toolchains").symlink_to(DATA / "toolchains")


@cache
def a_sandbox() -> Sandbox:
    """The hardened one, as in real life."""
    return open_sandbox("bwrap")


def take(
    step: StepName,
    task: CodingTask,
    files: Files | None = None,
    *,
    expected: Sequence[str] | None = None,
    sandbox: Sandbox | None = None,
) -> Step:
    """One step over files, the reference's own unless others are given."""
    with TemporaryDirectory() as private:
        folder = Path(private) / "answer"
        folder.mkdir(mode=0o755)
        write_files(folder, task.answer if files is None else files)
        home = prepared(task.toolchain)
        workbench = Workbench(sandbox or a_sandbox(), folder, home, expected)
        return asyncio.run(toolchain(task.toolchain).run(step, task, workbench))

"""Whether graders are right: every reference answer passes, and every wrong answer fails."""

import asyncio
import re
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.errors import RunError
from eval_pipeline.processes import without_keys
from eval_pipeline.records.coding import STEPS, CodingTask, Files
from eval_pipeline.suites.coding.judge import CodeJudge, Graded

REFERENCE = "answer"
"""Answers are named by their folders in the task's, of which this one must pass."""


class Validated(NamedTuple):
    """One answer of a task, what had to become of it, and what did."""

    task: CodingTask
    answer: str
    graded: Graded

    @property
    def must_pass(self) -> bool:
        return self.answer == REFERENCE

    @property
    def is_right(self) -> bool:
        """Whether the grader said what it has to; that nobody could tell is never right."""
        return self.graded.score == float(self.must_pass)


def chosen(tasks: Iterable[CodingTask], pattern: str, among: set[str] | None) -> list[CodingTask]:
    """The tasks whose id matches; with `among`, of these ids only."""
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise RunError(f"-f must be a regular expression ({error}).") from None
    return [
        task for task in tasks if wanted.search(task.id) and (among is None or task.id in among)
    ]


async def validate(tasks: Sequence[CodingTask], judge: CodeJudge) -> AsyncIterator[Validated]:
    """Grades every answer that the tasks bring along, as each of them is done."""

    async def one(task: CodingTask, answer: str, files: Files) -> Validated:
        return Validated(task, answer, await judge.grade(task, files))

    pending = [
        asyncio.ensure_future(one(task, answer, files))
        for task in tasks
        for answer, files in (
            (REFERENCE, task.answer),
            *((f"wrong/{name}", files) for name, files in task.wrong.items()),
        )
    ]
    try:
        for finished in asyncio.as_completed(pending):
            yield await finished
    finally:
        for work in pending:
            work.cancel()


def not_passed(reference: Validated) -> str:
    """The steps that a reference has not simply passed, such as `deploy skipped`."""
    steps = reference.graded.code.steps
    odd = [f"{step.name} {step.status}" for step in steps if step.status != "passed"]
    return ", ".join(odd) or ("all passed" if steps else "none taken")


def by_step(results: Iterable[Validated]) -> str:
    """How many references came to what in each step."""
    steps = [step for one in results if one.must_pass for step in one.graded.code.steps]
    told = [
        f"{name} " + ", ".join(f"{n} {status}" for status, n in counts.items())
        for name in STEPS
        if (counts := Counter(step.status for step in steps if step.name == name))
    ]
    return f"References by step: {'; '.join(told) or 'none was taken'}."


def changed_tasks(folder: Path, since: str) -> set[str]:
    """Ids of the tasks in a folder that differ from a commit, those not committed yet included."""
    found: set[str] = set()
    for command in (
        ["diff", "--name-only", "--relative", "-z", since, "--", "."],
        ["ls-files", "--others", "--exclude-standard", "-z", "--", "."],
    ):
        done = subprocess.run(  # noqa: S603
            ["git", *command],  # noqa: S607
            cwd=folder,
            env=without_keys(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RunError(f"git cannot list what has changed: {done.stderr.strip()}")
        found |= {"/".join(path.split("/")[:2]) for path in done.stdout.split("\0") if path}
    return found

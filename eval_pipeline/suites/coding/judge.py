"""An answer in files, taken through its steps: what each came to, and whether it is a pass."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import ValidationError

from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal.files import swap_in
from eval_pipeline.records.coding import (
    STOPPING,
    CodingTask,
    Files,
    GradedCode,
    Step,
    StepName,
    TestResult,
)
from eval_pipeline.records.prediction import FREE, Usage
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.suites.coding.files import UnsafePath, check_files, private_folder, write_files
from eval_pipeline.suites.coding.reply import UnreadableReply, read_files
from eval_pipeline.suites.coding.sandbox.base import Sandbox, SandboxError
from eval_pipeline.suites.coding.toolchains.base import GraderError, Toolchain, Workbench
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS, home_of
from eval_pipeline.text import clean

log = logging.getLogger(__name__)
LONGEST_REASON = 1000
LONGEST_REVIEWED = 200_000
"""Characters of files: with more no AI grader could be asked, and nobody could tell."""
ATTEMPTS = 2
"""How often a step is taken whose failing can not be the answer's fault."""


class Reviewer(Protocol):
    """An AI grader: one more test for each criterion that a task has."""

    @property
    def name(self) -> str:
        """Who it is and how it is asked, for what was graded by another one is not reused."""
        ...

    async def review(self, task: CodingTask, files: Files) -> "Reviewed":
        """One result per criterion of the task; ReviewError if they can not be had."""
        ...


class ReviewError(Exception):
    """The AI grader could not be asked or understood; what was spent on it all the same."""

    def __init__(self, message: str, usage: Usage) -> None:
        super().__init__(message)
        self.usage = usage


class Reviewed(NamedTuple):
    """What an AI grader found, and what that cost."""

    tests: tuple[TestResult, ...]
    usage: Usage


class Graded(NamedTuple):
    """What a grading came to; without a score nobody can tell, and `reason` says why."""

    score: float | None
    reason: str
    code: GradedCode
    usage: Usage = FREE


@dataclass(frozen=True)
class CodeJudge:
    """Grades answers in files, as many at once as there are places."""

    sandbox: Sandbox
    data: Path
    places: asyncio.Semaphore
    # Whether everything is graded anew, whatever was graded before.
    fresh: bool = False
    toolchains: Mapping[str, Toolchain] = field(default_factory=lambda: TOOLCHAINS)
    _locks: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _references: dict[str, GradedCode] = field(default_factory=dict)

    async def grade_reply(
        self, task: CodingTask, reply: str, reviewer: Reviewer | None = None
    ) -> Graded:
        """Grades a model's reply, which is its own failing if no files can be found in it."""
        try:
            files = read_files(reply, expected=task.expected_files)
        except UnreadableReply as unreadable:
            return self._failed_at_once(task, {}, str(unreadable))
        return await self.grade(task, files, reviewer)

    async def grade(
        self, task: CodingTask, files: Files, reviewer: Reviewer | None = None
    ) -> Graded:
        """Grades files, unless the same files were graded in the same way before."""
        # An AI grader reads the task as well, which no other grader does.
        asked = (reviewer.name, task.question) if reviewer and task.config.review else ()
        key = fingerprint(self._way(task), {**files}, *asked)
        async with self._locks[key]:
            if before := self._read_kept(key):
                return _verdict(before)
            try:
                code = await self._reference(task)
            except GraderError as error:
                return Graded(None, str(error), self._code(task, files, ()))
            if step := code.failed_step:
                # How far the reference itself came is worth knowing to whoever mends it.
                is_known = files == task.answer and step.status == "failed"
                reason = (
                    f"The reference answer of {task.id} does not pass its own grader here: "
                    f"{step.name}: {step.reason or step.status}"
                )
                return Graded(None, reason, self._code(task, files, code.steps if is_known else ()))
            if files != task.answer:
                code = await self._take(task, files, [test.name for test in code.tests])
            graded = await _reviewed(task, files, code, reviewer)
            if graded.score is not None:
                self._keep(key, graded.code)
            return graded

    async def _reference(self, task: CodingTask) -> GradedCode:
        """The reference answer's way through the steps, which tells what tests there are.

        Where it does not pass them all, nothing can be said about other answers.
        """
        key = f"reference-{self._way(task)}"
        async with self._locks[key]:
            code = self._references.get(key) or self._read_kept(key)
            if code is None:
                code = await self._take(task, task.answer, None)
                if code.failed_step is None:
                    self._keep(key, code)
            # What went wrong by itself may go well for the next answer.
            if code.failed_step is None or code.failed_step.status == "failed":
                self._references[key] = code
        return code

    def _kept(self, key: str) -> Path:
        """Return the path of a cached grading; the file may be deleted at any time."""
        return self.data / "graded" / f"{key}.json"

    def _keep(self, key: str, code: GradedCode) -> None:
        swap_in(self._kept(key), code.model_dump_json().encode())

    def _read_kept(self, key: str) -> GradedCode | None:
        if self.fresh:
            return None
        try:
            return GradedCode.model_validate_json(self._kept(key).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            log.warning("%s is not used: %s", self._kept(key), error)
            return None

    def _way(self, task: CodingTask) -> str:
        """How it is graded now: a task of an earlier run may be of an earlier toolchain."""
        tools = self.toolchains[task.toolchain]
        # What stands in for a server is part of the toolchain; a server is not.
        server = tools.backend(task)
        told = f"-{server}" if server not in (None, "convex-test") else ""
        return f"{task.grader_version}-{tools.version}-{self.sandbox.isolation}{told}"

    async def _take(
        self, task: CodingTask, files: Files, expected: Sequence[str] | None
    ) -> GradedCode:
        """Takes step after step, as long as there is something that can be graded."""
        tools = self.toolchains[task.toolchain]
        if problem := _problem(task, files, tools):
            return self._failed_at_once(task, files, problem).code
        steps = [Step(name="filesystem", status="passed")]
        async with self.places:
            with private_folder("answer") as folder:
                await in_a_thread(write_files, folder, files)
                workbench = Workbench(self.sandbox, folder, home_of(tools, self.data), expected)
                for name in tools.steps:
                    if name in (task.config.steps or tools.steps) and _goes_on(steps[-1]):
                        steps.append(await _take_step(name, task, tools, workbench))
        return self._code(task, files, steps)

    def _failed_at_once(self, task: CodingTask, files: Files, problem: str) -> Graded:
        step = Step(name="filesystem", status="failed", reason=_harmless(problem))
        return _verdict(self._code(task, files, (step,)))

    def _code(self, task: CodingTask, files: Files, steps: Sequence[Step]) -> GradedCode:
        tools = self.toolchains[task.toolchain]
        return GradedCode(
            steps=tuple(steps),
            toolchain=f"{tools.name}-{tools.version}",
            isolation=self.sandbox.isolation,
            verdict=task.verdict,
            backend=tools.backend(task),
            grader_version=task.grader_version,
            answer_hash=fingerprint({**files}),
        )


async def _reviewed(
    task: CodingTask, files: Files, code: GradedCode, reviewer: Reviewer | None
) -> Graded:
    """The AI grader's tests stand beside the others; what has failed already is not shown it."""
    if reviewer is None or not task.config.review or code.failed_step:
        return _verdict(code)
    step = code.steps[-1]

    def changed(usage: Usage = FREE, **changes: object) -> Graded:
        graded = _verdict(code.with_last_step(step.model_copy(update=changes)))
        return graded._replace(usage=usage)

    if sum(map(len, files.values())) > LONGEST_REVIEWED:
        return changed(status="failed", reason="The files are too long to be reviewed.")
    try:
        tests, usage = await reviewer.review(task, files)
    except ReviewError as error:
        return changed(error.usage, status="error", reason=_harmless(str(error)))
    tests = tuple(test.model_copy(update={"message": _harmless(test.message)}) for test in tests)
    all_tests = (*step.tests, *tests)
    if failed := next((test for test in tests if not test.passed), None):
        reason = f"{failed.name}: {failed.message}"
        return changed(usage, tests=all_tests, status="failed", reason=reason)
    return changed(usage, tests=all_tests)


def _verdict(code: GradedCode) -> Graded:
    """A pass needs every step perfect; what is nobody's answer's fault is not scored."""
    step = code.failed_step
    if step is None:
        return Graded(1.0, f"Every step passed, {len(code.tests)} tests among them.", code)
    told = f"{step.name}: {step.reason}" if step.reason else f"{step.name} failed."
    return Graded(None if step.status == "error" else 0.0, told, code)


def _problem(task: CodingTask, files: Files, tools: Toolchain) -> str | None:
    """Why these files can not be an answer to the task."""
    try:
        check_files(files)
    except UnsafePath as unsafe:
        return str(unsafe)
    for path in files:
        if reason := tools.refuses(path, project=task.is_project):
            return f"{path!r}: {reason}"
    missing = [path for path in task.expected_files if path not in files]
    return f"The reply has no file {', '.join(missing)}." if missing else None


def _goes_on(last: Step) -> bool:
    """Whether there is still something that can be graded."""
    return last.status != "error" and not (last.status == "failed" and last.name in STOPPING)


async def _take_step(
    name: StepName, task: CodingTask, tools: Toolchain, workbench: Workbench
) -> Step:
    """One step, taken again if its failing can not be the answer's fault."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            step = await tools.run(name, task, workbench)
        except SandboxError as error:
            step = Step(name=name, status="error", reason=str(error))
        step = step.model_copy(update={"reason": _harmless(step.reason)})
        if step.status != "error":
            break
        log.warning("%s: %s failed (attempt %d): %s", task.id, name, attempt, step.reason)
    return step


def _harmless(reason: str) -> str:
    """Without what a terminal would obey: an answer has had a hand in it."""
    return clean(reason.encode("utf-8", "replace"), LONGEST_REASON)

"""Grading answers in files, with a toolchain that is a few shell commands in the real sandbox."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from eval_pipeline.gateways.demo.coder import as_reply
from eval_pipeline.records.coding import CodingTask, Files, Step, StepName, TaskConfig, TestResult
from eval_pipeline.records.prediction import NOTHING_USED, Usage
from eval_pipeline.runtime import run_async
from eval_pipeline.suites.coding.judge import (
    LONGEST_REVIEWED,
    CodeJudge,
    Graded,
    Reviewed,
    ReviewError,
)
from eval_pipeline.suites.coding.sandbox.base import Command, SandboxError
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox
from eval_pipeline.suites.coding.toolchains.base import Workbench
from eval_pipeline_tests.builders import a_task

T = TypeVar("T")
RIGHT = "install deploy typecheck lint tests\n"
ALL_STEPS: tuple[StepName, ...] = ("install", "deploy", "typecheck", "lint", "tests")


@dataclass
class Shell:
    """Takes a step well if its name is in the answer's file; `broken` steps fail by themselves."""

    steps: tuple[StepName, ...] = ALL_STEPS
    broken: Counter[str] = field(default_factory=Counter)
    taken: list[str] = field(default_factory=list)
    name: str = "shell"
    version: str = "1"

    def is_prepared(self, home: Path) -> bool:
        return True

    def prepare(self, home: Path) -> None:
        pass

    def refuses(self, path: str, *, project: bool = False) -> str | None:
        assert not project
        assert path.strip("./"), "a toolchain is asked about paths that can be written"
        return "it configures its own checks" if path == "shell.rc" else None

    def backend(self, task: CodingTask) -> str | None:
        return None

    async def run(self, step: StepName, task: CodingTask, workbench: Workbench) -> Step:
        self.taken.append(step)
        if self.broken[step] > 0:
            self.broken[step] -= 1
            raise SandboxError("no room in the sandbox")
        done = await workbench.sandbox.run(
            Command(("/bin/grep", "-qw", step, "answer.txt"), workbench.folder)
        )
        names = workbench.expected_tests or ["is there"]
        tests = [TestResult(name=name, passed=done.succeeded) for name in names]
        return Step(
            name=step,
            status="passed" if done.succeeded else "failed",
            reason="" if done.succeeded else f"{step} is not in it",
            tests=tuple(tests) if step == "tests" else (),
        )


def a_shell_task(**changes: Any) -> CodingTask:
    return a_task(**{"toolchain": "shell", "answer": {"answer.txt": RIGHT}, "wrong": {}, **changes})


def a_judge(data: Path, shell: Shell, *, fresh: bool = False) -> CodeJudge:
    return CodeJudge(
        open_sandbox("bwrap"),
        data,
        asyncio.Semaphore(2),
        fresh=fresh,
        toolchains={"shell": shell},
    )


def graded(
    data: Path, shell: Shell, answer: str | Files, task: CodingTask | None = None, **how: Any
) -> Graded:
    async def work() -> Graded:
        files = {"answer.txt": answer} if isinstance(answer, str) else answer
        return await a_judge(data, shell, **how).grade(task or a_shell_task(), files)

    return run_async(work())


def run(work: Coroutine[Any, Any, T]) -> T:
    return run_async(work)


def told(result: Graded) -> list[tuple[str, str]]:
    return [(step.name, step.status) for step in result.code.steps]


def test_an_answer_passes_if_every_step_is_perfect(tmp_path: Path) -> None:
    result = graded(tmp_path, Shell(), RIGHT + "and more\n")

    assert result.score == 1.0
    assert told(result) == [
        ("filesystem", "passed"),
        *((step, "passed") for step in ALL_STEPS),
    ]
    assert result.code.isolation == "bwrap"
    assert result.code.failed_step is None


@pytest.mark.parametrize("stopping", ["install", "deploy"])
def test_without_packages_or_deployment_nothing_else_is_graded(
    tmp_path: Path, stopping: str
) -> None:
    result = graded(tmp_path, Shell(), RIGHT.replace(stopping, ""))

    assert result.score == 0.0
    assert told(result)[-1] == (stopping, "failed")
    assert result.reason == f"{stopping}: {stopping} is not in it"


@pytest.mark.parametrize("step", ["typecheck", "lint"])
def test_wrong_types_and_habits_fail_an_answer_and_its_tests_are_still_run(
    tmp_path: Path, step: str
) -> None:
    result = graded(tmp_path, Shell(), RIGHT.replace(step, ""))

    assert result.score == 0.0
    assert dict(told(result)) | {} == {
        "filesystem": "passed",
        **{one: "failed" if one == step else "passed" for one in ALL_STEPS},
    }
    assert [test.passed for test in result.code.tests] == [True]


def test_only_the_steps_that_a_task_names_are_taken(tmp_path: Path) -> None:
    task = a_shell_task(config=TaskConfig(steps=("tests",)))

    result = graded(tmp_path, Shell(), "tests\n", task)

    assert result.score == 1.0
    assert told(result) == [("filesystem", "passed"), ("tests", "passed")]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"other.txt": RIGHT}, "no file answer.txt"),
        ({"answer.txt": RIGHT, "shell.rc": ""}, "configures its own checks"),
        ({"answer.txt": RIGHT, "../outside": ""}, "outside"),
        ({"answer.txt": RIGHT, "/etc/passwd": ""}, "/etc/passwd"),
        ({"answer.txt": RIGHT, "": ""}, "is empty"),
        ({"answer.txt": RIGHT, ".": ""}, "has a part that is '.'"),
    ],
)
def test_files_that_are_no_answer_fail_before_anything_is_run(
    tmp_path: Path, files: Files, reason: str
) -> None:
    shell = Shell()
    graded(tmp_path, shell, RIGHT)
    before = len(shell.taken)

    result = graded(tmp_path, shell, files)

    assert result.score == 0.0
    assert told(result) == [("filesystem", "failed")]
    assert reason in result.reason
    assert len(shell.taken) == before


def test_a_reply_without_files_is_the_models_own_failing(tmp_path: Path) -> None:
    reply = "I would rather not write any code."

    result = run(a_judge(tmp_path, Shell()).grade_reply(a_shell_task(), reply))

    assert result.score == 0.0
    assert told(result) == [("filesystem", "failed")]


def test_the_files_of_a_reply_are_graded(tmp_path: Path) -> None:
    reply = as_reply({"answer.txt": RIGHT + "more\n"})

    result = run(a_judge(tmp_path, Shell()).grade_reply(a_shell_task(), reply))

    assert result.score == 1.0


def test_a_step_that_fails_by_itself_is_taken_once_more(tmp_path: Path) -> None:
    shell = Shell()
    graded(tmp_path, shell, RIGHT)
    shell.broken["lint"] = 1

    result = graded(tmp_path, shell, RIGHT + "more\n")

    assert result.score == 1.0
    assert shell.taken.count("lint") == 3


def test_what_fails_by_itself_twice_is_not_scored_and_is_graded_again_later(tmp_path: Path) -> None:
    shell = Shell()
    graded(tmp_path, shell, RIGHT)
    shell.broken["lint"] = 2

    failed = graded(tmp_path, shell, RIGHT + "more\n")
    later = graded(tmp_path, shell, RIGHT + "more\n")

    assert failed.score is None
    assert told(failed)[-1] == ("lint", "error")
    assert "no room in the sandbox" in failed.reason
    assert later.score == 1.0


def test_a_reference_that_does_not_pass_blames_nobody(tmp_path: Path) -> None:
    task = a_shell_task(answer={"answer.txt": "install deploy\n"})
    shell = Shell()

    async def two() -> list[Graded]:
        judge = a_judge(tmp_path, shell)
        return [await judge.grade(task, {"answer.txt": text}) for text in (RIGHT, "nothing\n")]

    results = run(two())

    assert [result.score for result in results] == [None, None]
    assert "does not pass its own grader here: typecheck" in results[0].reason
    assert shell.taken.count("install") == 1


def test_a_reference_that_fails_by_itself_is_tried_again_for_the_next_answer(
    tmp_path: Path,
) -> None:
    shell = Shell(broken=Counter(lint=2))

    async def two() -> list[Graded]:
        judge = a_judge(tmp_path, shell)
        return [await judge.grade(a_shell_task(), {"answer.txt": RIGHT + more}) for more in "ab"]

    results = run(two())

    assert [result.score for result in results] == [None, 1.0]
    assert "lint: no room in the sandbox" in results[0].reason


def test_the_same_files_are_graded_once_however_often_they_come(tmp_path: Path) -> None:
    shell = Shell()
    first = graded(tmp_path, shell, "install deploy\n")
    before = list(shell.taken)

    again = graded(tmp_path, shell, "install deploy\n")

    assert again == first
    assert shell.taken == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"grader_version": "g2"}, {"id": "001-shell/002-more", "grader_version": "g3"}]
)
def test_another_grader_grades_the_same_files_anew(tmp_path: Path, changes: dict[str, str]) -> None:
    shell = Shell()
    graded(tmp_path, shell, "install deploy\n")
    before = len(shell.taken)

    graded(tmp_path, shell, "install deploy\n", a_shell_task(**changes))

    assert len(shell.taken) > before


@pytest.mark.slow
def test_another_version_of_the_toolchain_grades_the_same_files_anew(tmp_path: Path) -> None:
    graded(tmp_path, Shell(), "install deploy\n")
    newer = Shell(version="2")

    graded(tmp_path, newer, "install deploy\n")

    assert newer.taken == [*ALL_STEPS, "install", "deploy", "typecheck", "lint", "tests"]


def test_a_grading_counts_only_for_the_isolation_it_was_made_under(tmp_path: Path) -> None:
    graded(tmp_path, Shell(), "install deploy\n")
    elsewhere = Shell()
    judge = replace(a_judge(tmp_path, elsewhere), sandbox=open_sandbox("none", unsafe=True))

    result = run(judge.grade(a_shell_task(), {"answer.txt": "install deploy\n"}))

    assert elsewhere.taken == [*ALL_STEPS, "install", "deploy", "typecheck", "lint", "tests"]
    assert result.code.isolation == "none"


def test_whoever_wants_everything_graded_anew_gets_that(tmp_path: Path) -> None:
    shell = Shell()
    graded(tmp_path, shell, "install\n")
    before = len(shell.taken)

    graded(tmp_path, shell, "install\n", fresh=True)

    assert shell.taken[before:] == [*ALL_STEPS, "install", "deploy"]


def test_a_kept_grading_that_is_broken_is_not_believed(tmp_path: Path) -> None:
    shell = Shell()
    graded(tmp_path, shell, "install\n")
    for kept in (tmp_path / "graded").glob("*.json"):
        kept.write_text('{"steps": "all passed"}')

    result = graded(tmp_path, shell, "install\n")

    assert result.score == 0.0


class Critic:
    """An AI grader that says what it was told to say."""

    name = "critic-1"

    def __init__(self, *said: bool | str) -> None:
        self.said, self.asked = said, 0

    async def review(self, task: CodingTask, files: Files) -> Reviewed:
        self.asked += 1
        for one in self.said:
            if isinstance(one, str):
                raise ReviewError(one, NOTHING_USED)
        tests = zip(task.config.review, self.said, strict=True)
        results = [
            TestResult(name=f"review: {criterion}", passed=bool(said), message="so it is")
            for criterion, said in tests
        ]
        return Reviewed(tuple(results), Usage(cost_usd=0.5))


def reviewed(data: Path, critic: Critic, answer: str = RIGHT, **changes: str) -> Graded:
    task = a_shell_task(config=TaskConfig(review=("names are clear",)), **changes)
    return run(a_judge(data, Shell()).grade(task, {"answer.txt": answer}, critic))


def test_an_ai_graders_verdict_is_one_more_test(tmp_path: Path) -> None:
    passed = reviewed(tmp_path / "a", Critic(True))
    failed = reviewed(tmp_path / "b", Critic(False))

    assert (passed.score, failed.score) == (1.0, 0.0)
    assert [test.name for test in passed.code.tests] == ["is there", "review: names are clear"]
    assert failed.reason == "tests: review: names are clear: so it is"
    assert passed.usage.cost_usd == 0.5


def test_an_ai_grader_is_not_paid_twice_nor_for_what_has_failed_already(tmp_path: Path) -> None:
    critic = Critic(True)
    reviewed(tmp_path, critic)

    again = reviewed(tmp_path, critic)
    reviewed(tmp_path, critic, "install\n")

    assert critic.asked == 1
    assert again.usage.cost_usd == 0.0


def test_an_ai_grader_that_can_not_be_asked_leaves_the_answer_unscored(tmp_path: Path) -> None:
    result = reviewed(tmp_path, Critic("it is down"))

    assert result.score is None
    assert "it is down" in result.reason
    assert [(test.name, test.passed) for test in result.code.tests] == [("is there", True)]


def test_an_answer_too_long_for_any_ai_grader_does_not_get_away(tmp_path: Path) -> None:
    critic = Critic("it is too long for me")

    result = reviewed(tmp_path, critic, RIGHT + "\n" * LONGEST_REVIEWED)

    assert (result.score, result.reason) == (0.0, "tests: The files are too long to be reviewed.")
    assert critic.asked == 0


def test_an_ai_grader_is_asked_again_if_the_task_says_something_else(tmp_path: Path) -> None:
    critic = Critic(True)
    reviewed(tmp_path, critic)

    reviewed(tmp_path, critic, question="Write another function.")

    assert critic.asked == 2

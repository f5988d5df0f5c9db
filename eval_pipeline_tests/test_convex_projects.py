"""Whole projects, graded by a checkout's own graders: in a sandbox, with convex-test."""

import asyncio
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from eval_pipeline.records.coding import CodingTask, Files, Step, StepName
from eval_pipeline.suites.coding.files import write_files
from eval_pipeline.suites.coding.judge import CodeJudge, Graded
from eval_pipeline.suites.coding.toolchains.base import Workbench
from eval_pipeline.suites.coding.toolchains.convex import project as projects
from eval_pipeline.suites.coding.toolchains.convex.toolchain import Convex
from eval_pipeline_tests.coding_stand import DATA, a_sandbox, prepared, take
from eval_pipeline_tests.convex_stand import checkout_tasks, needs_tools

pytestmark = pytest.mark.usefixtures("tools")
GUEST_BOOK = "000-basics/000-guest_book"
WRONG_IN_THREE_WAYS = """import { v } from "convex/values";
import { internalQuery, mutation, query } from "./_generated/server";

export const sign = mutation({
  args: { name: v.string(), seats: v.number() },
  handler: async (ctx, args) => {
    const seats: string = args.seats;
    if (args.seats < 1) throw new Error("No seat");
    return await ctx.db.insert("guests", args as any);
  },
});

export const list = query({
  args: {},
  handler: async (ctx) => (await ctx.db.query("guests").take(100)).map((one) => one.name).sort(),
});

export const total = internalQuery({ args: {}, handler: async () => 7 });
"""


@pytest.fixture
def tools() -> None:
    needs_tools()


def graded(task: CodingTask, files: Files | None = None) -> Graded:
    """What becomes of an answer, graded anew."""
    prepared("convex")
    judge = CodeJudge(a_sandbox(), DATA, asyncio.Semaphore(1), fresh=True)
    return asyncio.run(judge.grade(task, task.answer if files is None else files))


def with_steps(task_id: str, *steps: StepName) -> CodingTask:
    task = checkout_tasks()[task_id]
    return task.model_copy(update={"config": task.config.model_copy(update={"steps": steps})})


def grade_tests(
    files: Files, expected: Sequence[str] | None, task: CodingTask | None = None
) -> Step:
    """What tests say of a guest book, deployed before, of which the reference is known to pass."""
    task = task or checkout_tasks()[GUEST_BOOK]
    with TemporaryDirectory() as private:
        folder = Path(private) / "answer"
        folder.mkdir(mode=0o755)
        write_files(folder, files)
        workbench = Workbench(a_sandbox(), folder, prepared("convex"), expected)
        assert asyncio.run(Convex().run("deploy", task, workbench)).status == "skipped"
        return asyncio.run(Convex().run("tests", task, workbench))


@cache
def a_wrong_guest_book() -> Graded:
    task = checkout_tasks()[GUEST_BOOK]
    return graded(task, {**task.answer, "convex/guests.ts": WRONG_IN_THREE_WAYS})


def test_what_is_wrong_in_one_step_does_not_keep_the_others_from_being_taken() -> None:
    code = a_wrong_guest_book().code

    assert [(step.name, step.status) for step in code.steps] == [
        ("filesystem", "passed"),
        ("install", "passed"),
        ("deploy", "skipped"),
        ("typecheck", "failed"),
        ("lint", "failed"),
        ("tests", "failed"),
    ]
    by_name = {step.name: step for step in code.steps}
    assert "convex 1.41.0 is asked for" in by_name["install"].output
    assert "TS2322" in by_name["typecheck"].reason
    assert "no-explicit-any" in by_name["lint"].output
    assert a_wrong_guest_book().score == 0.0


def test_tests_are_those_of_the_reference_and_say_which_backend_answered() -> None:
    code = a_wrong_guest_book().code

    failed = [test.name.partition(" > ")[2] for test in code.tests if not test.passed]
    assert failed == ["guests are listed in the order of signing"]
    assert len(code.tests) == 5  # which the reference has passed, or nobody could tell
    assert code.backend == "convex-test"


@pytest.mark.parametrize(
    ("task", "steps"),
    [
        ("000-basics/001-door_bell", ("deploy", "typecheck", "tests")),
        ("001-parts/000-tally", ("deploy", "lint", "tests")),
        ("001-parts/001-choose_limiter", ("tests",)),
        ("001-parts/002-slugs", ("install", "tests")),
        ("001-parts/003-library", ("install", "deploy", "typecheck", "lint", "tests")),
    ],
)
def test_references_pass_their_own_graders(task: str, steps: tuple[StepName, ...]) -> None:
    came = graded(with_steps(task, *steps))

    assert came.score == 1.0, came.reason
    assert [step.name for step in came.code.steps] == ["filesystem", *steps]


def test_a_static_grader_fails_what_was_not_chosen() -> None:
    task = checkout_tasks()["001-parts/001-choose_limiter"]

    came = graded(task, {"package.json": '{"dependencies": {}}', "convex/index.ts": "export {"})

    assert (came.score, came.code.backend) == (0.0, None)
    assert "a component is chosen" in came.reason


def test_whoever_breaks_assertions_is_found_out_by_tests_that_must_fail() -> None:
    task = checkout_tasks()[GUEST_BOOK]
    broken = f"Object.is = () => true;\n{WRONG_IN_THREE_WAYS}"
    expected = [test.name for test in a_wrong_guest_book().code.tests]

    step = grade_tests({**task.answer, "convex/guests.ts": broken}, expected)

    assert step.status == "failed"
    assert step.reason.startswith("Tests that must fail did not")


def test_what_went_wrong_before_tests_is_told_and_not_that_they_were_skipped() -> None:
    task = checkout_tasks()[GUEST_BOOK]
    grader = """import { beforeAll, describe, test } from "vitest";
    describe("guests", () => {
      beforeAll(() => { throw new Error("The door is locked."); });
      test("are let in", () => {});
    });
    """
    files = {**task.grader, f"evals/{GUEST_BOOK}/grader.test.ts": grader}

    step = grade_tests(task.answer, None, task.model_copy(update={"grader": files}))

    assert (step.status, step.reason) == ("failed", "The door is locked.")


def test_no_answer_finds_the_reference_beside_itself() -> None:
    task = checkout_tasks()[GUEST_BOOK]

    beside = {**task.grader, **projects.beside(task)}

    assert not any(text in beside.values() for text in task.answer.values())


@pytest.mark.parametrize(
    ("manifest", "status", "reason"),
    [
        ({"convex": "^1.31.0", "@convex-dev/aggregate": "0.2.2"}, "passed", ""),
        ({"convex": "1.41.0"}, "passed", ""),
        ({"typescript": "^4.9.0", "@types/node": "18"}, "passed", ""),
        ({"@convex-dev/aggregate": "0.2.9"}, "passed", ""),
        ({"@convex-dev/aggregate": "0.3.0"}, "error", "@convex-dev/aggregate 0.3.0 is asked for"),
        ({"convex": "file:../convex"}, "failed", "convex file:../convex is not there"),
        ({"left-pad": "1"}, "error", "left-pad is not in this environment"),
        ({"@convex-dev/aggregate": "9"}, "error", "@convex-dev/aggregate 9 is asked for"),
    ],
)
def test_what_can_not_be_told_without_fetching_is_not_held_against_a_project(
    manifest: dict[str, str], status: str, reason: str
) -> None:
    task = checkout_tasks()[GUEST_BOOK]
    files = {**task.answer, "package.json": json.dumps({"dependencies": manifest})}

    step = take("install", task, files)

    assert step.status == status
    assert reason in step.reason


def test_odd_files_in_place_of_what_is_generated_do_no_harm() -> None:
    task = checkout_tasks()[GUEST_BOOK]
    odd = {"convex/_generated": "a file", "convex/tsconfig.json": "{} // so", "README.md": "#"}

    step = take("deploy", task, {**task.answer, **odd})

    assert step.status == "skipped", step.reason


def test_an_import_that_no_manifest_names_can_not_be_deployed() -> None:
    task = checkout_tasks()[GUEST_BOOK]
    module = 'import { z } from "zod";\nexport const x = z;\n'

    step = take("deploy", task, {**task.answer, "convex/more.ts": module})

    assert step.status == "failed"
    assert 'Could not resolve "zod"' in step.reason

"""The verdict on Convex answers: honest ones pass, and no trick turns a wrong one into a pass."""

import pytest

from eval_pipeline.suites.coding.sandbox.opening import open_sandbox
from eval_pipeline_tests.coding_stand import take
from eval_pipeline_tests.convex_stand import (
    ANSWER,
    GRADER,
    NOTES,
    THE_TEST,
    a_convex_task,
    generated,
    graded,
    needs_tools,
)

pytestmark = pytest.mark.usefixtures("tools")


@pytest.fixture
def tools() -> None:
    needs_tools()


def test_the_reference_tells_which_tests_there_are() -> None:
    step = take("tests", a_convex_task(), ANSWER | generated())

    assert (step.status, step.reason) == ("passed", "")
    assert [(test.name, test.passed) for test in step.tests] == [(THE_TEST, True)]
    assert "canary" not in step.output


def test_it_is_graded_without_a_sandbox_too() -> None:
    sandbox = open_sandbox("none", unsafe=True)

    step = take("tests", a_convex_task(), ANSWER | generated(), sandbox=sandbox)

    assert (step.status, step.reason) == ("passed", "")


def test_a_wrong_answer_fails_with_the_test_that_caught_it() -> None:
    step = graded(NOTES.replace('q.eq("owner", owner)', "q"))

    assert step.status == "failed"
    assert step.reason.startswith(f"{THE_TEST}: expected [ 'one', 'two' ] to deeply equal")
    assert [test.passed for test in step.tests] == [False]


def test_tests_that_are_expected_and_do_not_run_are_failures() -> None:
    expected = [THE_TEST, "notes.test.ts > another"]

    step = take("tests", a_convex_task(), ANSWER | generated(), expected=expected)

    assert step.status == "failed"
    assert [(test.passed, test.message) for test in step.tests] == [
        (True, ""),
        (False, "did not run"),
    ]


@pytest.mark.parametrize("skipping", ["test.skip(", "test.todo("])
def test_a_test_that_is_skipped_is_not_passed(skipping: str) -> None:
    grader = {path: text.replace("test(", skipping) for path, text in GRADER.items()}

    step = take("tests", a_convex_task(grader=grader), ANSWER | generated(), expected=[THE_TEST])

    assert step.status == "failed"
    assert not any(test.passed for test in step.tests)


WRONG = NOTES.replace('q.eq("owner", owner)', "q")
ATTACKS = {
    "exits at once": "process.exit(0);",
    "exits as if tests had failed": "process.exit(1);",
    "ends the process that reports": "process.kill(process.ppid, 'SIGKILL');",
    "makes everything equal": "Object.is = () => true;",
    "replaces matchers": (
        "const { expect } = await import('vitest');\n"
        "const passes = () => ({ pass: true, message: () => '' });\n"
        "expect.extend({ toEqual: passes, toBe: passes, toThrow: passes });"
    ),
    "never lets an assertion fail": (
        "const { chai } = await import('vitest');\nchai.Assertion.prototype.assert = () => {};"
    ),
    "says that it passed": (
        "const { writeSync } = process.getBuiltinModule('fs');\n"
        f"const line = JSON.stringify({{ secret: '', test: {THE_TEST!r}, passed: true }});\n"
        "for (let fd = 1; fd < 64; fd += 1) {\n"
        "  try { writeSync(fd, `${line}\\n`); } catch { /* not open */ }\n}"
    ),
    "writes over the grader": (
        "const fs = process.getBuiltinModule('fs');\n"
        "try { fs.writeFileSync('/project/grader/notes.test.ts', ''); } catch { /* read-only */ }"
    ),
    "leaves an error behind": "setTimeout(() => { throw new Error('later'); }, 0);",
    "throws when it is loaded": "throw new Error('no');",
}


BREAKING = ("makes everything equal", "replaces matchers", "never lets an assertion fail")


@pytest.mark.parametrize("attack", sorted({*ATTACKS} - {*BREAKING}))
def test_a_wrong_answer_does_not_pass_whatever_it_tries(attack: str) -> None:
    step = graded(f"{ATTACKS[attack]}\n{WRONG}")

    assert step.status == "failed"
    assert step.reason


@pytest.mark.parametrize("attack", BREAKING)
def test_whoever_breaks_assertions_is_found_out_by_tests_that_must_fail(attack: str) -> None:
    step = graded(f"{ATTACKS[attack]}\n{WRONG}")

    assert step.status == "failed"
    assert [test.passed for test in step.tests] == [True]
    assert step.reason.startswith("Tests that must fail did not")


def test_what_an_error_says_can_be_shown_anywhere() -> None:
    step = graded(f"throw new Error('\\x1b[31mred\\u202e\\u0007 alert');\n{WRONG}")

    assert [test.message for test in step.tests] == ["red alert"]


def test_an_answer_that_never_ends_is_ended() -> None:
    step = graded(f"{NOTES}\nfor (;;) {{}}", seconds=4)

    assert (step.status, step.reason) == ("failed", "The tests were ended: timeout.")
    assert [test.message for test in step.tests] == ["did not run"]


def test_answers_can_not_reach_who_reports_on_them() -> None:
    # Its descriptors, its memory, and the debugger that it would open at this signal.
    trying = (
        "const fs = process.getBuiltinModule('fs');\n"
        "const tried = (act) => { try { return act() } catch (error) { return error.code } };\n"
        "const fds = tried(() => fs.readdirSync(`/proc/${process.ppid}/fd`).length);\n"
        "const memory = tried(() => fs.openSync(`/proc/${process.ppid}/mem`, 'r+'));\n"
        "process.kill(process.ppid, 'SIGUSR1');\n"
        "await new Promise((resolve) => setTimeout(resolve, 500));\n"
        "const listening = fs.readFileSync('/proc/net/tcp', 'utf8').includes('0100007F:240D');\n"
        "console.log(`channel ${process.env.EVALS_CHANNEL}`, fds, memory, listening);"
    )

    step = graded(f"{trying}\n{NOTES}")

    assert step.status == "passed"
    assert "channel undefined EACCES EACCES false" in step.output

"""Tests of Convex functions: run by vitest, told over a channel, and believed only if all fits."""

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from secrets import token_hex
from string import Template

from pydantic import ValidationError

from eval_pipeline.records.base import Record
from eval_pipeline.records.coding import CodingTask, Files, Step, TestResult
from eval_pipeline.suites.coding.sandbox.base import Command, Finished, Limits, SandboxError
from eval_pipeline.suites.coding.toolchains.base import (
    GraderError,
    Workbench,
    finished_step,
    grader_folder,
)
from eval_pipeline.suites.coding.toolchains.convex import project as projects
from eval_pipeline.suites.coding.toolchains.convex.backend import Ask, Backend
from eval_pipeline.suites.coding.toolchains.convex.layout import PROJECT, SOURCES, tests_argv
from eval_pipeline.suites.coding.toolchains.convex.project import open_project
from eval_pipeline.text import clean

LONGEST_REPORT = 4 << 20
"""Bytes that tests may have to tell."""
LONGEST_MESSAGE = 2000
LONGEST_REASON = 300
CANARIES = Template((SOURCES / "harness" / "canary.txt").read_text("utf-8"))
"""Tests that must fail, or else whoever says what passed is not to be believed."""
CANARIES_FAILED = 1
"""How vitest ends where some tests failed, as the canaries always do."""
GONE = 10.0
"""Seconds until a channel, of which the other end is dead, is given up."""


class Words(Record):
    """One line of the report: a test's result, or that there are no more."""

    secret: str
    test: str | None = None
    passed: bool = False
    message: str = ""
    end: bool = False
    errors: tuple[str, ...] = ()
    # Of a backend, where there is one; it is answered and not kept.
    ask: Ask | None = None


async def take_tests(
    limits: Limits, task: CodingTask, workbench: Workbench, server: Backend | None = None
) -> Step:
    """Runs the grader's files and says what is to be made of what they tell."""
    secret, token = token_hex(16), token_hex(4)
    config = "vitest.project.config.js" if task.is_project else "vitest.config.js"
    async with (
        server.held(workbench.home) if server else nullcontext(),
        _placed(task, token, workbench, limits, server) as seen,
    ):
        command = replace(seen, argv=tests_argv(PROJECT, config), limits=limits)
        finished, told = await _run(command, workbench, secret, token, server)
    # Lines without the secret were not written by the reporter.
    words = [one for line in told.splitlines() if (one := _words(line)) and one.secret == secret]
    tests = [
        TestResult(name=one.test, passed=one.passed, message=clean(one.message, LONGEST_MESSAGE))
        for one in words
        if one.test is not None
    ]
    canaries = [test for test in tests if token in test.name]
    results = _results([one for one in tests if token not in one.name], workbench.expected_tests)
    expected = CANARIES.template.count("$token") * len(_tests(task))
    interfered = len(canaries) != expected or any(test.passed for test in canaries)
    problem = _problem(finished, words, interfered=interfered) or _failure(results)
    return finished_step("tests", finished, problem or "", results)


@asynccontextmanager
async def _placed(
    task: CodingTask, token: str, workbench: Workbench, limits: Limits, server: Backend | None
) -> AsyncIterator[Command]:
    """The answer and the grader's files with canaries, where these expect each other."""
    files = _with_canaries(task, token)
    if not task.is_project:
        with grader_folder(files) as grader, open_project(workbench, {"grader": grader}) as seen:
            yield seen
        return
    projects.link_tools(workbench.folder)
    files |= projects.beside(task)
    is_served = "deploy" in (task.config.steps or ("deploy",))
    if is_served:
        told = await projects.description(task, workbench, limits, server)
        files[projects.DESCRIPTION] = told
    if server:
        await projects.deploy(workbench, server)
    by = "" if not is_served else "remote" if server else "here"
    with projects.graded_by(files, workbench) as seen:
        yield replace(seen, env={**seen.env, "EVALS_SERVED": by})


def _tests(task: CodingTask) -> list[str]:
    """The files that have tests; of a checkout only the eval's own, whatever that imports."""
    own = f"evals/{task.id}/grader.test.ts" if task.is_project else ".test.ts"
    return [path for path in task.grader if path.endswith(own)]


def _with_canaries(task: CodingTask, token: str) -> Files:
    """The grader's files, with canaries after every file's own tests."""
    if not (tests := _tests(task)):
        raise GraderError(f"{task.id} has no grader/*.test.ts.")
    canaries = CANARIES.substitute(token=token)
    return {path: text + canaries if path in tests else text for path, text in task.grader.items()}


async def _run(
    command: Command, workbench: Workbench, secret: str, token: str, server: Backend | None
) -> tuple[Finished, bytes]:
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(json.dumps({"secret": secret, "canary": token}).encode() + b"\n")
        ours.setblocking(False)  # noqa: FBT003
        listening = asyncio.create_task(_listen(ours, secret, server))
        try:
            finished = await workbench.sandbox.run(replace(command, channel=theirs))
            return finished, await asyncio.wait_for(listening, GONE)
        except TimeoutError as error:
            raise SandboxError("Something of the tests is still alive.") from error
        finally:
            theirs.close()
            listening.cancel()


async def _listen(channel: socket.socket, secret: str, server: Backend | None) -> bytes:
    """Everything until the other end is closed; who tells too much is not listened to.

    What is to be asked of a backend is asked on the way, and is no part of the report.
    """
    loop = asyncio.get_running_loop()
    heard, line = bytearray(), bytearray()
    while len(heard) + len(line) <= LONGEST_REPORT:
        try:
            chunk = await loop.sock_recv(channel, 1 << 16)
        except ConnectionError:
            break
        if not chunk:
            break
        *whole_lines, rest = (bytes(line) + chunk).split(b"\n")
        line = bytearray(rest)
        for one in whole_lines:
            asked = _words(one) if server else None
            if server and asked and asked.ask and asked.secret == secret:
                said = json.dumps(await server.answer(asked.ask)).encode() + b"\n"
                await loop.sock_sendall(channel, said)
            else:
                heard += one + b"\n"
    return bytes(heard + line)[:LONGEST_REPORT]


def _words(line: bytes) -> Words | None:
    try:
        return Words.model_validate_json(line)
    except ValidationError:
        return None


def _results(tests: Sequence[TestResult], expected: Sequence[str] | None) -> tuple[TestResult, ...]:
    """One result per expected test; those that nobody expects are failures too."""
    counts = Counter(test.name for test in tests)
    by_name = {test.name: test for test in tests}
    names = counts if expected is None else dict.fromkeys((*expected, *counts))

    def result(name: str) -> TestResult:
        if counts[name] == 0:
            problem = "did not run"
        elif counts[name] > 1:
            problem = "ran more than once"
        elif expected is not None and name not in expected:
            problem = "is not among the grader's tests"
        else:
            return by_name[name]
        return TestResult(name=name, passed=False, message=problem)

    return tuple(map(result, names))


def _problem(finished: Finished, words: Sequence[Words], *, interfered: bool) -> str | None:
    """Why the report can not be believed, or what went wrong besides the tests."""
    ends = [one for one in words if one.end]
    if finished.ending != "exited":
        return f"The tests were ended: {finished.ending}."
    if len(ends) != 1 or not words[-1].end:
        return "The tests did not come to their end."
    if ends[0].errors:
        return " ".join(clean(ends[0].errors[0], LONGEST_MESSAGE).split())[:LONGEST_REASON]
    if interfered:
        return "Tests that must fail did not: the answer interferes with how it is graded."
    if finished.exit_code != CANARIES_FAILED:
        return f"The tests ended with exit code {finished.exit_code}."
    return None


def _failure(results: Sequence[TestResult]) -> str | None:
    if not results:
        return "No test ran."
    failed = next((test for test in results if not test.passed), None)
    if failed is None:
        return None
    message = failed.message.strip().partition("\n")[0]
    return f"{failed.name}: {message}" if message else failed.name

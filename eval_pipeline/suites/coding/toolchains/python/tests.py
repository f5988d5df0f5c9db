"""The tests step: the task's tests, beside the answer or apart from it in another sandbox."""

import asyncio
import json
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

from eval_pipeline.records.coding import CodingTask, Step
from eval_pipeline.suites.coding.isolated_tests import relay
from eval_pipeline.suites.coding.isolated_tests.relay import Reports
from eval_pipeline.suites.coding.isolated_tests.verdict import Ended, judged
from eval_pipeline.suites.coding.sandbox.base import Finished, Limits, Mount, SandboxError
from eval_pipeline.suites.coding.toolchains.base import Workbench, grader_folder, limits_of
from eval_pipeline.suites.coding.toolchains.python.checks import LIMITS, ending
from eval_pipeline.suites.coding.toolchains.python.environment import ROOT, Environment

# How much longer the tests may take than the answer, so that it is clear who was too slow.
_GRACE = 5.0
_FAREWELL = 2.0
_PRINTED = "\n\n--- What the answer printed ---\n"


async def test(task: CodingTask, workbench: Workbench) -> Step:
    """Runs the task's tests and says what came of each."""
    with grader_folder(task.grader) as grader:
        bench = _Bench(task, workbench, grader)
        return await (bench.apart() if task.verdict == "oracle" else bench.beside())


class _Bench:
    """One answer and the tests for it."""

    def __init__(self, task: CodingTask, workbench: Workbench, grader: Path) -> None:
        self._task, self._workbench = task, workbench
        self._environment = Environment(workbench.home)
        self._limits = limits_of("tests", task, LIMITS["tests"])
        self._reports = Reports()
        self._run_tests = partial(
            self._environment.command,
            *("run_tests", f"{ROOT}/pytest.ini", "/grader"),
            mounts=(Mount(grader, "/grader"),),
        )

    async def beside(self) -> Step:
        """Tests in the answer's own process: what it does to them shows, most of it."""
        ours, theirs = socket.socketpair()
        folder, limits = self._workbench.folder, self._limits
        command = self._run_tests(limits=limits, folder=folder, channel=theirs)
        listening = asyncio.create_task(relay.listen(ours, self._reports))
        try:
            finished = await self._workbench.sandbox.run(command)
            await asyncio.wait([listening], timeout=_FAREWELL)
        finally:
            await _ended(listening)
            theirs.close()
        cut = None if finished.ending == "exited" else f"It {ending(finished, limits)}."
        ended = Ended(exit_code=finished.exit_code, cut_short=cut, beside=True)
        return self._step(ended, finished.seconds, finished.output)

    async def apart(self) -> Step:
        """Tests in a sandbox where no code of the answer ever is."""
        answer_ours, answer_theirs = socket.socketpair()
        tests_ours, tests_theirs = socket.socketpair()
        answering = asyncio.create_task(self._answer(answer_theirs))
        interface, gone = self._task.config.interface, partial(self._gone, answering)
        carrying = asyncio.create_task(
            relay.carry(tests_ours, answer_ours, self._reports, interface, gone)
        )
        longer = Limits(self._limits.seconds + _GRACE, self._limits.memory_mb)
        try:
            command = self._run_tests(limits=longer, channel=tests_theirs)
            finished = await self._workbench.sandbox.run(command)
            await asyncio.wait([carrying], timeout=_FAREWELL)
            stayed = carrying.done() and carrying.result()
            await asyncio.wait([answering], timeout=_FAREWELL)
            cut = self._cut_short(finished, longer, None if stayed else answering)
            printed = answering.result().output if answering.done() else ""
        finally:
            await _ended(carrying)
            await _ended(answering)
            tests_theirs.close()
            answer_theirs.close()
        output = finished.output + (f"{_PRINTED}{printed}" if printed.strip() else "")
        ended = Ended(exit_code=finished.exit_code, cut_short=cut, beside=False)
        return self._step(ended, finished.seconds, output)

    async def _answer(self, channel: socket.socket) -> Finished:
        """The answer's process, which does what tests ask for until they are over."""
        interface = json.dumps(self._task.config.interface)
        command = self._environment.command(
            *("server", interface),
            limits=self._limits,
            folder=self._workbench.folder,
            channel=channel,
        )
        return await self._workbench.sandbox.run(command)

    async def _gone(self, answering: "asyncio.Task[Finished]") -> str:
        """Why the answer's process says no more."""
        try:
            # Whoever stops to wait for it does not stop it.
            finished = await asyncio.shield(answering)
        except SandboxError as error:
            return str(error)
        return f"the answer's process {ending(finished, self._limits)}"

    def _cut_short(
        self, tests: Finished, longer: Limits, left: "asyncio.Task[Finished] | None"
    ) -> str | None:
        """The answer's process has to be there for as long as there are tests."""
        if left is not None:
            how = ending(left.result(), self._limits) if left.done() else "closed its line"
            return f"The answer's process {how}."
        return None if tests.ending == "exited" else f"The tests: it {ending(tests, longer)}."

    def _step(self, ended: Ended, seconds: float, output: str) -> Step:
        step = judged(self._reports, ended, self._workbench.expected_tests)
        return step.model_copy(update={"seconds": seconds, "output": output})


async def _ended(task: "asyncio.Task[object]") -> None:
    """Ends it if it has not, and lets nothing of it be left unsaid."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait([task])

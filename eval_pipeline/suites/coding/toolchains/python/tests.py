"""The tests step: the task's tests, beside the answer or apart from it in another sandbox."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from eval_pipeline.records.coding import CodingTask, Step
from eval_pipeline.suites.coding.files import private_folder, write_files
from eval_pipeline.suites.coding.isolated_tests import relay
from eval_pipeline.suites.coding.isolated_tests.relay import Reports
from eval_pipeline.suites.coding.isolated_tests.verdict import Ended, judged
from eval_pipeline.suites.coding.sandbox.base import Command, Finished, Limits, Mount, SandboxError
from eval_pipeline.suites.coding.toolchains.base import Workbench
from eval_pipeline.suites.coding.toolchains.python.checks import ending, limits_of
from eval_pipeline.suites.coding.toolchains.python.environment import ROOT, Environment

_PREFIX = "grader/"
# How much longer the tests may take than the answer, so that it is clear who was too slow.
_GRACE = 5.0
_FAREWELL = 2.0
_PRINTED = "\n\n--- What the answer printed ---\n"


async def test(task: CodingTask, workbench: Workbench) -> Step:
    """Runs the task's tests and says what came of each."""
    with _grader(task) as grader:
        bench = _Bench(task, workbench, grader)
        return await (bench.apart() if task.verdict == "oracle" else bench.beside())


@contextmanager
def _grader(task: CodingTask) -> Iterator[Path]:
    """The task's tests in a folder that commands may read."""
    with private_folder("grader") as folder:
        files = {path.removeprefix(_PREFIX): text for path, text in task.grader.items()}
        write_files(folder, files)
        yield folder


class _Bench:
    """One answer and the tests for it."""

    def __init__(self, task: CodingTask, workbench: Workbench, grader: Path) -> None:
        self._task, self._workbench, self._grader = task, workbench, grader
        self._environment = Environment(workbench.home)
        self._limits = limits_of("tests", task)
        self._reports = Reports()

    async def beside(self) -> Step:
        """Tests in the answer's own process: what it does to them shows, most of it."""
        ours, theirs = socket.socketpair()
        command = self._command(
            "run_tests", theirs, self._limits, self._workbench.folder, grader=self._grader
        )
        listening = asyncio.create_task(relay.listen(ours, self._reports))
        try:
            finished = await self._workbench.sandbox.run(command)
            await asyncio.wait([listening], timeout=_FAREWELL)
        finally:
            await _ended(listening)
            theirs.close()
        cut = None if finished.ending == "exited" else f"It {ending(finished, self._limits)}."
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
        command = self._command("run_tests", tests_theirs, longer, None, grader=self._grader)
        try:
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
        interface = self._task.config.interface
        modules = json.dumps({name: list(names) for name, names in interface.items()})
        folder = self._workbench.folder
        command = self._command("server", channel, self._limits, folder, modules)
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

    def _command(
        self,
        module: str,
        channel: socket.socket,
        limits: Limits,
        folder: Path | None,
        *words: str,
        grader: Path | None = None,
    ) -> Command:
        grading = () if grader is None else (Mount(grader, "/grader"),)
        places = () if grader is None else (f"{ROOT}/pytest.ini", "/grader")
        return Command(
            argv=self._environment.argv(module, *places, *words),
            folder=folder,
            mounts=(*self._environment.mounts, *grading),
            env=self._environment.variables,
            limits=limits,
            channel=channel,
        )


async def _ended(task: "asyncio.Task[object]") -> None:
    """Ends it if it has not, and lets nothing of it be left unsaid."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait([task])

"""Convex functions in TypeScript, as far as they can be checked without a Convex backend."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eval_pipeline.coding.records import CodingTask, Step, StepName, TaskLimits
from eval_pipeline.coding.sandbox.sandbox import Command, Finished, Limits, SandboxError
from eval_pipeline.coding.toolchains.convex import layout, preparing
from eval_pipeline.coding.toolchains.convex.project import project
from eval_pipeline.coding.toolchains.convex.testing import take_tests
from eval_pipeline.coding.toolchains.toolchain import Workbench

SECONDS: dict[StepName, float] = {
    "install": 60,
    "deploy": 90,
    "typecheck": 120,
    "lint": 120,
    "tests": 60,
}
SELDOM_LONG: tuple[StepName, ...] = ("install", "deploy")
"""Steps that hardly an answer makes long; types can be written that take a compiler for ever."""
GENERATED = ("api.d.ts", "api.js", "dataModel.d.ts", "server.d.ts", "server.js")
NOT_DEPLOYED = (
    "Code was generated and every module can be bundled; there is no Convex backend to deploy to."
)
_MODULE = re.compile(r"convex/(\w+/)*(\w+|auth\.config)\.ts", re.ASCII)


@dataclass(frozen=True)
class Convex:
    """bun, convex, convex-test, tsc, eslint and vitest, in versions that are locked."""

    name: str = "convex"
    steps: tuple[StepName, ...] = ("install", "deploy", "typecheck", "lint", "tests")

    @property
    def version(self) -> str:
        return layout.version()

    def is_prepared(self, home: Path) -> bool:
        return preparing.is_prepared(home)

    def prepare(self, home: Path) -> None:
        preparing.prepare(home)

    def refuses(self, path: str) -> str | None:
        """Everything but modules, for whatever else tools find decides how they check."""
        if path == "package.json" or path.startswith("convex/_generated/"):
            return None  # the former is only read, the latter is generated anew
        if _MODULE.fullmatch(path):
            return None
        return (
            "an answer consists of package.json and TypeScript modules in convex/, "
            "with names of letters, digits and underscores"
        )

    def backend(self, task: CodingTask) -> str | None:
        return "convex-test"

    async def run(self, step: StepName, task: CodingTask, workbench: Workbench) -> Step:
        match step:
            case "install":
                return await _install(task, workbench)
            case "deploy":
                return await _deploy(task, workbench)
            case "typecheck":
                argv = layout.typecheck_argv(layout.PROJECT)
            case "lint":
                argv = layout.lint_argv(layout.PROJECT)
            case "tests":
                argv = layout.tests_argv(layout.PROJECT)
                return await take_tests(argv, _limits(step, task), task, workbench)
            case "filesystem":
                raise ValueError("The files are checked before they come here.")
        with project(workbench, {}) as seen:
            command = Command(argv, mounts=seen.mounts, env=seen.env, limits=_limits(step, task))
            return _step(step, await _ended(step, command, workbench))


async def _install(task: CodingTask, workbench: Workbench) -> Step:
    """Whether all that the answer depends on is there already; nothing is fetched."""
    if not (workbench.folder / "convex").is_dir():
        return Step(name="install", status="failed", reason="The answer has no convex/ folder.")
    manifest = workbench.folder / "package.json"
    if not manifest.is_file():
        return Step(name="install", status="passed")
    argv, limits = layout.install_argv(layout.PROJECT), _limits("install", task)
    with project(workbench, {"answer.json": manifest}) as seen:
        command = Command(argv, mounts=seen.mounts, env=seen.env, limits=limits)
        return _step("install", await _ended("install", command, workbench))


async def _deploy(task: CodingTask, workbench: Workbench) -> Step:
    """Generates code beside the answer's, in place of any that it brought along."""
    generated = "convex/_generated"
    shutil.rmtree(workbench.folder / generated, ignore_errors=True)
    argv, limits = layout.deploy_argv(layout.PROJECT), _limits("deploy", task)
    with project(workbench, {}) as seen:
        command = Command(
            argv, mounts=seen.mounts, env=seen.env, limits=limits, collect=(generated,)
        )
        finished = await _ended("deploy", command, workbench)
    step = _step("deploy", finished)
    if step.status != "passed":
        return step
    paths = [f"{generated}/{name}" for name in GENERATED]
    if missing := [path for path in paths if path not in finished.files]:
        raise SandboxError(f"Generated code did not come out of the sandbox: {missing[0]}.")
    (workbench.folder / generated).mkdir(mode=0o755)
    for path in paths:
        (workbench.folder / path).write_bytes(finished.files[path])
    return step.model_copy(update={"status": "skipped", "reason": NOT_DEPLOYED})


def _limits(step: StepName, task: CodingTask) -> Limits:
    of_task = task.config.limits.get(step, TaskLimits())
    return Limits(
        seconds=of_task.seconds or SECONDS[step],
        memory_mb=of_task.memory_mb or 2048,
        processes=128,  # threads count too
    )


async def _ended(step: StepName, command: Command, workbench: Workbench) -> Finished:
    """How the command ended; what the machine may have caused counts only if it comes again.

    The second time it is the answer, which must not get away by crashing a compiler.
    """
    finished = await workbench.sandbox.run(command)
    if finished.ending == "killed" or (step in SELDOM_LONG and finished.ending != "exited"):
        finished = await workbench.sandbox.run(command)
    return finished


def _step(name: StepName, finished: Finished) -> Step:
    """What the tool's end means; no answer can make reading its manifest take long."""
    status: Literal["passed", "failed", "error"] = "failed"
    reason = f"The step was ended: {finished.ending}."
    if finished.succeeded:
        status, reason = "passed", ""
    elif finished.ending == "exited":
        lines = (line.strip() for line in finished.output.splitlines())
        reason = next((line for line in lines if line), f"exit code {finished.exit_code}")
    elif name == "install" and finished.ending == "timeout":
        status = "error"
    return Step(
        name=name, status=status, reason=reason, output=finished.output, seconds=finished.seconds
    )

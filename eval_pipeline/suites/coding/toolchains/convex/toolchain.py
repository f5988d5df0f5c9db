"""Convex functions in TypeScript, as far as they can be checked without a Convex backend."""

import re
from dataclasses import dataclass, replace

from eval_pipeline.records.coding import CodingTask, Files, Step, StepName
from eval_pipeline.suites.coding.sandbox.base import Command, Finished, Limits
from eval_pipeline.suites.coding.toolchains.base import Workbench, finished_step, limits_of
from eval_pipeline.suites.coding.toolchains.convex import layout
from eval_pipeline.suites.coding.toolchains.convex import project as projects
from eval_pipeline.suites.coding.toolchains.convex.backend import KIND, Backend, is_nobodys_fault
from eval_pipeline.suites.coding.toolchains.convex.layout import PROJECT
from eval_pipeline.suites.coding.toolchains.convex.project import open_project
from eval_pipeline.suites.coding.toolchains.convex.tests import take_tests

SECONDS: dict[StepName, float] = {
    "install": 60,
    "deploy": 90,
    "typecheck": 120,
    "lint": 120,
    "tests": 60,
}
SELDOM_LONG: tuple[StepName, ...] = ("install", "deploy")
"""Steps that hardly an answer makes long; types can be written that take a compiler for ever."""
NOT_DEPLOYED = (
    "Code was generated and every module can be bundled; there is no Convex backend to deploy to."
)
_MODULE = re.compile(r"convex/(\w+/)*(\w+|auth\.config)\.ts", re.ASCII)


@dataclass(frozen=True)
class Convex:
    """bun, convex, convex-test, tsc, eslint and vitest, in versions that are locked."""

    name: str = "convex"
    steps: tuple[StepName, ...] = ("install", "deploy", "typecheck", "lint", "tests")
    # To which whole projects are deployed; without one, convex-test stands in for it.
    server: Backend | None = None

    is_prepared = staticmethod(layout.is_prepared)
    prepare = staticmethod(layout.prepare)

    @property
    def version(self) -> str:
        return layout.version()

    def refuses(self, path: str, *, project: bool = False) -> str | None:
        """Everything but modules, for whatever else tools find decides how they check."""
        if project:
            return projects.refusal(path)
        if path == "package.json" or path.startswith("convex/_generated/"):
            return None  # the former is only read, the latter is generated anew
        if _MODULE.fullmatch(path):
            return None
        return (
            "an answer consists of package.json and TypeScript modules in convex/, "
            "with names of letters, digits and underscores"
        )

    def backend(self, task: CodingTask) -> str | None:
        if "deploy" not in (task.config.steps or self.steps):
            return None
        return KIND if self.server and task.is_project else "convex-test"

    async def run(self, step: StepName, task: CodingTask, workbench: Workbench) -> Step:
        match step:
            case "install":
                return await _install(task, workbench)
            case "deploy":
                made = await _deploy(task, workbench)
                if made.status != "skipped" or not self.server or not task.is_project:
                    return made
                return await _pushed(made, self.server, workbench)
            case "tests":
                server = self.server if self.backend(task) == KIND else None
                return await take_tests(_limits(step, task), task, workbench, server)
            case "typecheck" | "lint":
                return await _check(step, task, workbench)
            case "filesystem":
                raise ValueError("The files are checked before they come here.")


async def _install(task: CodingTask, workbench: Workbench) -> Step:
    """Whether all that the answer depends on is there already; nothing is fetched."""
    if not task.is_project and not (workbench.folder / "convex").is_dir():
        return Step(name="install", status="failed", reason="The answer has no convex/ folder.")
    manifest = workbench.folder / "package.json"
    if not manifest.is_file():
        return Step(name="install", status="passed")
    more = ("project",) if task.is_project else ()
    argv = layout.script_argv(PROJECT, "harness/install.js", f"{PROJECT}/answer.json", *more)
    with open_project(workbench, {"answer.json": manifest}, whole=task.is_project) as seen:
        command = replace(seen, argv=argv, limits=_limits("install", task))
        finished = await _ended("install", command, workbench)
    step = _step("install", finished)
    not_here = finished.ending == "exited" and finished.exit_code == projects.NOT_HERE
    return step.model_copy(update={"status": "error"}) if task.is_project and not_here else step


async def _check(step: StepName, task: CodingTask, workbench: Workbench) -> Step:
    """Types or style, each with one command; a project may take several, until one fails."""
    files: Files = {}
    argvs = [(layout.typecheck_argv if step == "typecheck" else layout.lint_argv)(PROJECT)]
    if task.is_project and step == "typecheck":
        argvs = projects.typecheck_commands(workbench)
    elif task.is_project:
        argvs, files = projects.lint_commands(task, workbench), task.grader
    with (
        projects.graded_by(files, workbench) if task.is_project else open_project(workbench, {})
    ) as seen:
        for argv in argvs:
            command = replace(seen, argv=argv, limits=_limits(step, task))
            done = _step(step, await _ended(step, command, workbench))
            if done.status != "passed":
                break
    return done


async def _deploy(task: CodingTask, workbench: Workbench) -> Step:
    """Generates code beside the answer's, in place of any that it brought along."""
    projects.take_out_generated(workbench.folder)
    with open_project(workbench, {}, whole=task.is_project) as seen:
        argv = layout.script_argv(PROJECT, "harness/deploy.js", PROJECT)
        limits, collect = _limits("deploy", task), (projects.COLLECTED,)
        command = replace(seen, argv=argv, limits=limits, collect=collect)
        finished = await _ended("deploy", command, workbench)
    step = _step("deploy", finished)
    if step.status != "passed":
        return step
    projects.keep_generated(finished, workbench.folder)
    if task.is_project:
        projects.settle(workbench)
    return step.model_copy(update={"status": "skipped", "reason": NOT_DEPLOYED})


async def _pushed(step: Step, server: Backend, workbench: Workbench) -> Step:
    """Deploys what could be bundled; its code gets to run there and nowhere else."""
    async with server.held(workbench.home):
        succeeded, output = await server.deploy(workbench.folder, workbench.home)
    if succeeded:
        return step.model_copy(update={"output": output, "reason": "", "status": "passed"})
    lines = map(str.strip, output.splitlines())
    reason = next((line for line in lines if "rror" in line), "It could not be deployed.")
    status = "error" if is_nobodys_fault(output) else "failed"
    return step.model_copy(update={"output": output, "reason": reason, "status": status})


def _limits(step: StepName, task: CodingTask) -> Limits:
    seconds = (projects.SECONDS if task.is_project else SECONDS)[step]
    # Threads count as processes too.
    return limits_of(step, task, Limits(seconds, memory_mb=2048, processes=128))


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
    reason = "" if finished.succeeded else f"The step was ended: {finished.ending}."
    if reason and finished.ending == "exited":
        lines = (line.strip() for line in finished.output.splitlines())
        reason = next((line for line in lines if line), f"exit code {finished.exit_code}")
    step = finished_step(name, finished, reason)
    too_long = name == "install" and finished.ending == "timeout"
    return step.model_copy(update={"status": "error"}) if too_long else step

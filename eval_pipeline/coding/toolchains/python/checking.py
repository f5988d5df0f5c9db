"""The steps that only read an answer: what it depends on, its types and its style."""

import asyncio
from pathlib import Path

from eval_pipeline.coding.records import CodingTask, Step, StepName
from eval_pipeline.coding.sandbox.sandbox import Command, Finished, Limits
from eval_pipeline.coding.toolchains.python.environment import ROOT, Environment
from eval_pipeline.coding.toolchains.python.inside import SILENCED
from eval_pipeline.coding.toolchains.python.requirements import problem
from eval_pipeline.coding.toolchains.toolchain import Workbench

_TOOLS = {"typecheck": ("mypy", "Types do not hold"), "lint": ("ruff", "Rules are broken")}
_SECONDS = {"typecheck": 60.0, "lint": 20.0, "tests": 30.0}
_TOOL_FILES = {"typecheck": ("mypy.ini", "mypy"), "lint": ("env/bin/ruff",)}


def limits_of(step: StepName, task: CodingTask) -> Limits:
    """What a step may use: as the task says, else as is plenty."""
    own = task.config.limits.get(step)
    return Limits(
        seconds=(own and own.seconds) or _SECONDS[step],
        memory_mb=(own and own.memory_mb) or 1024,
    )


def ending(finished: Finished, limits: Limits) -> str:
    """How a command ended that did not end as it should."""
    words = {
        "timeout": f"took longer than {limits.seconds:g} s",
        "memory": f"used more than {limits.memory_mb} MB of memory",
        "output": f"wrote more than {limits.output_kb} kB of output",
        "processes": f"started more than {limits.processes} processes",
        "killed": "was ended by a signal",
        "exited": f"ended by itself with exit code {finished.exit_code}",
    }
    return words[finished.ending]


async def install(workbench: Workbench) -> Step:
    """Whether all is there that the answer wants; nothing is run or fetched."""
    reason = await asyncio.to_thread(problem, workbench.folder)
    return Step(name="install", status="failed" if reason else "passed", reason=reason or "")


async def check(step: StepName, task: CodingTask, workbench: Workbench) -> Step:
    """Types or style of all source files of the answer, by our configuration."""
    tool, complaint = _TOOLS[step]
    paths = await asyncio.to_thread(_sources, workbench.folder)
    if not paths:
        return Step(name=step, status="failed", reason="There are no Python files.")
    environment, limits = Environment(workbench.home), limits_of(step, task)
    needed = [f"{ROOT}/{name}" for name in _TOOL_FILES[step]]
    finished = await workbench.sandbox.run(
        Command(
            argv=environment.argv(f"{ROOT}/inside.py", tool, *needed, "--", *paths),
            folder=workbench.folder,
            mounts=environment.mounts,
            env=environment.variables,
            limits=limits,
        )
    )
    reason = "" if finished.succeeded else _complaint(finished, limits, complaint)
    return Step(
        name=step,
        status="failed" if reason else "passed",
        reason=reason,
        output=finished.output,
        seconds=finished.seconds,
    )


def _complaint(finished: Finished, limits: Limits, complaint: str) -> str:
    if finished.ending != "exited":
        return f"The check {ending(finished, limits)}."
    lines = [line for line in finished.output.splitlines() if line.strip()]
    if finished.exit_code == SILENCED:
        return f"It silences the check: {lines[1] if len(lines) > 1 else ''}"
    return f"{complaint}: {lines[0] if lines else ending(finished, limits)}"


def _sources(folder: Path) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))
    return sorted(found)

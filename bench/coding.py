"""How fast code is graded: every answer of the tasks under evals/, by two workers."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measuring import BenchError
from bench.options import Options
from bench.tables import Cell, Table
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.coding.dataset import load_tasks
from eval_pipeline.suites.coding.judge import CodeJudge
from eval_pipeline.suites.coding.sandbox.base import SandboxError
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox
from eval_pipeline.suites.coding.toolchains.base import ToolchainError
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS, prepare
from eval_pipeline.suites.coding.validate import REFERENCE, validate

ROOT = Path(__file__).parents[1]
WORKERS = 2
COLUMNS = ("", "tasks", "answers", "wall s", "s per answer", "x ideal", "wrong verdicts")


def section(options: Options) -> list[Table]:
    """The references alone, then every answer there is; nothing that was graded before is used."""
    settings = Settings.from_env({"EVALS_SETTINGS": str(ROOT / "eval_pipeline.toml")})
    rows: list[tuple[Cell, ...]] = []
    try:
        for name, tools in sorted(TOOLCHAINS.items()):
            prepare(tools, settings.data, options.say)
            tasks = _tasks(settings, name)
            tasks = tasks[: options.scaled(len(tasks))]
            options.say(f"Coding: {len(tasks)} tasks for {name}")
            rows += [
                (f"{name}, {what}", *asyncio.run(_measured(tasks, settings, references=only)))
                for what, only in (("references", True), ("all answers", False))
            ]
    except (SandboxError, ToolchainError) as error:
        raise BenchError(str(error)) from error
    note = (
        f"By {WORKERS} workers, with warm toolchains. Ideal: nothing but steps, always {WORKERS}."
    )
    return [Table("Grading the bundled coding tasks", COLUMNS, tuple(rows), note)]


def _tasks(settings: Settings, name: str) -> list[CodingTask]:
    suites = [suite for suite in settings.suites if suite.kind == "coding"]
    every = [suite.model_copy(update={"only": ""}) for suite in suites]
    return [task for one in every for task in load_tasks(one, settings) if task.toolchain == name]


async def _measured(
    tasks: Sequence[CodingTask], settings: Settings, *, references: bool
) -> tuple[Cell, ...]:
    places = asyncio.Semaphore(WORKERS)
    judge = CodeJudge(open_sandbox("bwrap"), settings.data, places, fresh=True)
    chosen = [task.model_copy(update={"wrong": {}}) for task in tasks] if references else tasks
    started = time.perf_counter()
    results = [result async for result in validate(chosen, judge)]
    wall = time.perf_counter() - started
    wrong = sum(not result.is_right for result in results)
    if references and any(result.answer != REFERENCE for result in results):
        raise BenchError("More than the references was graded.")
    ideal = sum(step.seconds for one in results for step in one.graded.code.steps) / WORKERS
    return (len(chosen), len(results), wall, wall / len(results), wall / ideal, wrong)

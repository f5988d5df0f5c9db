"""A small Convex answer with its grader, and what it takes to try variations of it."""

import asyncio
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from eval_pipeline.records.coding import CodingTask, Files, Step, TaskConfig, TaskLimits
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.coding.dataset import load_tasks
from eval_pipeline.suites.coding.files import write_files
from eval_pipeline.suites.coding.toolchains.base import Workbench
from eval_pipeline.suites.coding.toolchains.convex.layout import SOURCES
from eval_pipeline.suites.coding.toolchains.convex.project import GENERATED
from eval_pipeline.suites.coding.toolchains.convex.toolchain import Convex
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.coding_stand import a_sandbox, a_task, prepared, take
from eval_pipeline_tests.sandboxes import the_sandbox

SAMPLE = SOURCES / "sample"
SCHEMA = (SAMPLE / "convex" / "schema.ts").read_text("utf-8")
NOTES = (SAMPLE / "convex" / "notes.ts").read_text("utf-8")
ANSWER = {"convex/schema.ts": SCHEMA, "convex/notes.ts": NOTES}
GRADER = {"grader/notes.test.ts": (SAMPLE / "grader" / "notes.test.ts").read_text("utf-8")}
THE_TEST = "notes.test.ts > notes > lists only the owner's notes"


def needs_tools() -> None:
    """They are fetched once; a machine that can not fetch them can not try them."""
    the_sandbox()
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")


def deployed(folder: Path, files: Files) -> Step:
    """What deploying came to; the folder then holds the files and what was generated."""
    folder.mkdir(mode=0o755)
    write_files(folder, files)
    workbench = Workbench(a_sandbox(), folder, prepared("convex"), None)
    return asyncio.run(Convex().run("deploy", a_convex_task(), workbench))


@cache
def generated() -> Files:
    """What is generated for modules of these names, for the steps that come afterwards."""
    with TemporaryDirectory() as private:
        folder = Path(private) / "answer"
        assert deployed(folder, ANSWER).status == "skipped"
        paths = [f"convex/_generated/{name}" for name in GENERATED]
        return {path: (folder / path).read_text("utf-8") for path in paths}


def a_convex_task(*, grader: Files = GRADER, seconds: float | None = None) -> CodingTask:
    config = TaskConfig(limits={"tests": TaskLimits(seconds=seconds)})
    changes = {"toolchain": "convex", "answer": ANSWER, "grader": grader, "config": config}
    return a_task().model_copy(update=changes)


def with_notes(text: str) -> Files:
    """The answer and its generated code, with another module `notes`."""
    return ANSWER | generated() | {"convex/notes.ts": text}


def graded(notes: str, *, seconds: float = 30) -> Step:
    task = a_convex_task(seconds=seconds)
    return take("tests", task, with_notes(notes), expected=[THE_TEST])


CHECKOUT = Path(__file__).with_name("convex_checkout")
"""A checkout of convex-evals in miniature, of tasks of our own."""
CHECKOUT_SUITE = {"kind": "coding", "path": str(CHECKOUT / "evals"), "toolchain": "convex"}


def settings_with(suite: dict[str, str]) -> Settings:
    """With that suite alone."""
    with TemporaryDirectory() as private:
        return settings_in(Path(private), suites=[suite])


@cache
def checkout_tasks() -> dict[str, CodingTask]:
    """Its tasks by id."""
    settings = settings_with(CHECKOUT_SUITE)
    return {task.id: task for task in load_tasks(settings.suites[0], settings)}

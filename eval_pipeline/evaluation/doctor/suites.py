"""Checks of what is asked and how it is graded: suites, prompts, sandbox, toolchains."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from eval_pipeline.evaluation.doctor.report import Check, Finding, ok, wrong
from eval_pipeline.settings.sections import Suite
from eval_pipeline.settings.settings import SETTINGS_FILE, Settings
from eval_pipeline.suites.benchmark import judge_prompt_of
from eval_pipeline.suites.coding.dataset import load_tasks
from eval_pipeline.suites.coding.sandbox.base import SandboxError
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox
from eval_pipeline.suites.coding.toolchains.registry import home_of, toolchain
from eval_pipeline.suites.kinds import Prompts, load_items


def suite_checks(settings: Settings, *, offline: bool) -> list[Check]:
    """Whether everything is there that models are asked."""
    suites = [
        Check(one.name, partial(items, one, settings, offline=offline)) for one in settings.suites
    ]
    return [*suites, Check("prompts", partial(prompts, settings))]


def code_checks(settings: Settings) -> list[Check]:
    """Whether code can be graded; nothing where there is none."""
    coding = [suite for suite in settings.suites if suite.kind == "coding"]
    if not coding:
        return []
    return [
        Check("sandbox", partial(sandbox, settings)),
        Check("toolchains", partial(toolchains, coding, settings)),
    ]


def items(suite: Suite, settings: Settings, *, offline: bool) -> Iterator[Finding]:
    """Reads all of a suite, as loading it would."""
    if suite.hub is not None and offline:
        yield ok(suite.name, f"Not looked at: {suite.hub.repository} is on the hub.")
        return
    count = sum(1 for _ in load_items(suite, settings))
    noun = "tasks" if suite.kind == "coding" else "questions"
    if count:
        yield ok(suite.name, f"{count} {noun}.")
    else:
        advice = f"See the suite '{suite.name}' in {SETTINGS_FILE}."
        yield wrong(suite.name, f"It has no {noun}.", advice)


def prompts(settings: Settings) -> Iterator[Finding]:
    """Those of every experiment, and the judge's."""
    for experiment in settings.experiments.values():
        Prompts.of(settings, experiment)
    judge_prompt_of(settings)
    count = len(settings.experiments)
    yield ok("prompts", f"There for all {count} experiments and for the judge.")


def sandbox(settings: Settings) -> Iterator[Finding]:
    """Has it shown, as before every grading, that it holds."""
    isolation = settings.coding.isolation
    try:
        open_sandbox(isolation)
    except SandboxError as error:
        yield wrong("sandbox", str(error), "docs/sandbox.md says what helps where.")
    else:
        yield ok("sandbox", f"{isolation} runs commands, and holds what it is to hold.")


def toolchains(suites: list[Suite], settings: Settings) -> Iterator[Finding]:
    """Whether those that the tasks name are prepared in the version of this code."""
    named = {task.toolchain for suite in suites for task in load_tasks(suite, settings)}
    for name in sorted(named):
        yield _toolchain(name, settings.data)


def _toolchain(name: str, data: Path) -> Finding:
    tools = toolchain(name)
    about = f"toolchain {name}"
    if tools.is_prepared(home_of(tools, data)):
        return ok(about, f"Prepared ({tools.version}).")
    earlier = any((data / "toolchains").glob(f"{name}-*"))
    words = "Only earlier versions are prepared." if earlier else "It is not prepared."
    return wrong(about, words, f"evals toolchain prepare {name}")

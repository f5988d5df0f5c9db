"""The whole checkup, topic by topic, with the checks of suites, prompts, sandbox, toolchains."""

import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from eval_pipeline.evaluation.doctor.gateways import (
    LONGEST_S,
    Offers,
    gateway_checks,
    key_checks,
    model_checks,
)
from eval_pipeline.evaluation.doctor.report import (
    Check,
    Finding,
    Topic,
    look_at,
    ok,
    warning,
    wrong,
)
from eval_pipeline.evaluation.doctor.storage import disk_checks, lock_checks, result_checks
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.sections import Suite
from eval_pipeline.settings.settings import SETTINGS_FILE, Settings
from eval_pipeline.suites.benchmark import judge_prompt_of
from eval_pipeline.suites.coding.dataset import load_tasks
from eval_pipeline.suites.coding.sandbox.base import SandboxError
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox
from eval_pipeline.suites.coding.toolchains.registry import home_of, toolchain
from eval_pipeline.suites.kinds import Prompts, load_items

Besides = Callable[[Settings], Sequence[Check]]


def check_up(
    *, offline: bool, besides: Besides | None = None, longest_s: float = LONGEST_S
) -> Iterator[Topic]:
    """What is found about each topic, as soon as it is; `besides` are the checks of Dagster."""
    try:
        settings = Settings.from_env()
    except SettingsError as error:
        skipped = "Until they can be read, nothing else can be looked at."
        yield Topic("settings", [wrong(SETTINGS_FILE, f"{error} {skipped}")])
        return
    for name, checks in _topics(settings, offline=offline, longest_s=longest_s):
        yield look_at(name, checks, settings.redact)
    if besides is not None:
        yield look_at("Dagster", _loaded(besides, settings), settings.redact)


def _topics(
    settings: Settings, *, offline: bool, longest_s: float
) -> Iterator[tuple[str, Sequence[Check]]]:
    offers = Offers(settings, longest_s)
    yield "settings", [Check("settings", partial(_settings, settings))]
    yield "gateways", [*key_checks(settings), *([] if offline else gateway_checks(offers))]
    yield "models", [] if offline else model_checks(offers)
    yield "suites", suite_checks(settings, offline=offline)
    yield "code", code_checks(settings)
    yield "disk", disk_checks(settings)
    yield "results", result_checks(settings)
    yield "locks", lock_checks(settings)


def _settings(settings: Settings) -> Iterator[Finding]:
    counts = {"suites": len(settings.suites), "gateways": len(settings.gateways)}
    told = ", ".join(f"{name}: {count}" for name, count in counts.items())
    yield ok(SETTINGS_FILE, f"It can be read ({told}), and so can the environment.")
    dotenv = settings.root / ".env"
    if dotenv.exists() and dotenv.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        yield warning(".env", "Other users of this machine can read it.", "chmod 600 .env")


def _loaded(besides: Besides, settings: Settings) -> Sequence[Check]:
    """The further checks, or one that says why there are none."""
    try:
        return besides(settings)
    except Exception as error:  # noqa: BLE001  (it is told as what it is: a check that broke)
        broken = wrong("Dagster", f"It can not be loaded ({type(error).__name__}: {error}).")
        return [Check("Dagster", lambda: [broken])]


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
    """Check that the toolchains of the tasks are prepared in the version of this code."""
    for name in sorted({task.toolchain for one in suites for task in load_tasks(one, settings)}):
        tools, about = toolchain(name), f"toolchain {name}"
        if tools.is_prepared(home_of(tools, settings.data)):
            yield ok(about, f"Prepared ({tools.version}).")
        else:
            earlier = any((settings.data / "toolchains").glob(f"{name}-*"))
            words = "Only earlier versions are prepared." if earlier else "It is not prepared."
            yield wrong(about, words, f"evals toolchain prepare {name}")

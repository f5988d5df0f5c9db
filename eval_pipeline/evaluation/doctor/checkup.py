"""The whole checkup, topic by topic, with the checks of suites, prompts, sandbox, toolchains."""

import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from eval_pipeline.evaluation.doctor import gateways, storage
from eval_pipeline.evaluation.doctor.report import (
    Check,
    Finding,
    Topic,
    look_at,
    ok,
    warning,
    wrong,
)
from eval_pipeline.journal import Journal
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


def check_up(*, offline: bool, besides: Besides) -> Iterator[Topic]:
    """Yield the findings on each topic as soon as they are there, at last those of `besides`."""
    try:
        settings = Settings.from_env()
    except SettingsError as error:
        skipped = "Until they can be read, nothing else can be looked at."
        yield Topic("settings", [wrong(SETTINGS_FILE, f"{error} {skipped}")])
        return
    for name, checks in checks_of(settings, offline=offline).items():
        yield look_at(name, checks, settings.redact)
    try:
        checks = besides(settings)
    except Exception as error:  # noqa: BLE001  (a check that broke is a finding)
        broken = settings.redact(f"It cannot be loaded ({type(error).__name__}: {error}).")
        yield Topic("Dagster", [wrong("Dagster", broken)])
    else:
        yield look_at("Dagster", checks, settings.redact)


def checks_of(settings: Settings, *, offline: bool) -> Mapping[str, Sequence[Check]]:
    """Return the checks by topic; nothing is looked at yet."""
    offers, journal = gateways.Offers(settings), settings.journal
    keyed = [one for one in settings.gateways if one.key_variable is not None]
    keys = [Check(f"key of {one.name}", partial(gateways.key, one, settings)) for one in keyed]
    lists = [Check(one.name, partial(gateways.answer, one, offers)) for one in settings.gateways]
    models = [
        Check("selection", partial(gateways.selection, offers)),
        Check("judge", partial(gateways.graders, offers)),
        Check("prices", partial(gateways.prices, offers)),
        Check("overrides", partial(gateways.overrides, offers)),
    ]
    suites = [
        Check(one.name, partial(items, one, settings, offline=offline)) for one in settings.suites
    ]
    coding = [suite for suite in settings.suites if suite.kind == "coding"]
    code = [
        Check("sandbox", partial(sandbox, settings)),
        Check("toolchains", partial(toolchains, coding, settings)),
    ]
    free, temporary = "room for data", "temporary files"
    return {
        "settings": [Check("settings", partial(_settings, settings))],
        "gateways": keys if offline else [*keys, *lists],
        "models": [] if offline else models,
        "suites": [*suites, Check("prompts", partial(prompts, settings))],
        "code": code if coding else [],
        "disk": [
            Check(free, partial(storage.room, free, settings.data, settings.database)),
            # Late, since this raises an error if no temporary folder can be written.
            Check(temporary, lambda: storage.room(temporary, Path(tempfile.gettempdir()))),
            Check("writing", partial(storage.writing_here, settings)),
        ],
        "results": [
            Check("journal", partial(storage.journal, Journal(journal))),
            Check("DuckDB file", partial(storage.database, settings)),
        ],
        "locks": [
            Check("claims", partial(storage.claims, journal)),
            Check("DuckDB file's lock", partial(storage.publishing, settings.database)),
            Check("leftovers", partial(storage.leftovers, settings)),
        ],
    }


def _settings(settings: Settings) -> Iterator[Finding]:
    counts = {"suites": len(settings.suites), "gateways": len(settings.gateways)}
    told = ", ".join(f"{name}: {count}" for name, count in counts.items())
    yield ok(SETTINGS_FILE, f"It can be read ({told}), and so can the environment.")
    dotenv = settings.root / ".env"
    if dotenv.exists() and dotenv.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        yield warning(".env", "Other users of this machine can read it.", "chmod 600 .env")


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
    """Check the prompts of every experiment, and the judge's."""
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

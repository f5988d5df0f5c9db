"""The whole checkup, topic by topic; what needs settings is left out if they can not be read."""

import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

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
from eval_pipeline.evaluation.doctor.suites import code_checks, suite_checks
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import SETTINGS_FILE, Settings

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
    yield from _dotenv(settings.root / ".env")


def _dotenv(path: Path) -> Iterator[Finding]:
    """Keys are nobody else's business."""
    if path.exists() and path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        yield warning(".env", "Other users of this machine can read it.", f"chmod 600 {path.name}")


def _loaded(besides: Besides, settings: Settings) -> Sequence[Check]:
    """The further checks, or one that says why there are none."""
    try:
        return besides(settings)
    except Exception as error:  # noqa: BLE001  (it is told as what it is: a check that broke)
        broken = wrong("Dagster", f"It can not be loaded ({type(error).__name__}: {error}).")
        return [Check("Dagster", lambda: [broken])]

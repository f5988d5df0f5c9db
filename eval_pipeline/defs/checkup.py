"""Checks of Dagster for `evals doctor`: where its history is, who runs, what is left of runs."""

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import dagster as dg

from eval_pipeline.checkup.findings import Check, Finding, ok, warning, wrong
from eval_pipeline.defs.instance import HOME, instance_as_it_is
from eval_pipeline.defs.partitions import MODELS
from eval_pipeline.journal.locks import LockState, lock_owner, lock_states
from eval_pipeline.settings import WEBHOOK, Settings

HEARTBEATS_S = 120.0
"""The daemon tells every 30 s that it is there; whoever has missed so many has gone."""


def dagster_checks(settings: Settings) -> list[Check]:
    """Nothing is changed: runs that died are told, and closed by whoever evaluates next."""
    return [
        Check("history", partial(history, settings)),
        Check("runs", partial(runs, settings.journal)),
        Check("notifications", partial(notifications, settings)),
    ]


def history(settings: Settings) -> Iterator[Finding]:
    """Where it is kept, whether it opens, and whether anybody looks at schedules."""
    home, named = os.environ.get(HOME), settings.here.dagster_home
    ours = settings.root if named is None else settings.path(named)
    folder = Path(home).expanduser() if home else ours
    if home and not (folder.is_absolute() and folder.is_dir()):  # Dagster refuses relative ones
        words = f"{HOME} is set, but {home} is no absolute path of a folder."
        yield wrong("history", words, f"unset {HOME}")
        return
    if folder.resolve() != ours.resolve() and (ours / "dagster.yaml").exists():
        words = f"{HOME} is set, so history is kept in {home} and not as the settings say."
        yield warning("history", words, f"unset {HOME}")
    elif not (folder / "dagster.yaml").exists():
        words = "dagster.yaml is missing: limits and monitoring of runs are Dagster's own."
        yield warning("history", words, f"Take dagster.yaml of the project into {folder}.")
    if folder == settings.root and not (settings.data / "dagster").exists():
        yield ok("history", "There is none yet: the first run begins it.")
        return
    with instance_as_it_is(settings) as instance:
        partitions = len(instance.get_dynamic_partitions(MODELS))
        yield ok("history", f"It opens: {instance.get_runs_count()} runs, {partitions} models.")
        yield _daemon(instance, settings)


def _daemon(instance: dg.DagsterInstance, settings: Settings) -> Finding:
    """Only who wants things done by themselves needs it."""
    beats = [one.timestamp for one in instance.get_daemon_heartbeats().values()]
    if beats and time.time() - max(beats) < HEARTBEATS_S:
        return ok("daemon", "It is running.")
    words = "It is not running: schedules and sensors rest. Commands do not need it."
    if settings.automation.evaluate or settings.automation.judge:
        return warning("daemon", words, "dagster dev")
    return ok("daemon", words)


def runs(journal: Path) -> Iterator[Finding]:
    """Whose process is at work, and whose is gone."""
    told = (_run(journal, run_id, life) for run_id, life in lock_states(journal).items())
    found = [one for one in told if one is not None]
    yield from found or [ok("runs", "None is under way, and none has died.")]


def _run(journal: Path, run_id: str, life: LockState) -> Finding | None:
    match life:
        case LockState.ALIVE:
            return ok("runs", f"{run_id[:8]} is under way: {lock_owner(journal, run_id)}.")
        case LockState.DEAD:
            words = f"{run_id[:8]} has died; what was answered is kept."
            return warning("runs", words, "evals run goes on with it; evals due only closes it.")
        case LockState.UNKNOWN:
            return None


def notifications(settings: Settings) -> Iterator[Finding]:
    """Whether anybody is told of failures; where is a secret."""
    if settings.webhook is not None:
        yield ok("notifications", f"{WEBHOOK} is set: failed runs are told there.")
    else:
        yield ok("notifications", f"{WEBHOOK} is not set: nobody is told of failed runs.")

"""Dagster's instance as commands open it: with the same history as the UI and `dagster`."""

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.instance.ref import InstanceRef
from sqlalchemy.exc import OperationalError

from eval_pipeline.defs.sensors.dead_runs import close_dead_runs
from eval_pipeline.errors import MendableError
from eval_pipeline.settings import Settings

HOME = "DAGSTER_HOME"
# What is said stands in the run's log. To capture stderr too, Dagster starts processes that show
# it here, and a Ctrl-C ends those with a traceback.
UNCAPTURED = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}

log = logging.getLogger(__name__)


class HistoryError(MendableError):
    """Dagster's history can not be opened or written; the message says where and why."""

    wrong_use = False


@contextmanager
def dagster_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The instance that `dagster` uses in the project root; runs that died are closed first."""
    with instance_as_it_is(settings) as instance:
        for sentence in close_dead_runs(instance, settings.journal):
            log.warning(sentence)
        yield instance


@contextmanager
def instance_as_it_is(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The same, and nothing is closed; with or without DAGSTER_HOME."""
    # dagster.yaml speaks of folders relative to the project root.
    with chdir(settings.root), ExitStack() as opened:
        reference = _reference(settings)
        opened.enter_context(_explained(reference, OperationalError))
        with _explained(reference, OSError):
            instance = opened.enter_context(dg.DagsterInstance.from_ref(reference))
        yield instance


@contextmanager
def _explained(reference: InstanceRef, error: type[Exception]) -> Iterator[None]:
    """Says where Dagster's history is kept, if this is why it can not be."""
    try:
        yield
    except error as told:
        storage = reference.storage_data
        where = Path((storage.config_dict if storage else {}).get("base_dir", "Dagster's history"))
        raise HistoryError(f"{where.absolute()} can not be written: {_reason(told)}.") from told


def _reason(error: Exception) -> str:
    """Without the SQL and the address that SQLAlchemy adds."""
    match error:
        case OperationalError():
            return str(error.orig)
        case OSError(strerror=str(words)):
            return words
        case _:
            return str(error)


def _reference(settings: Settings) -> InstanceRef:
    overrides: dict[str, Any] = {**UNCAPTURED}
    if home := os.environ.get(HOME):
        folder = Path(home).expanduser()
    elif settings.here.dagster_home is not None:
        folder = settings.path(settings.here.dagster_home)
        if not folder.is_dir():
            raise HistoryError(
                f"{folder}: there is no such folder, which is to be the dagster_home of the "
                f"deployment {settings.deployment}."
            )
    elif (settings.root / "dagster.yaml").exists():
        folder = settings.root
    else:
        folder = settings.data / "dagster"
        folder.mkdir(parents=True, exist_ok=True)
        overrides["telemetry"] = {"enabled": False}
    return InstanceRef.from_dir(str(folder), overrides=overrides)

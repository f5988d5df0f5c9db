"""Dagster's instance as commands open it: with the same history as the UI and `dagster`."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from dagster._core.instance.ref import InstanceRef
from sqlalchemy.exc import OperationalError

from eval_pipeline.defs.sensors.dead_runs import close_dead_runs
from eval_pipeline.errors import MendableError
from eval_pipeline.journal.deployment import may_write
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
    """The instance that `dagster` uses in the project root; runs that died are closed first.

    In production only who may write there closes any: elsewhere its locks may not be seen.
    """
    with instance_as_it_is(settings) as instance:
        if may_write(settings):
            for sentence in close_dead_runs(instance, settings.journal):
                log.warning(sentence)
        yield instance


@contextmanager
def instance_as_it_is(
    settings: Settings, *, captured: bool = False
) -> Iterator[dg.DagsterInstance]:
    """The same, and nothing is closed; with or without DAGSTER_HOME.

    What runs wrote to their stderr is at hand only if it is to be (`captured`).
    """
    # dagster.yaml speaks of folders relative to the project root.
    with chdir(settings.root), ExitStack() as opened:
        reference = _reference(settings, {} if captured else UNCAPTURED)
        opened.enter_context(_explained(reference, OperationalError))
        with _explained(reference, OSError):
            instance = opened.enter_context(dg.DagsterInstance.from_ref(reference))
        yield instance


@contextmanager
def instance_from_anywhere(settings: Settings) -> Iterator[dg.DagsterInstance | None]:
    """To read in, for a thread: it leaves the working directory alone, and makes no new history."""
    folder = _folder(settings)
    kept = _own_folders(folder, settings.root)
    base = Path(kept.get("storage", {}).get("sqlite", {}).get("base_dir", folder))
    # Where history is in a database, there are no such folders.
    if not (base / "history" / "runs.db").exists() and not _is_elsewhere(folder):
        yield None
        return
    reference = InstanceRef.from_dir(str(folder), overrides={**UNCAPTURED, **kept})
    with dg.DagsterInstance.from_ref(reference) as instance:
        yield instance


def _own_folders(folder: Path, root: Path) -> dict[str, Any]:
    """The folders of dagster.yaml that are relative, as absolute ones."""
    told = _told(folder)
    match told:
        case {"storage": {"sqlite": {"base_dir": str(base)}}}:
            storage = {"storage": {"sqlite": {"base_dir": str(root / base)}}}
        case _:
            storage = {}
    match told:
        case {"local_artifact_storage": {"config": {"base_dir": str(base)}, **of_artifacts}}:
            artifacts = {**of_artifacts, "config": {"base_dir": str(root / base)}}
            return {**storage, "local_artifact_storage": artifacts}
    return storage


def _is_elsewhere(folder: Path) -> bool:
    """Whether history is kept in something else than files."""
    storage = _told(folder).get("storage")
    return isinstance(storage, dict) and "sqlite" not in storage


def _told(folder: Path) -> dict[str, Any]:
    path = folder / "dagster.yaml"
    told = yaml.safe_load(path.read_text("utf-8")) if path.exists() else None
    return told if isinstance(told, dict) else {}


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


def _reference(settings: Settings, overrides: Mapping[str, Any]) -> InstanceRef:
    folder = _folder(settings)
    if folder == settings.data / "dagster":
        folder.mkdir(parents=True, exist_ok=True)
        overrides = {**overrides, "telemetry": {"enabled": False}}
    return InstanceRef.from_dir(str(folder), overrides=dict(overrides))


def _folder(settings: Settings) -> Path:
    """Where dagster.yaml is, or history itself."""
    if home := os.environ.get(HOME):
        return Path(home).expanduser()
    if settings.here.dagster_home is not None:
        folder = settings.path(settings.here.dagster_home)
        if not folder.is_dir():
            raise HistoryError(
                f"{folder}: there is no such folder, which is to be the dagster_home of the "
                f"deployment {settings.deployment}."
            )
        return folder
    if (settings.root / "dagster.yaml").exists():
        return settings.root
    return settings.data / "dagster"

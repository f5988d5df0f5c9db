"""Dagster's instance as commands open it, and its records of runs."""

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import yaml
from sqlalchemy.exc import OperationalError

from eval_pipeline.defs.partitions import BUSY, MODELS
from eval_pipeline.defs.sensors import close_dead_runs
from eval_pipeline.errors import MendableError
from eval_pipeline.evaluation.deletion import RunKey
from eval_pipeline.evaluation.doctor.report import Check, Finding, ok, warning, wrong
from eval_pipeline.journal.deployment import may_write
from eval_pipeline.journal.locks import LockState, lock_owner, lock_state, lock_states
from eval_pipeline.settings.settings import WEBHOOK, Settings

HOME = "DAGSTER_HOME"
# What is said stands in the run's log. To capture stderr too, Dagster starts processes that show
# it here, and a Ctrl-C ends those with a traceback.
UNCAPTURED = {
    "compute_logs": {
        "module": "dagster.core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}

log = logging.getLogger(__name__)


class HistoryError(MendableError):
    """Dagster's history can not be opened or written; the message says where and why."""

    wrong_use = False


@contextmanager
def dagster_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """Open the instance that `dagster` uses in the project root; close runs that died first.

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
    """Open the same and close no run; with or without DAGSTER_HOME.

    What runs wrote to their stderr can be read only if it is `captured`.
    """
    folder = _folder(settings)
    overrides: dict[str, Any] = {} if captured else dict(UNCAPTURED)
    if folder == settings.data / "dagster":
        overrides["telemetry"] = {"enabled": False}
    config = _config(folder, settings.root)
    with _explained(_history(folder, config), OperationalError):
        with _explained(_history(folder, config), OSError):
            if folder == settings.data / "dagster":
                folder.mkdir(parents=True, exist_ok=True)
            # No other public way to open a folder's instance takes overrides.
            instance = dg.DagsterInstance.local_temp(str(folder), {**config, **overrides})
        with instance:
            yield instance


def _config(folder: Path, root: Path) -> dict[str, Any]:
    """Return what dagster.yaml says; its relative folders are meant from the project root."""

    def absolute(value: Any, name: str = "") -> Any:
        match value:
            case {"env": str(variable)} if name == "base_dir" and variable in os.environ:
                return str(root / os.environ[variable])
            case dict():
                return {key: absolute(one, key) for key, one in value.items()}
            case str() if name == "base_dir":
                return str(root / value)
        return value

    path = folder / "dagster.yaml"
    if not path.exists():
        return {}
    with path.open("rb") as file:  # of which errors say the name
        found = yaml.safe_load(file)
    return absolute(found) if isinstance(found, dict) else {}


def _history(folder: Path, config: Mapping[str, Any]) -> Path | None:
    """Return the folder of history; None if it is in something else than files."""
    match config.get("storage"):
        case None:
            return folder
        case {"sqlite": {"base_dir": str(base)}}:
            return Path(base)
        case {"sqlite": _}:  # which Dagster refuses
            return folder
        case _:
            return None


@contextmanager
def _explained(where: Path | None, error: type[Exception]) -> Iterator[None]:
    """Turn such an error into a HistoryError that names where Dagster's history is kept."""
    try:
        yield
    except error as exc:
        named = where.absolute() if where else "Dagster's history"
        # Without the SQL and the address that SQLAlchemy adds.
        reason = exc.orig if isinstance(exc, OperationalError) else getattr(exc, "strerror", "")
        raise HistoryError(f"{named} cannot be written: {reason or exc}.") from exc


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


def forgettable_runs(settings: Settings, before: datetime) -> list[str]:
    """The ids of runs that ended before then, and that nothing in the UI rests on.

    Kept is the run of each asset's and each partition's latest materialization: without it they
    would count as never materialized. So is what a living process holds a lock of.
    """
    with instance_as_it_is(settings) as instance:
        status = dg.DagsterRunStatus
        ended = (status.SUCCESS, status.FAILURE, status.CANCELED)
        old = dg.RunsFilter(statuses=ended, updated_before=before)
        ids = [run.run_id for run in instance.get_runs(old)]
        kept = set(_latest(instance)) if ids else set()
    at_work = {run_id for run_id in ids if lock_state(settings.journal, run_id) is LockState.ALIVE}
    return [run_id for run_id in ids if run_id not in kept | at_work]


def forget_runs(settings: Settings, run_ids: Sequence[str]) -> int:
    """Deletes what Dagster has on these runs; says of how many, for some may be at work again."""
    gone = 0
    with instance_as_it_is(settings, captured=True) as instance:
        for run_id in run_ids:
            run = instance.get_run_by_id(run_id)
            if run is None or not run.is_finished:
                continue
            instance.delete_run(run_id)
            instance.compute_log_manager.delete_logs(prefix=[run_id])
            _remove_shard(instance, run_id)
            gone += 1
    return gone


def _latest(instance: dg.DagsterInstance) -> Iterator[str]:
    """Yield the run of each asset's latest materialization, and of each of its partitions'."""
    for key in instance.get_asset_keys():
        partitions = ([one] for one in instance.get_materialized_partitions(key))
        for some in (None, *partitions):
            wanted = dg.AssetRecordsFilter(key, asset_partitions=some)
            for record in instance.fetch_materializations(wanted, limit=1).records:
                yield record.run_id


def _remove_shard(instance: dg.DagsterInstance, run_id: str) -> None:
    """With SQLite the events of a run are in a file of its own, which Dagster leaves there."""
    if path_of := getattr(instance.event_log_storage, "path_for_shard", None):
        for end in ("", "-wal", "-shm"):
            Path(f"{path_of(run_id)}{end}").unlink(missing_ok=True)


def tell_of_deletion(settings: Settings, runs: Sequence[RunKey]) -> None:
    """An observation of `predictions` for each run, in the partition of its model."""
    with dagster_instance(settings) as instance:
        for run in runs:
            instance.report_runless_asset_event(
                dg.AssetObservation(
                    "predictions",
                    partition=run.model,
                    description=f"Run {run.run_id[:8]} was deleted: evals delete",
                    metadata={"deleted_run": run.run_id},
                )
            )


class Waiting(NamedTuple):
    """Runs by status, and for how long the first of those that are queued has been."""

    runs: dict[str, int]
    oldest_queued_s: float


def look_at_queue(settings: Settings) -> Waiting | None:
    """Return how it is now; None, and no new history, where nothing was ever launched."""
    folder = _folder(settings)
    history = _history(folder, _config(folder, settings.root))
    if history is not None and not (history / "history" / "runs.db").exists():
        return None
    with instance_as_it_is(settings) as instance:
        runs = {
            status.value.lower(): instance.get_runs_count(dg.RunsFilter(statuses=[status]))
            for status in (dg.DagsterRunStatus.NOT_STARTED, *BUSY)
        }
        queued = dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED])
        first = instance.get_run_records(queued, limit=1, ascending=True)
    since = [time.time() - record.create_timestamp.timestamp() for record in first]
    return Waiting(runs, max(0.0, *since) if since else 0.0)


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
    states = lock_states(journal).items()
    found = [(run_id, state) for run_id, state in states if state is not LockState.UNKNOWN]
    for run_id, state in found:
        if state is LockState.ALIVE:
            yield ok("runs", f"{run_id[:8]} is under way: {lock_owner(journal, run_id)}.")
        else:
            words = f"{run_id[:8]} has died; what was answered is kept."
            yield warning("runs", words, "evals run goes on with it; evals due only closes it.")
    if not found:
        yield ok("runs", "None is under way, and none has died.")


def notifications(settings: Settings) -> Iterator[Finding]:
    """Whether anybody is told of failures; where is a secret."""
    if settings.webhook is not None:
        yield ok("notifications", f"{WEBHOOK} is set: failed runs are told there.")
    else:
        yield ok("notifications", f"{WEBHOOK} is not set: nobody is told of failed runs.")

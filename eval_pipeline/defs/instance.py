"""Dagster's instance as commands open it, and its records of runs."""

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import yaml
from dagster._core.instance.ref import InstanceRef
from sqlalchemy.exc import OperationalError

from eval_pipeline.defs.partitions import MODELS
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


ENDED = (
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
)
AT_A_TIME = 1000


def forgettable_runs(settings: Settings, before: datetime) -> list[str]:
    """The ids of runs that ended before then, and that nothing in the UI rests on.

    Kept is the run of each asset's and each partition's latest materialization: without it they
    would count as never materialized. So is what a living process holds a lock of.
    """
    with instance_as_it_is(settings) as instance:
        old = dg.RunsFilter(statuses=ENDED, updated_before=before)
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
    for key in instance.get_asset_keys():
        seen: set[str | None] = set()
        cursor, more = None, True
        while more:
            page = instance.fetch_materializations(key, limit=AT_A_TIME, cursor=cursor)
            for record in page.records:  # the latest first
                if record.partition_key not in seen:
                    seen.add(record.partition_key)
                    yield record.run_id
            cursor, more = page.cursor, page.has_more


def _remove_shard(instance: dg.DagsterInstance, run_id: str) -> None:
    """With SQLite the events of a run are in a file of its own, which Dagster leaves there."""
    if path_of := getattr(instance.event_log_storage, "path_for_shard", None):
        shard = Path(path_of(run_id))
        for path in (shard, *(shard.with_name(shard.name + end) for end in ("-wal", "-shm"))):
            path.unlink(missing_ok=True)


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


STATUSES = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


class Waiting(NamedTuple):
    """Runs by status, and for how long the first of those that are queued has been."""

    runs: dict[str, int]
    oldest_queued_s: float


def look_at_queue(settings: Settings) -> Waiting | None:
    """How it is now; None where nothing was ever launched."""
    with instance_from_anywhere(settings) as instance:
        if instance is None:
            return None
        runs = {
            status.value.lower(): instance.get_runs_count(dg.RunsFilter(statuses=[status]))
            for status in STATUSES
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

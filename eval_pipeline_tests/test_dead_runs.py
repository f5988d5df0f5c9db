"""Runs whose process was killed: found by their locks, closed, and gone on with."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin

from eval_pipeline.definitions import build_definitions
from eval_pipeline.defs.sensors import (
    SILENT,
    WORDS,
    _is_ours,
    build_dead_runs,
    close_dead_runs,
    close_silent_runs,
)
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.replies import question_hash
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import PREDICTIONS, Journal
from eval_pipeline.journal.locks import LockState, hold_run_lock, lock_state
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import load_benchmark
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.dagster_runs import a_dagster_run
from eval_pipeline_tests.project import ROOT, call, environment
from eval_pipeline_tests.test_crash import MODEL, SAMPLE, a_project_with, lines_of
from eval_pipeline_tests.test_pipeline import Graph

STARTED, CANCELING = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING
FAILED, CANCELED = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED
KILLED = """
import os, signal, subprocess, sys
from pathlib import Path
from eval_pipeline.journal.locks import hold_run_lock
with hold_run_lock(Path(sys.argv[1]), sys.argv[2]):
    child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(child.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        yield instance


def a_run_of(
    instance: dg.DagsterInstance, run_id: str, status: dg.DagsterRunStatus = STARTED
) -> str:
    """A run of which Dagster believes that it is at work."""
    run = dg.DagsterRun(job_name="evaluate", run_id=run_id, status=status)
    return instance.add_run(run).run_id


def status_of(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def leave_a_lock(journal: Path, run_id: str) -> None:
    """What is left of the lock of a process that was killed."""
    path = journal / "locks" / f"run-{run_id}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("process 1 on here")


def test_a_run_is_alive_as_long_as_its_process_holds_the_lock(tmp_path: Path) -> None:
    before = lock_state(tmp_path, "run-1")
    with hold_run_lock(tmp_path, "run-1"), hold_run_lock(tmp_path, "nested"):
        meanwhile = lock_state(tmp_path, "run-1"), lock_state(tmp_path, "nested")

    after = lock_state(tmp_path, "run-1")

    assert (before, meanwhile, after) == (
        LockState.UNKNOWN,
        (LockState.ALIVE, LockState.ALIVE),
        LockState.UNKNOWN,
    )
    assert list((tmp_path / "locks").iterdir()) == []


def test_a_killed_process_is_dead_although_its_children_live_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), "run-1"]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    child = Path("/proc") / killed.stdout.strip()

    found = lock_state(tmp_path, "run-1")

    try:
        assert child.exists(), killed.stderr
        assert found is LockState.DEAD
    finally:
        subprocess.run(["kill", child.name], check=True)


def test_a_file_that_nobody_signed_is_no_proof_of_death(tmp_path: Path) -> None:
    leave_a_lock(tmp_path, "run-1")
    (tmp_path / "locks" / "run-run-1.lock").write_text("")

    assert lock_state(tmp_path, "run-1") is LockState.UNKNOWN


def test_a_dead_run_is_closed_and_a_live_one_left_alone(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    dead, living = a_run_of(instance, "run-1"), a_run_of(instance, "run-2")
    leave_a_lock(tmp_path, dead)

    with hold_run_lock(tmp_path, living):
        closed = close_dead_runs(instance, tmp_path)

    assert closed == [f"Run run-1 (evaluate) is closed. {WORDS}"]
    assert [status_of(instance, one) for one in (dead, living)] == [FAILED, STARTED]
    assert list((tmp_path / "locks").iterdir()) == []


def test_what_a_dead_run_left_is_removed_also_if_dagster_has_closed_it(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    run_id = a_run_of(instance, "run-1", FAILED)
    leave_a_lock(tmp_path, run_id)
    leave_a_lock(tmp_path, "nobody's")

    closed = close_dead_runs(instance, tmp_path)

    assert closed == []
    assert list((tmp_path / "locks").iterdir()) == []


def test_a_dead_run_that_was_being_cancelled_counts_as_cancelled(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    run_id = a_run_of(instance, "run-1", CANCELING)
    leave_a_lock(tmp_path, run_id)

    closed = close_dead_runs(instance, tmp_path)

    assert len(closed) == 1
    assert status_of(instance, run_id) is CANCELED


def test_a_run_without_a_lock_here_is_nobody_we_can_judge(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    of_another_project = a_run_of(instance, "run-1")
    leave_a_lock(tmp_path / "another", of_another_project)

    closed = close_dead_runs(instance, tmp_path / "ours")

    assert closed == []
    assert status_of(instance, of_another_project) is STARTED


def test_a_lock_that_somebody_else_buries_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_a_lock(tmp_path, "run-1")
    exists = Path.exists

    def exists_and_is_gone(path: Path) -> bool:
        found = exists(path)
        path.unlink()
        (tmp_path / "locks").rmdir()
        return found

    monkeypatch.setattr(Path, "exists", exists_and_is_gone)

    assert lock_state(tmp_path, "run-1") is LockState.UNKNOWN


def test_who_only_looks_at_production_closes_none_of_its_runs(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    settings = settings_in(tmp_path, deployment="prod", deployments={"prod": {"production": True}})
    leave_a_lock(settings.journal, a_run_of(instance, "dead0000"))
    (sensor,) = build_dead_runs(settings).sensors or ()
    assert isinstance(sensor, dg.SensorDefinition)

    tick = sensor.evaluate_tick(dg.build_sensor_context(instance))
    done = call(tmp_path, "evals due", {"DAGSTER_HOME": instance.root_directory})

    assert "production" in (tick.skip_message or "")
    assert done.returncode == 0, done.stderr
    assert status_of(instance, "dead0000") is STARTED
    assert lock_state(settings.journal, "dead0000") is LockState.DEAD


def test_the_sensor_says_whom_it_closed(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    settings = settings_in(tmp_path)
    (sensor,) = build_dead_runs(settings).sensors or ()
    assert isinstance(sensor, dg.SensorDefinition)
    nothing = sensor(dg.build_sensor_context(instance=instance))
    run_id = a_run_of(instance, "run-1")
    leave_a_lock(settings.journal, run_id)

    told = sensor(dg.build_sensor_context(instance=instance))

    assert nothing == dg.SkipReason("no run has died")
    assert "Run run-1 (evaluate) is closed." in str(told)
    assert status_of(instance, run_id) is FAILED
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING


DIES_BEFORE_ITS_LOCK = """
import os, signal, sys
import dagster as dg
from eval_pipeline.defs.jobs import find_job
from eval_pipeline.defs import resources
from eval_pipeline.settings.settings import Settings

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

resources.hold_run_lock = killed
with dg.DagsterInstance.from_config(".") as instance:
    find_job(Settings.from_env(), "metrics_only").execute_in_process(instance=instance)
"""


@pytest.mark.slow
def test_a_run_that_died_between_its_start_and_its_lock_is_closed_when_it_has_long_been_silent(
    tmp_path: Path,
) -> None:
    settings = settings_in(tmp_path)
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    command = [sys.executable, "-c", DIES_BEFORE_ITS_LOCK]
    env = environment() | {"PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=settings.root, env=env, check=False, stderr=subprocess.DEVNULL)
    ours, died_at = (lambda _: True), datetime.now(UTC)
    with chdir(settings.root), dg.DagsterInstance.from_config(".") as instance:
        (run,) = instance.get_runs(dg.RunsFilter(statuses=[STARTED]))

        soon = close_silent_runs(instance, settings.journal, ours, died_at + SILENT / 2)
        of_others = close_silent_runs(
            instance, settings.journal, lambda _: False, died_at + 2 * SILENT
        )
        with hold_run_lock(settings.journal, run.run_id):
            while_alive = close_silent_runs(instance, settings.journal, ours, died_at + 2 * SILENT)
        later = close_silent_runs(instance, settings.journal, ours, died_at + 2 * SILENT)

        assert (soon, of_others, while_alive) == ([], [], [])
        assert later == [f"Run {run.run_id[:8]} (metrics_only) is closed. {WORDS}"]
        assert status_of(instance, run.run_id) is FAILED


def test_a_run_that_has_begun_a_step_or_told_something_lately_is_left_alone(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    working, telling = a_run_of(instance, "run-1"), a_run_of(instance, "run-2")
    noted(instance, working, "STEP_START", ago=timedelta(hours=2))
    noted(instance, telling, "PIPELINE_START", ago=timedelta(hours=2))
    noted(instance, telling, "PIPELINE_START", ago=timedelta(0))
    later = datetime.now(UTC) + SILENT - timedelta(seconds=30)

    closed = close_silent_runs(instance, tmp_path, lambda _: True, later)

    assert closed == []
    assert [status_of(instance, one) for one in (working, telling)] == [STARTED, STARTED]


def noted(instance: dg.DagsterInstance, run_id: str, event: str, *, ago: timedelta) -> None:
    """An event of a run, told so long ago."""
    told = dg.DagsterEvent(event, "evaluate", step_key="predictions")
    entry = dg.EventLogEntry(  # type: ignore[no-untyped-call]
        error_info=None,
        level=20,
        user_message="",
        run_id=run_id,
        timestamp=(datetime.now(UTC) - ago).timestamp(),
        step_key="predictions",
        job_name="evaluate",
        dagster_event=told,
    )
    instance.event_log_storage.store_event(entry)


def test_only_runs_of_this_code_location_are_ours() -> None:
    defs = build_definitions(Settings.from_env({}))
    context = dg.build_sensor_context(repository_def=defs.get_repository_def())
    context._code_location_origin = RegisteredCodeLocationOrigin("here")
    runs = {
        "launched here": a_dagster_run("STARTED"),
        "launched elsewhere": a_dagster_run("STARTED", location="elsewhere"),
        "evaluate": dg.DagsterRun(job_name="evaluate"),
        "somebody_elses": dg.DagsterRun(job_name="somebody_elses"),
        "__ASSET_JOB": dg.DagsterRun("__ASSET_JOB", asset_selection={dg.AssetKey("judged")}),
        "their __ASSET_JOB": dg.DagsterRun("__ASSET_JOB", asset_selection={dg.AssetKey("theirs")}),
    }

    ours = [name for name, run in runs.items() if _is_ours(context, run)]

    assert ours == ["launched here", "evaluate", "__ASSET_JOB"]


@contextmanager
def asking(settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """`dagster asset materialize` in a process of its own, in the middle of asking."""
    command = f"dagster asset materialize --select predictions --partition {MODEL}".split()
    process = subprocess.Popen(
        command, cwd=settings.root, env=environment(), stderr=subprocess.PIPE, text=True
    )
    try:
        end = time.monotonic() + 90
        while lines_of(Journal(settings.journal), PREDICTIONS) < 20:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_run_that_was_killed_while_asking_is_closed_and_the_next_one_goes_on(
    tmp_path: Path,
) -> None:
    sample = load_benchmark(settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}]))
    questions = {key.item_id: item.question for key, item in sample.items.items()}
    with (
        DemoGateway(tuple(sample.items.values()), faults=Faults(latency_s=0.1)) as gateway,
        chdir(a_project_with(gateway, tmp_path / "killed").root),
        dg.DagsterInstance.from_config(".") as instance,
    ):
        settings = Settings.from_env()
        journal, graph = Journal(settings.journal), Graph(settings, instance)
        assert graph.run("model_catalog").success
        with asking(settings):
            (run,) = instance.get_runs(dg.RunsFilter(statuses=[STARTED]))
            while_alive = close_dead_runs(instance, settings.journal)
        answered = [one.item_id for one in journal.read(PREDICTIONS)]
        gateway.misbehave(Faults())

        closed = close_dead_runs(instance, settings.journal)
        again = graph.run("predictions", partition=MODEL)

        assert (while_alive, len(closed)) == ([], 1)
        assert status_of(instance, run.run_id) is FAILED
        assert again.success
        times = {gateway.seen[MODEL, question_hash(questions[item])] for item in answered}
        assert times == {1}
        assert sorted(one.item_id for one in journal.read(PREDICTIONS)) == sorted(questions)
        assert not list((settings.journal / "locks").glob("run-*"))

"""Places at a gateway: over all runs and processes, however these end."""

import asyncio
import logging
import subprocess
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.event_log import SqlEventLogStorage

from eval_pipeline.benchmark import current, load_benchmark
from eval_pipeline.defs import pools
from eval_pipeline.defs.pools import Pools, pool_of
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.records import Model
from eval_pipeline.runs import Mode
from eval_pipeline.settings import Settings
from eval_pipeline.stages.predict import Launch, predict
from eval_pipeline_tests.builders import a_model, settings_in
from eval_pipeline_tests.project import environment
from eval_pipeline_tests.stand import STRONG, WEAK, Stand
from eval_pipeline_tests.test_crash import SAMPLE, a_project_with
from eval_pipeline_tests.test_dead_runs import leave_a_lock
from eval_pipeline_tests.test_pipeline import Graph

POOL = pool_of("demo")
STARTED = dg.DagsterRunStatus.STARTED


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        yield instance


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "FIRST_WAIT_S", 0.02)
    monkeypatch.setattr(pools, "LONGEST_WAIT_S", 0.05)


def pools_of(
    instance: dg.DagsterInstance,
    journal: Path,
    run_id: str = "run-1",
    *,
    limit: int = 1,
    status: dg.DagsterRunStatus = STARTED,
) -> Pools:
    """The pools as a run sees them of which Dagster knows that status."""
    if not instance.has_run(run_id):
        instance.add_run(dg.DagsterRun(job_name="evaluate", run_id=run_id, status=status))
    return Pools(instance, run_id, journal, limit)


def holders(instance: dg.DagsterInstance) -> list[tuple[str, str]]:
    info = instance.event_log_storage.get_concurrency_info(POOL)
    return sorted((one.run_id, one.step_key) for one in info.claimed_slots)


def waiting(instance: dg.DagsterInstance) -> int:
    info = instance.event_log_storage.get_concurrency_info(POOL)
    return len(info.pending_steps) - len(info.claimed_slots)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  (what we wait for is in a database)
        await asyncio.sleep(0.01)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Who waits for a place in vain is not waited for."""
    asyncio.run(asyncio.wait_for(work, 90))


def test_who_has_a_place_keeps_the_others_waiting_and_they_say_for_whom(
    tmp_path: Path, instance: dg.DagsterInstance, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = pools_of(instance, tmp_path), pools_of(instance, tmp_path, "run-2")
    order: list[str] = []

    async def ask() -> None:
        async with first.place(STRONG):
            other = asyncio.create_task(take_one(second, order))
            await until(lambda: waiting(instance) == 1 and "wait for a place" in caplog.text)
            order.append("first ends")
        await other

    with caplog.at_level(logging.INFO, "eval_pipeline"):
        run(ask())

    assert order == ["first ends", "second begins"]
    assert caplog.messages == [
        f"The predictions of demo/weak wait for a place in the pool {POOL}: "
        "of 1 taken by predictions of demo/strong (run run-1)."
    ]
    assert (holders(instance), waiting(instance)) == ([], 0)


async def take_one(of: Pools, order: list[str]) -> None:
    async with of.place(WEAK):
        order.append("second begins")


def test_a_cancelled_task_gives_back_its_place_or_its_turn(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    first, second = pools_of(instance, tmp_path), pools_of(instance, tmp_path, "run-2")
    found = []

    async def hold(of: Pools) -> None:
        async with of.place(STRONG):
            await asyncio.sleep(60)

    async def cancel_both() -> None:
        holding = asyncio.create_task(hold(first))
        await until(lambda: len(holders(instance)) == 1)
        queued = asyncio.create_task(hold(second))
        await until(lambda: waiting(instance) == 1)
        for task in (queued, holding):
            task.cancel()
            await asyncio.wait([task])
            found.append((len(holders(instance)), waiting(instance)))

    run(cancel_both())

    assert found == [(1, 0), (0, 0)]


@pytest.mark.parametrize("how", ["finished", "killed", "forgotten"])
def test_what_ended_runs_have_left_is_taken_over_without_a_daemon(
    tmp_path: Path, instance: dg.DagsterInstance, how: str
) -> None:
    pools_of(instance, tmp_path)
    instance.event_log_storage.set_concurrency_slots(POOL, 1)
    instance.event_log_storage.claim_concurrency_slot(POOL, "run-1", "predictions of x")
    instance.event_log_storage.claim_concurrency_slot(POOL, "run-1", "predictions of y")
    match how:
        case "finished":
            (ended,) = instance.get_runs()
            instance.report_run_failed(ended)
        case "killed":
            leave_a_lock(tmp_path, "run-1")
        case _:
            instance.delete_run("run-1")
    order: list[str] = []

    run(take_one(pools_of(instance, tmp_path, "run-2"), order))

    assert order == ["second begins"]


def test_a_run_that_lives_keeps_its_place(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    first, second = pools_of(instance, tmp_path), pools_of(instance, tmp_path, "run-2")
    order: list[str] = []

    async def ask() -> None:
        async with first.place(STRONG):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await take_one(second, order)

    with hold_run_lock(tmp_path, "run-1"):
        run(ask())

    assert order == []


def test_a_turn_that_was_overlooked_is_taken(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    storage, order = instance.event_log_storage, list[str]()
    assert isinstance(storage, SqlEventLogStorage)
    storage.set_concurrency_slots(POOL, 1)
    storage.add_pending_step(POOL, "run-1", "predictions of demo/weak", should_assign=False)

    run(take_one(pools_of(instance, tmp_path), order))

    assert order == ["second begins"]


def test_a_limit_from_the_ui_stays_until_the_settings_change(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    storage, order = instance.event_log_storage, list[str]()
    run(take_one(pools_of(instance, tmp_path, limit=3), order))
    by_settings = storage.get_concurrency_info(POOL).slot_count
    storage.set_concurrency_slots(POOL, 7)

    run(take_one(pools_of(instance, tmp_path, limit=3), order))
    by_hand = storage.get_concurrency_info(POOL).slot_count
    run(take_one(pools_of(instance, tmp_path, limit=2), order))
    by_new_settings = storage.get_concurrency_info(POOL).slot_count

    assert (by_settings, by_hand, by_new_settings) == (3, 7, 2)


def test_an_instance_in_memory_has_no_pools(tmp_path: Path) -> None:
    order: list[str] = []
    with dg.DagsterInstance.ephemeral() as instance:
        run(take_one(Pools(instance, "run-1", tmp_path, 1), order))

    assert order == ["second begins"]
    assert list(tmp_path.iterdir()) == []


def test_two_runs_over_the_same_models_do_not_lock_up(
    stand: Stand, instance: dg.DagsterInstance
) -> None:
    models = [STRONG, WEAK, a_model("demo/average")]
    benchmark = current(stand.journal, stand.settings)

    async def ask(run_id: str, asked: Sequence[Model]) -> None:
        of = pools_of(instance, stand.settings.journal, run_id)
        await predict(
            asked,
            benchmark,
            Launch(run_id, Mode.FIX),
            settings=stand.settings,
            journal=stand.journal,
            places=of.place,
        )

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask("run-1", models))
            group.create_task(ask("run-2", models[::-1]))

    run(both())

    assert list(stand.gateway.seen.values()) == [1] * 9


@pytest.mark.slow
def test_two_processes_never_ask_more_models_than_the_pool_has_places(tmp_path: Path) -> None:
    sample = load_benchmark(settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}]))
    with DemoGateway(tuple(sample.items.values())) as gateway:
        settings = a_project_with_one_place(gateway, tmp_path / "shared")
        with chdir(settings.root), dg.DagsterInstance.from_config(".") as instance:
            assert Graph(settings, instance).run("model_catalog").success
            gateway.requests.clear()
            gateway.misbehave(Faults(latency_s=0.02))
            processes = {
                tmp_path / model: materialize(settings, f"demo/{model}", tmp_path / model)
                for model in ("strong", "weak")
            }
            held = pools_of(instance, settings.journal)
            run(hold_until(held, lambda: all(map(says_that_it_waits, processes))))
            most = most_models_at_once(gateway, processes.values())

    said = [log.read_text() for log in processes]
    assert [process.returncode for process in processes.values()] == [0, 0], said
    assert most == {1}
    assert dict(gateway.requests) == {"demo/strong": 40, "demo/weak": 40}


async def hold_until(held: Pools, both_wait: Callable[[], bool]) -> None:
    """Keeps the only place until both wait for it: from then on, they are after it together."""
    async with held.place(STRONG), asyncio.timeout(120):
        await until(both_wait)


def says_that_it_waits(log: Path) -> bool:
    return f"wait for a place in the pool {POOL}" in log.read_text()


def most_models_at_once(
    gateway: DemoGateway, processes: Collection[subprocess.Popen[bytes]]
) -> set[int]:
    """To how many models, if to any, the gateway is found to be replying meanwhile."""
    found: set[int] = set()
    while any(process.poll() is None for process in processes):
        found.add(sum(1 for count in gateway.at_once.values() if count))
        time.sleep(0.002)
    return found - {0}


def a_project_with_one_place(gateway: DemoGateway, folder: Path) -> Settings:
    """A project in which one model is asked at a time, by whomever."""
    a_project_with(gateway, folder)
    return settings_in(
        folder,
        suites=[{"name": "sample", "path": SAMPLE}],
        gateways=[{"name": "demo", "kind": "demo", "base_url": gateway.base_url}],
        concurrency={"num_workers": 4, "max_concurrent_models": 1},
        plan={"max_samples": 40, "text_only": True},
    )


def materialize(settings: Settings, model: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(
            f"dagster asset materialize --select predictions --partition {model}".split(),
            cwd=settings.root,
            env=environment(),
            stderr=file,
        )

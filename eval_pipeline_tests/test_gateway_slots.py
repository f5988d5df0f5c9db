"""Slots of a gateway: over all runs and processes, however these end."""

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.defs import resources
from eval_pipeline.defs.resources import GatewaySlots
from eval_pipeline.evaluation.predict import Launch, predict
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.records.model import Model
from eval_pipeline.records.run import Mode
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import current, load_benchmark
from eval_pipeline_tests.builders import a_model, settings_in
from eval_pipeline_tests.project import environment
from eval_pipeline_tests.stand import STRONG, WEAK, Stand
from eval_pipeline_tests.test_crash import SAMPLE, a_project_with
from eval_pipeline_tests.test_pipeline import Graph


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "FIRST_WAIT_S", 0.02)
    monkeypatch.setattr(resources, "LONGEST_WAIT_S", 0.05)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  (the condition is in files or a log)
        await asyncio.sleep(0.01)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run it, and fail instead of waiting for a slot in vain."""
    asyncio.run(asyncio.wait_for(work, 90))


async def take_one(slots: GatewaySlots, order: list[str], model: Model = WEAK) -> None:
    async with slots.hold(model):
        order.append("second begins")


def test_a_taken_slot_keeps_the_next_model_waiting_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = GatewaySlots(tmp_path, 1), GatewaySlots(tmp_path, 1)
    order: list[str] = []

    async def ask() -> None:
        async with first.hold(STRONG):
            other = asyncio.create_task(take_one(second, order))
            await until(lambda: "waits for" in caplog.text)
            order.append("first ends")
        await other

    with caplog.at_level(logging.INFO, "eval_pipeline"):
        run(ask())

    assert order == ["first ends", "second begins"]
    assert caplog.messages == [
        "demo/weak waits for one of the 1 slots of gateway demo (max_concurrent_models)."
    ]


def test_each_gateway_has_its_own_slots_and_as_many_as_the_settings_say(tmp_path: Path) -> None:
    slots, order = GatewaySlots(tmp_path, 2), list[str]()

    async def ask() -> None:
        async with slots.hold(STRONG), slots.hold(a_model("other/strong", gateway="other")):
            await take_one(slots, order)
            async with slots.hold(WEAK):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.3):
                        await take_one(slots, order)

    run(ask())

    assert order == ["second begins"]


def test_a_cancelled_task_gives_back_its_slot(tmp_path: Path) -> None:
    slots, order = GatewaySlots(tmp_path, 1), list[str]()
    holding = asyncio.Event()

    async def hold() -> None:
        async with slots.hold(STRONG):
            holding.set()
            await asyncio.sleep(60)

    async def cancel() -> None:
        task = asyncio.create_task(hold())
        await holding.wait()
        task.cancel()
        await asyncio.wait([task])
        await take_one(slots, order)

    run(cancel())

    assert order == ["second begins"]


HOLDS = """
import asyncio, sys
from pathlib import Path
from eval_pipeline.defs.resources import GatewaySlots
from eval_pipeline_tests.stand import STRONG

async def hold():
    async with GatewaySlots(Path(sys.argv[1]), 1).hold(STRONG):
        print("holds", flush=True)
        await asyncio.sleep(60)

asyncio.run(hold())
"""


def test_a_killed_process_frees_its_slot_at_once(tmp_path: Path) -> None:
    slots, order = GatewaySlots(tmp_path, 1), list[str]()
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    env = environment() | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "holds\n"

        async def ask() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await take_one(slots, order)
            process.kill()
            await take_one(slots, order)

        run(ask())

    assert order == ["second begins"]


def test_two_runs_over_the_same_models_do_not_lock_up(stand: Stand) -> None:
    models = [STRONG, WEAK, a_model("demo/average")]
    benchmark = current(stand.journal, stand.settings)
    slots = GatewaySlots(stand.settings.journal / "locks", 1)

    async def ask(run_id: str, asked: Sequence[Model]) -> None:
        await predict(
            asked,
            benchmark,
            Launch(run_id, Mode.FIX),
            settings=stand.settings,
            journal=stand.journal,
            places=slots.hold,
        )

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask("run-1", models))
            group.create_task(ask("run-2", models[::-1]))

    run(both())

    assert list(stand.gateway.seen.values()) == [1] * 9


@pytest.mark.slow
def test_two_processes_never_ask_more_models_than_there_are_slots(tmp_path: Path) -> None:
    sample = load_benchmark(settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}]))
    with DemoGateway(tuple(sample.items.values())) as gateway:
        settings = a_project_with_one_slot(gateway, tmp_path / "shared")
        with chdir(settings.root), dg.DagsterInstance.from_config(".") as instance:
            assert Graph(settings, instance).run("model_catalog").success
            gateway.requests.clear()
            gateway.misbehave(Faults(latency_s=0.02))
            processes = {
                tmp_path / model: materialize(settings, f"demo/{model}", tmp_path / model)
                for model in ("strong", "weak")
            }
            held = GatewaySlots.of(settings)
            run(hold_until(held, lambda: all(map(says_that_it_waits, processes))))
            most = most_models_at_once(gateway, processes.values())

    said = [log.read_text() for log in processes]
    assert [process.returncode for process in processes.values()] == [0, 0], said
    assert most == {1}
    assert dict(gateway.requests) == {"demo/strong": 40, "demo/weak": 40}


async def hold_until(held: GatewaySlots, both_wait: Callable[[], bool]) -> None:
    """Keeps the only place until both wait for it: from then on, they are after it together."""
    async with held.hold(STRONG), asyncio.timeout(120):
        await until(both_wait)


def says_that_it_waits(log: Path) -> bool:
    return "waits for one of the 1 slots of gateway demo" in log.read_text()


def most_models_at_once(
    gateway: DemoGateway, processes: Collection[subprocess.Popen[bytes]]
) -> set[int]:
    """To how many models, if to any, the gateway is found to be replying meanwhile."""
    found: set[int] = set()
    while any(process.poll() is None for process in processes):
        found.add(sum(1 for count in gateway.at_once.values() if count))
        time.sleep(0.002)
    return found - {0}


def a_project_with_one_slot(gateway: DemoGateway, folder: Path) -> Settings:
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

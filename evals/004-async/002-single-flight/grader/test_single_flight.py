"""What it means to share a load among those who wait for it."""

import asyncio
import gc
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest
from single_flight import SingleFlight


def run(scenario: Coroutine[Any, Any, Any]) -> Any:
    """Runs a scenario, which fails rather than hangs."""
    return asyncio.run(asyncio.wait_for(scenario, 3))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Load:
    """A load that ends when it is told to, and can be slow to clean up."""

    def __init__(self, result: object = None) -> None:
        self.result = result
        self.calls = 0
        self.cancelled = 0
        self.go = asyncio.Event()
        self.cleanup = asyncio.Event()
        self.cleanup.set()

    async def __call__(self) -> object:
        self.calls += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            await self.cleanup.wait()
            raise
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


async def ask(flights: Any, key: object, load: Load) -> asyncio.Task[Any]:
    """A task that waits in `get`."""
    task = asyncio.create_task(flights.get(key, load))
    await settle()
    return task


async def cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_overlapping_calls_share_one_load_and_its_result() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, Any] = SingleFlight()
        first, second = Load(result=["rows"]), Load(result="unused")
        waiting = [await ask(flights, "a", first), await ask(flights, "a", second)]
        first.go.set()
        results = await asyncio.gather(*waiting)
        assert results[0] is results[1] is first.result
        assert (first.calls, second.calls) == (1, 0)

    run(scenario())


def test_calls_that_start_at_the_same_moment_share_one_load() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, Any] = SingleFlight()
        load = Load(result="rows")
        load.go.set()
        assert await asyncio.gather(*(flights.get("a", load) for _ in range(5))) == ["rows"] * 5
        assert load.calls == 1

    run(scenario())


def test_a_finished_load_is_not_kept() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, Any] = SingleFlight()
        for result in ("old", "new"):
            load = Load(result=result)
            load.go.set()
            assert await flights.get("a", load) == result

    run(scenario())


def test_a_failure_reaches_everyone_who_waits_and_nobody_later() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, Any] = SingleFlight()
        bad = Load(result=ConnectionError("down"))
        waiting = [await ask(flights, "a", bad) for _ in range(3)]
        bad.go.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [str(result) for result in results] == ["down"] * 3
        assert all(isinstance(result, ConnectionError) for result in results)

        good = Load(result="up")
        good.go.set()
        assert await flights.get("a", good) == "up"

    run(scenario())


def test_different_keys_do_not_wait_for_each_other() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, Any] = SingleFlight()
        slow, quick = Load(result="slow"), Load(result="quick")
        waiting = await ask(flights, "a", slow)
        quick.go.set()
        assert await flights.get("b", quick) == "quick"
        assert not waiting.done()
        slow.go.set()
        assert await waiting == "slow"

    run(scenario())


@pytest.mark.parametrize("who", [0, 1, 2])
def test_cancelling_one_waiter_leaves_the_load_to_the_others(who: int) -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, Any] = SingleFlight()
        load = Load(result="rows")
        waiting = [await ask(flights, "a", load) for _ in range(3)]
        await cancel(waiting.pop(who))
        load.go.set()
        assert await asyncio.gather(*waiting) == ["rows", "rows"]
        assert (load.calls, load.cancelled) == (1, 0)

    run(scenario())


def test_a_load_that_lost_one_waiter_is_still_joined() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, Any] = SingleFlight()
        load, late = Load(result="rows"), Load(result="unused")
        first, second = await ask(flights, "a", load), await ask(flights, "a", load)
        await cancel(first)
        third = await ask(flights, "a", late)
        load.go.set()
        assert await asyncio.gather(second, third) == ["rows", "rows"]
        assert late.calls == 0

    run(scenario())


def test_when_the_last_waiter_is_cancelled_the_load_is_cancelled() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, Any] = SingleFlight()
        load = Load(result="rows")
        waiting = [await ask(flights, "a", load) for _ in range(2)]
        await cancel(waiting[0])
        await settle()
        assert load.cancelled == 0
        await cancel(waiting[1])
        await settle()
        assert load.cancelled == 1

    run(scenario())


def test_nobody_joins_a_cancelled_load_that_is_still_cleaning_up() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, Any] = SingleFlight()
        old, new, unused = Load(result="old"), Load(result="new"), Load(result="unused")
        old.cleanup.clear()
        abandoned = await ask(flights, "a", old)
        abandoned.cancel()
        await settle()
        second = await ask(flights, "a", new)
        started_while_cleaning_up = new.calls
        old.cleanup.set()
        await settle()
        assert started_while_cleaning_up == 1

        third = await ask(flights, "a", unused)
        new.go.set()
        assert await asyncio.gather(second, third) == ["new", "new"]
        assert (new.calls, unused.calls) == (1, 0)

    run(scenario())


def test_no_key_is_kept_when_nobody_waits() -> None:
    class Key:
        pass

    async def scenario() -> None:
        flights: SingleFlight[Key, Any] = SingleFlight()
        done, failed, abandoned = Key(), Key(), Key()
        kept = [weakref.ref(key) for key in (done, failed, abandoned)]
        good, bad, endless = Load(result="rows"), Load(result=OSError("down")), Load()
        good.go.set()
        bad.go.set()
        await flights.get(done, good)
        with pytest.raises(OSError, match="down"):
            await flights.get(failed, bad)
        await cancel(await ask(flights, abandoned, endless))
        await settle()
        bad.result = None

        del done, failed, abandoned
        gc.collect()
        assert [reference() for reference in kept] == [None, None, None]

    run(scenario())

"""What an ordered, bounded, concurrent map must do."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from ordered import ordered_map


def run(scenario: Coroutine[Any, Any, Any]) -> Any:
    """Runs a scenario, which fails rather than hangs."""
    return asyncio.run(asyncio.wait_for(scenario, 3))


class Calls:
    """A function whose calls wait until they are let go, and that remembers what happened."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.cleaned: list[int] = []
        self.active = 0
        self.most_active = 0
        self.gates: dict[int, asyncio.Event] = {}

    def let_go(self, *items: int) -> None:
        for item in items:
            self.gates.setdefault(item, asyncio.Event()).set()

    async def __call__(self, item: int) -> str:
        self.started.append(item)
        self.active += 1
        self.most_active = max(self.active, self.most_active)
        try:
            await self.gates.setdefault(item, asyncio.Event()).wait()
        except asyncio.CancelledError:
            for _ in range(5):
                await asyncio.sleep(0)
            self.cleaned.append(item)
            raise
        finally:
            self.active -= 1
        return f"r{item}"


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_results_come_in_the_order_of_items_whatever_finishes_first() -> None:
    async def scenario() -> None:
        calls = Calls()
        results: list[str] = []

        async def consume() -> None:
            async for result in ordered_map(calls, [1, 2, 3], limit=3):
                results.append(result)

        task = asyncio.create_task(consume())
        await settle()
        calls.let_go(3)
        await settle()
        calls.let_go(2)
        await settle()
        assert results == []
        calls.let_go(1)
        await task
        assert results == ["r1", "r2", "r3"]

    run(scenario())


def test_no_items_give_no_results() -> None:
    async def scenario() -> None:
        assert [result async for result in ordered_map(Calls(), [], limit=2)] == []

    run(scenario())


def test_falsy_results_are_yielded_like_any_other() -> None:
    async def same(item: object) -> object:
        return item

    async def scenario() -> None:
        items = [None, 0, "", False]
        assert [result async for result in ordered_map(same, items, limit=3)] == items

    run(scenario())


def test_limit_calls_run_together_and_never_more() -> None:
    async def scenario() -> None:
        calls = Calls()
        stream = ordered_map(calls, range(10), limit=3)
        first = asyncio.ensure_future(anext(stream))
        await settle()
        assert calls.started == [0, 1, 2]

        calls.let_go(*range(10))
        assert await first == "r0"
        assert [result async for result in stream] == [f"r{item}" for item in range(1, 10)]
        assert calls.most_active == 3

    run(scenario())


def test_a_finished_call_that_waits_for_its_turn_still_counts() -> None:
    async def scenario() -> None:
        calls = Calls()
        stream = ordered_map(calls, range(1000), limit=3)
        first = asyncio.ensure_future(anext(stream))
        await settle()
        calls.let_go(1, 2)
        await settle()
        assert calls.started == [0, 1, 2]

        calls.let_go(0)
        assert await first == "r0"
        await stream.aclose()

    run(scenario())


def test_items_are_taken_only_as_results_are_asked_for() -> None:
    taken = 0

    def many() -> Iterator[int]:
        nonlocal taken
        for item in range(1000):
            taken += 1
            yield item

    async def double(item: int) -> int:
        return 2 * item

    async def scenario() -> None:
        stream = ordered_map(double, many(), limit=4)
        await settle()
        assert taken == 0

        for expected in range(6):
            assert await anext(stream) == 2 * expected
            await settle()
            assert taken <= expected + 1 + 4
        await stream.aclose()

    run(scenario())


def test_an_exception_comes_out_unwrapped_after_the_results_before_it() -> None:
    broken = KeyError("broken")

    async def fail_on_two(item: int) -> int:
        if item == 2:
            raise broken
        await asyncio.sleep(0.001)
        return item

    async def scenario() -> None:
        results = []
        with pytest.raises(KeyError) as caught:
            async for result in ordered_map(fail_on_two, range(9), limit=4):
                results.append(result)
        assert caught.value is broken
        assert results == [0, 1]

    run(scenario())


def test_after_an_exception_no_call_is_left_running() -> None:
    calls = Calls()

    async def fail_on_zero(item: int) -> str:
        if item == 0:
            raise ValueError("zero")
        return await calls(item)

    async def scenario() -> None:
        with pytest.raises(ValueError, match="zero"):
            async for _ in ordered_map(fail_on_zero, range(9), limit=4):
                pass
        assert calls.active == 0
        assert sorted(calls.cleaned) == sorted(calls.started)

    run(scenario())


def test_after_an_exception_of_items_no_call_is_left_running() -> None:
    calls = Calls()

    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("no more pages")

    async def scenario() -> None:
        calls.let_go(1)
        with pytest.raises(OSError, match="no more pages"):
            async for _ in ordered_map(calls, items(), limit=2):
                pass
        assert calls.active == 0

    run(scenario())


def test_closing_early_cancels_the_running_calls_and_waits_for_them() -> None:
    async def scenario() -> None:
        calls = Calls()
        calls.let_go(0)
        stream = ordered_map(calls, range(9), limit=3)
        assert await anext(stream) == "r0"
        await stream.aclose()
        assert calls.active == 0
        assert {1, 2} <= set(calls.cleaned)
        await settle()
        assert len(calls.started) <= 4

    run(scenario())


def test_cancelling_the_consumer_cancels_the_running_calls_and_waits_for_them() -> None:
    async def scenario() -> None:
        calls = Calls()

        async def consume() -> None:
            async for _ in ordered_map(calls, range(9), limit=3):
                pass

        task = asyncio.create_task(consume())
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert calls.started == [0, 1, 2]
        assert sorted(calls.cleaned) == [0, 1, 2]

    run(scenario())


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError):
            await anext(ordered_map(Calls(), [1], limit=limit))

    run(scenario())

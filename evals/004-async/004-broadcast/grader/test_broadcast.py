"""What subscribers of a broadcast may rely on."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest
from broadcast import Broadcast


def run(scenario: Coroutine[Any, Any, Any]) -> Any:
    """Runs a scenario, which fails rather than hangs."""
    return asyncio.run(asyncio.wait_for(scenario, 3))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def rest(subscription: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in subscription]


async def start_read(subscription: AsyncIterator[Any]) -> asyncio.Future[Any]:
    read = asyncio.ensure_future(anext(subscription))
    await settle()
    return read


def test_every_subscription_receives_every_item_in_order() -> None:
    async def scenario() -> None:
        news: Broadcast[str] = Broadcast(capacity=5)
        readers = [asyncio.create_task(rest(news.subscribe())) for _ in range(3)]
        await settle()
        for item in ("a", "b", "c"):
            news.publish(item)
            await settle()
        news.close()
        assert await asyncio.gather(*readers) == [["a", "b", "c"]] * 3

    run(scenario())


def test_a_subscription_starts_when_it_is_made_not_when_it_is_read() -> None:
    async def scenario() -> None:
        news: Broadcast[str] = Broadcast(capacity=5)
        early = news.subscribe()
        news.publish("a")
        late = news.subscribe()
        news.publish("b")
        news.close()
        assert await rest(early) == ["a", "b"]
        assert await rest(late) == ["b"]

    run(scenario())


def test_publishing_without_subscriptions_is_forgotten() -> None:
    async def scenario() -> None:
        news: Broadcast[str] = Broadcast(capacity=5)
        news.publish("a")
        subscription = news.subscribe()
        news.publish("b")
        assert await anext(subscription) == "b"

    run(scenario())


def test_a_full_subscription_drops_its_oldest_items() -> None:
    async def scenario() -> None:
        news: Broadcast[int] = Broadcast(capacity=3)
        slow, quick = news.subscribe(), news.subscribe()
        for item in range(7):
            news.publish(item)
            assert await anext(quick) == item
        news.close()
        assert await rest(slow) == [4, 5, 6]
        assert await rest(quick) == []

    run(scenario())


def test_closing_a_full_subscription_drops_nothing() -> None:
    async def scenario() -> None:
        news: Broadcast[int] = Broadcast(capacity=1)
        subscription = news.subscribe()
        news.publish(1)
        news.close()
        assert await rest(subscription) == [1]

    run(scenario())


def test_none_and_other_falsy_values_are_ordinary_items() -> None:
    async def scenario() -> None:
        news: Broadcast[Any] = Broadcast(capacity=9)
        subscription = news.subscribe()
        for item in (None, 0, "", False, None):
            news.publish(item)
        news.close()
        assert await rest(subscription) == [None, 0, "", False, None]

    run(scenario())


def test_a_read_that_times_out_does_not_end_the_subscription() -> None:
    async def scenario() -> None:
        news: Broadcast[str] = Broadcast(capacity=5)
        subscription = news.subscribe()
        for item in ("a", "b"):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(subscription), 0.005)
            news.publish(item)
            assert await anext(subscription) == item

    run(scenario())


def test_an_item_published_in_the_moment_of_a_cancellation_is_not_lost() -> None:
    async def scenario() -> None:
        news: Broadcast[str] = Broadcast(capacity=5)
        subscription = news.subscribe()
        read = await start_read(subscription)
        news.publish("a")
        read.cancel()
        received = await asyncio.gather(read, return_exceptions=True)
        news.publish("b")
        news.close()
        received += await rest(subscription)
        assert [item for item in received if isinstance(item, str)] == ["a", "b"]

    run(scenario())


def test_a_burst_after_a_waiting_read_keeps_its_order() -> None:
    async def scenario() -> None:
        news: Broadcast[int] = Broadcast(capacity=9)
        subscription = news.subscribe()
        read = await start_read(subscription)
        for item in range(4):
            news.publish(item)
        news.close()
        assert [await read, *await rest(subscription)] == [0, 1, 2, 3]

    run(scenario())


def test_closing_ends_reads_that_wait() -> None:
    async def scenario() -> None:
        news: Broadcast[str] = Broadcast(capacity=5)
        readers = [asyncio.create_task(rest(news.subscribe())) for _ in range(2)]
        await settle()
        news.close()
        assert await asyncio.gather(*readers) == [[], []]

    run(scenario())


def test_an_ended_subscription_stays_ended() -> None:
    async def scenario() -> None:
        news: Broadcast[str] = Broadcast(capacity=5)
        subscription = news.subscribe()
        news.publish("a")
        news.close()
        assert await rest(subscription) == ["a"]
        for _ in range(3):
            with pytest.raises(StopAsyncIteration):
                await anext(subscription)

    run(scenario())


def test_a_closed_broadcast_publishes_nothing_and_ends_new_subscriptions() -> None:
    async def scenario() -> None:
        news: Broadcast[str] = Broadcast(capacity=5)
        news.close()
        news.close()
        with pytest.raises(RuntimeError):
            news.publish("a")
        assert await rest(news.subscribe()) == []

    run(scenario())

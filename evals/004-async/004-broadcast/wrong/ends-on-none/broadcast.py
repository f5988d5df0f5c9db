"""Sends every item to every subscription, each at its own pace."""

import asyncio
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class _Subscription(AsyncIterator[T]):
    def __init__(self, capacity: int) -> None:
        self._queue: asyncio.Queue[T | None] = asyncio.Queue(maxsize=capacity)
        self._ended = False

    def put(self, item: T | None) -> None:
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(item)

    async def __anext__(self) -> T:
        if self._ended:
            raise StopAsyncIteration
        item = await self._queue.get()
        if item is None:
            self._ended = True
            raise StopAsyncIteration
        return item


class Broadcast(Generic[T]):
    """Items for everybody who has subscribed; slow subscribers lose the oldest ones."""

    def __init__(self, *, capacity: int) -> None:
        self._capacity = capacity
        self._closed = False
        self._subscriptions: list[_Subscription[T]] = []

    def publish(self, item: T) -> None:
        """Sends `item` to every subscription."""
        if self._closed:
            raise RuntimeError("closed")
        for subscription in self._subscriptions:
            subscription.put(item)

    def subscribe(self) -> AsyncIterator[T]:
        """All items from now on."""
        subscription: _Subscription[T] = _Subscription(self._capacity)
        self._subscriptions.append(subscription)
        if self._closed:
            subscription.put(None)
        return subscription

    def close(self) -> None:
        """Ends every subscription."""
        if not self._closed:
            self._closed = True
            for subscription in self._subscriptions:
                subscription.put(None)

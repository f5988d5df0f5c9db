"""Sends every item to every subscription, each at its own pace."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class _Subscription(AsyncIterator[T]):
    """What one subscriber has not read yet.

    It is no generator: that would start late and would not survive a cancelled read.
    """

    def __init__(self, capacity: int) -> None:
        self._kept: deque[T] = deque(maxlen=capacity)
        self._closed = False
        self._changed = asyncio.Event()

    def put(self, item: T) -> None:
        self._kept.append(item)
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    async def __anext__(self) -> T:
        while not self._kept:
            if self._closed:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._kept.popleft()


class Broadcast(Generic[T]):
    """Items for everybody who has subscribed; slow subscribers lose the oldest ones."""

    def __init__(self, *, capacity: int) -> None:
        self._capacity = capacity
        self._closed = False
        self._subscriptions: list[_Subscription[T]] = []

    def publish(self, item: T) -> None:
        """Sends `item` to every subscription."""
        if self._closed:
            raise RuntimeError("the broadcast is closed")
        for subscription in self._subscriptions:
            subscription.put(item)

    def subscribe(self) -> AsyncIterator[T]:
        """All items from now on."""
        subscription: _Subscription[T] = _Subscription(self._capacity)
        if self._closed:
            subscription.close()
        else:
            self._subscriptions.append(subscription)
        return subscription

    def close(self) -> None:
        """Ends every subscription once it has handed out what it kept."""
        self._closed = True
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions.clear()

"""Sends every item to every subscription, each at its own pace."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class _Box(Generic[T]):
    items: deque[T]
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Broadcast(Generic[T]):
    """Items for everybody who has subscribed; slow subscribers lose the oldest ones."""

    def __init__(self, *, capacity: int) -> None:
        self._capacity = capacity
        self._closed = False
        self._boxes: list[_Box[T]] = []

    def publish(self, item: T) -> None:
        """Sends `item` to every subscription."""
        if self._closed:
            raise RuntimeError("closed")
        for box in self._boxes:
            box.items.append(item)
            box.changed.set()

    async def subscribe(self) -> AsyncIterator[T]:
        """All items from now on."""
        box: _Box[T] = _Box(deque(maxlen=self._capacity))
        self._boxes.append(box)
        try:
            while True:
                while box.items:
                    yield box.items.popleft()
                if self._closed:
                    return
                box.changed.clear()
                await box.changed.wait()
        finally:
            self._boxes.remove(box)

    def close(self) -> None:
        """Ends every subscription once it has handed out what it kept."""
        self._closed = True
        for box in self._boxes:
            box.changed.set()

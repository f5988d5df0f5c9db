"""Overlapping loads of one key are done once, for all who want them."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Shares one running load per key among all tasks that ask for it."""

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[V]] = {}
        self._waiting: dict[K, int] = {}

    async def get(self, key: K, load: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The result of the load that is running for `key`, or else of `load`."""
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(load())
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
            self._tasks[key] = task
        self._waiting[key] = self._waiting.get(key, 0) + 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting[key] -= 1
            if self._waiting[key] == 0:
                del self._waiting[key]
                task.cancel()

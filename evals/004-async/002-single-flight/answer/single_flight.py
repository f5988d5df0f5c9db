"""Overlapping loads of one key are done once, for all who want them."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(eq=False)
class _Flight(Generic[V]):
    """One load that is running, and how many wait for it."""

    task: asyncio.Task[V]
    waiting: int = 0


class SingleFlight(Generic[K, V]):
    """Shares one running load per key among all tasks that ask for it."""

    def __init__(self) -> None:
        self._flights: dict[K, _Flight[V]] = {}

    async def get(self, key: K, load: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The result of the load that is running for `key`, or else of `load`."""
        flight = self._flights.get(key)
        if flight is None or flight.task.done():
            flight = _Flight(asyncio.create_task(load()))
            self._flights[key] = flight
        flight.waiting += 1
        try:
            # Waiting for a task in this way neither cancels it nor raises what it raised.
            await asyncio.wait([flight.task])
        finally:
            flight.waiting -= 1
            if flight.waiting == 0:
                flight.task.cancel()
                self._forget(key, flight)
        return flight.task.result()

    def _forget(self, key: K, flight: _Flight[V]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

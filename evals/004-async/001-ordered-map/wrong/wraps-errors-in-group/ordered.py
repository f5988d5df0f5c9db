"""An ordered, bounded, concurrent map in a task group."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def ordered_map(
    func: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[T], *, limit: int
) -> AsyncGenerator[R, None]:
    """Yields `func(item)` in the order of `items`, with at most `limit` calls under way."""
    if limit < 1:
        raise ValueError("limit must be at least 1")
    source = iter(items)
    window: deque[asyncio.Task[R]] = deque()
    async with asyncio.TaskGroup() as group:
        while True:
            for item in islice(source, limit - len(window)):
                window.append(group.create_task(func(item)))
            if not window:
                break
            yield await window.popleft()

"""An ordered, bounded, concurrent map over items that may never end."""

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
        raise ValueError(f"limit must be at least 1, got {limit}")
    source = iter(items)
    window: deque[asyncio.Task[R]] = deque()
    try:
        while True:
            for item in islice(source, limit - len(window)):
                window.append(asyncio.create_task(func(item)))
            if not window:
                return
            await asyncio.wait([window[0]])
            yield window.popleft().result()
    finally:
        for task in window:
            task.cancel()
        await asyncio.gather(*window, return_exceptions=True)

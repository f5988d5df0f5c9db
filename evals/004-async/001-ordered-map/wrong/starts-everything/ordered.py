"""A concurrent map whose calls are bounded by a semaphore."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def ordered_map(
    func: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[T], *, limit: int
) -> AsyncGenerator[R, None]:
    """Yields `func(item)` in the order of `items`, with at most `limit` calls under way."""
    if limit < 1:
        raise ValueError("limit must be at least 1")
    semaphore = asyncio.Semaphore(limit)

    async def bounded(item: T) -> R:
        async with semaphore:
            return await func(item)

    tasks = [asyncio.create_task(bounded(item)) for item in items]
    try:
        for task in tasks:
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

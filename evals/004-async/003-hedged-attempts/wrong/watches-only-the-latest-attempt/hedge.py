"""Asks one server after another, until the first good answer."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def hedge(attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]], *, delay: float) -> T:
    """The first success of `attempts`, which start after a failure or a delay."""
    if not attempts:
        raise ValueError("at least one attempt is needed")
    tasks: list[asyncio.Task[T]] = []
    try:
        for attempt in attempts:
            task = asyncio.create_task(attempt())
            tasks.append(task)
            try:
                return await asyncio.wait_for(asyncio.shield(task), delay)
            except TimeoutError:
                continue
            except Exception:
                continue
        for finished in asyncio.as_completed(tasks):
            try:
                return await finished
            except Exception:
                continue
        errors = [task.exception() for task in tasks]
        raise ExceptionGroup("all failed", [e for e in errors if isinstance(e, Exception)])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""Asks one server after another, until the first good answer."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def hedge(attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]], *, delay: float) -> T:
    """The first success of `attempts`, each of which starts `delay` after the one before."""
    if not attempts:
        raise ValueError("at least one attempt is needed")

    async def delayed(index: int, attempt: Callable[[], Coroutine[Any, Any, T]]) -> T:
        await asyncio.sleep(index * delay)
        return await attempt()

    tasks = [asyncio.create_task(delayed(i, attempt)) for i, attempt in enumerate(attempts)]
    try:
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

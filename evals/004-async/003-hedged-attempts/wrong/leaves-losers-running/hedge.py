"""Asks one server after another, until the first good answer."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def hedge(attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]], *, delay: float) -> T:
    """The first success of `attempts`, which start after a failure or a delay."""
    if not attempts:
        raise ValueError("at least one attempt is needed")
    errors: list[Exception] = []
    pending: set[asyncio.Task[T]] = set()
    waiting = list(attempts)
    while waiting or pending:
        if waiting:
            pending.add(asyncio.create_task(waiting.pop(0)()))
        done, pending = await asyncio.wait(
            pending,
            timeout=delay if waiting else None,
            return_when=asyncio.FIRST_COMPLETED,
        )
        for task in done:
            error = task.exception()
            if error is None:
                for loser in pending:
                    loser.cancel()
                return task.result()
            if isinstance(error, Exception):
                errors.append(error)
    raise ExceptionGroup("all failed", errors)

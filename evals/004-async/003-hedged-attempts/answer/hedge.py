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
        return await _race(attempts, tasks, delay)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _race(
    attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]],
    tasks: list[asyncio.Task[T]],
    delay: float,
) -> T:
    """Starts attempts into `tasks` until one succeeds; the caller ends what is left."""
    running: set[asyncio.Task[T]] = set()
    while True:
        if len(tasks) < len(attempts):
            task = asyncio.create_task(attempts[len(tasks)]())
            tasks.append(task)
            running.add(task)
        patience = delay if len(tasks) < len(attempts) else None
        done, running = await asyncio.wait(
            running, timeout=patience, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            if task.exception() is None:
                return task.result()
        if not running and len(tasks) == len(attempts):
            raise ExceptionGroup("every attempt failed", _errors(tasks))


def _errors(tasks: Sequence[asyncio.Task[T]]) -> list[Exception]:
    return [error for task in tasks if isinstance(error := task.exception(), Exception)]

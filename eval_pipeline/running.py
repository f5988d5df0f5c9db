"""Running async work so that whatever interrupts the main thread ends it in order."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Runs it in a thread of its own and waits for it.

    An exception that a signal handler raises would otherwise fly through the event loop, where it
    may hit anything; here it hits the waiting only, and the work is cancelled and cleans up.
    """
    result: Future[T] = Future()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = Future()

    async def announced() -> T:
        started.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    def thread() -> None:
        try:
            result.set_result(asyncio.run(announced()))
        except BaseException as error:  # noqa: BLE001  (it is raised where it is waited for)
            result.set_exception(error)

    worker = threading.Thread(target=copy_context().run, args=(thread,), daemon=True)
    worker.start()
    try:
        return result.result()
    finally:
        if not result.done():
            loop, task = started.result()
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)
            worker.join()

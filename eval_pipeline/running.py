"""Running async work so that whatever interrupts the main thread ends it in order."""

import asyncio
import gc
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

import uvloop

log = logging.getLogger(__name__)
T = TypeVar("T")
TELL_EVERY_S = 15.0
OBJECTS_BETWEEN_COLLECTIONS = (10_000, 20, 50)


def run_async(work: Coroutine[Any, Any, T], meanwhile: Callable[[], None] | None = None) -> T:
    """Runs it in a thread of its own and waits for it, doing `meanwhile` every few seconds.

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
            with _rare_collections(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                result.set_result(runner.run(announced()))
        except BaseException as error:  # noqa: BLE001  (it is raised where it is waited for)
            result.set_exception(error)

    worker = threading.Thread(target=copy_context().run, args=(thread,), daemon=True)
    worker.start()
    try:
        return _wait(result, meanwhile)
    finally:
        if not result.done():
            loop, task = started.result()
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)
            worker.join()


async def in_a_thread(work: Callable[..., T], *given: Any) -> T:
    """Does it in a thread and waits for that, also when cancelled: it can not be stopped.

    What it needs, such as a claim, is then not given back before it has ended.
    """
    task = asyncio.create_task(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Looking through all that was imported, again and again, would take a tenth of the time."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*OBJECTS_BETWEEN_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _wait(result: "Future[T]", meanwhile: Callable[[], None] | None) -> T:
    while meanwhile is not None:
        try:
            return result.result(timeout=TELL_EVERY_S)
        except TimeoutError:
            if result.done():
                break
            _do(meanwhile)
    return result.result()


def _do(meanwhile: Callable[[], None]) -> None:
    """What is only to be shown must not end the work."""
    try:
        meanwhile()
    except Exception:
        log.exception("How far it is could not be shown.")

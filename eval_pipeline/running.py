"""Running async work so that whatever interrupts the main thread ends it in order."""

import asyncio
import gc
import logging
import math
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import Any, Generic, TypeVar

import uvloop

from eval_pipeline.gateways.rate_limiter import Halted
from eval_pipeline.signals import INTERRUPTIONS, all_like_ctrl_c
from eval_pipeline.waiting import Moment, Worker

log = logging.getLogger(__name__)
T = TypeVar("T")
TELL_EVERY_S = 15.0
OBJECTS_BETWEEN_COLLECTIONS = (10_000, 20, 50)
SETTLES_S = 0.1
"""So long after a stop only what is really under way is still at work."""
LANDS_S = 2.0
"""So long nobody's impatience keeps what was answered from the disk."""


class Brake:
    """How work is stopped gently: each part that has something under way says how it ends that."""

    def __init__(self) -> None:
        self.stopped = False
        self._at_work: dict[object, tuple[Callable[[], None], Callable[[], int]]] = {}

    @contextmanager
    def on_stop(
        self, stop: Callable[[], None], under_way: Callable[[], int] = lambda: 0
    ) -> Iterator[None]:
        """Within it a stop calls `stop`; if that was before, at once."""
        part = object()
        self._at_work[part] = stop, under_way
        try:
            if self.stopped:
                stop()
            yield
        finally:
            del self._at_work[part]

    def stop(self) -> bool:
        """Nothing new is begun; False if no part is at work, so that nothing is waited for."""
        self.stopped = True
        parts = tuple(self._at_work.values())
        for stop, _ in parts:
            stop()
        return bool(parts)

    def tell(self) -> None:
        """Says what is still waited for, if anything is."""
        if count := sum(under_way() for _, under_way in self._at_work.values()):
            items = "1 item is" if count == 1 else f"{count} items are"
            log.warning("Stopping: %s under way and waited for; Ctrl-C again stops at once.", items)


_brake: ContextVar[Brake] = ContextVar("brake")
_heard: ContextVar[int | None] = ContextVar("heard", default=None)
"""Where work is interrupted gently: the file from which signals are read that came meanwhile."""


def brake() -> Brake:
    """The one of the work that this is part of; outside of any, one that nobody uses."""
    return _brake.get(None) or Brake()


@contextmanager
def gently() -> Iterator[None]:
    """Work that is interrupted in it finishes what is under way; interrupted again, it ends.

    For where a person waits. A run that Dagster is to terminate must not linger. In the main thread
    only, which is where signals arrive. To be told to end, or to lose the terminal, interrupts too.
    """
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    told_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    heard_before = _heard.set(reading)
    try:
        with all_like_ctrl_c():
            yield
    finally:
        _heard.reset(heard_before)
        signal.set_wakeup_fd(told_before)
        os.close(reading)
        os.close(writing)


def raise_if_interrupted() -> None:
    """Raises what nobody has: Dagster forgets an interruption that comes at the end of a run."""
    if _was_interrupted():
        raise KeyboardInterrupt


def _was_interrupted() -> bool:
    with suppress(BlockingIOError):
        return (heard := _heard.get()) is not None and bool(INTERRUPTIONS & {*os.read(heard, 4096)})
    return False


def run_async(work: Coroutine[Any, Any, T], meanwhile: Callable[[], None] | None = None) -> T:
    """Runs it in a thread of its own and waits for it, doing `meanwhile` every few seconds.

    An exception that a signal handler raises would otherwise fly through the event loop, where it
    may hit anything; here it hits the waiting only. The work is stopped gently where that is
    wanted, else it is cancelled and cleans up.
    """
    if _was_interrupted():
        work.close()
        raise KeyboardInterrupt
    thread = _Thread(work)
    ended = thread.worker.ended
    try:
        thread.start()
        _wait(ended, meanwhile)
    except BaseException:
        if _heard.get() is not None and not ended.happened:
            thread.stop()
            _wait(ended, meanwhile)  # another interruption ends this, and so the work
            _tell_of_trouble(thread.worker.error)
        raise
    finally:
        if not ended.happened:
            thread.cancel()
    return thread.worker.result()


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


class _Thread(Generic[T]):
    """Work in a thread and an event loop of its own, with a brake."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.worker = Worker(self._run)
        self._work = work
        self._brake = Brake()
        self._begun = Moment()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def start(self) -> None:
        """Returns at once."""
        context = copy_context()
        context.run(_brake.set, self._brake)
        self.worker.start(context)

    def stop(self) -> None:
        """What is under way is finished and nothing new is begun; without such, it is cancelled."""
        self._call(self._stop)

    def cancel(self) -> None:
        """Cancels it and waits for its clean-up, for which there is always some time."""
        earliest = time.monotonic() + LANDS_S
        called = False
        while not self.worker.ended.happened:
            try:
                called = called or self._call(self._cancel)
                if not called:
                    return
                self.worker.ended.wait()
            except BaseException:
                if time.monotonic() >= earliest:
                    raise

    def _run(self) -> T:
        with _rare_collections(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self._announced())

    async def _announced(self) -> T:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._begun.happens()
        return await self._work

    def _call(self, what: Callable[[], None]) -> bool:
        """Whether its loop was told; it may have just ended, or never have begun."""
        if not self._begun.wait(LANDS_S) or self._loop is None:
            return False
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what)
        return True

    def _stop(self) -> None:
        if self._brake.stop():
            asyncio.get_running_loop().call_later(SETTLES_S, self._brake.tell)
        else:
            self._cancel()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


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


def _wait(moment: Moment, meanwhile: Callable[[], None] | None) -> None:
    while not moment.wait(TELL_EVERY_S if meanwhile else math.inf):
        if meanwhile is not None:
            _do(meanwhile)


def _do(meanwhile: Callable[[], None]) -> None:
    """What is only to be shown must not end the work."""
    try:
        meanwhile()
    except Exception:
        log.exception("How far it is could not be shown.")


def _tell_of_trouble(error: BaseException | None) -> None:
    """The interruption is what is raised, so a fault of the work itself goes to the log."""
    if isinstance(error, Exception) and not isinstance(error, Halted):
        log.error("The work failed while it was stopped.", exc_info=error)

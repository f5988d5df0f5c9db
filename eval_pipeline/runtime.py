"""Running async work so that an interruption of the main thread ends it in order."""

import asyncio
import gc
import logging
import math
import os
import signal
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from types import FrameType
from typing import Any, Generic, TypeVar, cast

import uvloop

log = logging.getLogger(__name__)
T = TypeVar("T")
Handler = Callable[[int, FrameType | None], None]
PROGRESS_EVERY_S = 15.0
OBJECTS_BETWEEN_COLLECTIONS = (10_000, 20, 50)
SETTLES_S = 0.1
"""After a stop, whatever is still at work after this time is really under way."""
CLEANUP_S = 2.0
"""The time that answers have to reach the disk, however often the user interrupts."""
POLL_S = 0.2
"""The longest a signal waits for its handler."""
INTERRUPTIONS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Halted(Exception):  # noqa: N818
    """The work was stopped on purpose, so nothing is waited for any longer."""


class OneShotEvent:
    """Something that happens once in one thread and is waited for in another.

    Waiting is safe where a signal handler raises: events, conditions and futures have Python code
    that could be left half done, with a lock held for ever. No wait is long, for a signal may
    arrive just before the lock is waited for, or in another thread.
    """

    def __init__(self) -> None:
        self.happened = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Mark it as happened; once only."""
        self.happened = True
        self._lock.release()

    def wait(self, timeout: float = math.inf) -> bool:
        """Return whether it has happened by then; for one thread only."""
        end = time.monotonic() + timeout
        while not self.happened and (left := end - time.monotonic()) > 0:
            self._lock.acquire(timeout=min(left, POLL_S))
        return self.happened


class ThreadTask(Generic[T]):
    """A daemon thread that does one thing and then sets `ended`."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.ended = OneShotEvent()
        self.error: BaseException | None = None
        self._value: T | None = None
        self._work = work

    def start(self, context: Context | None = None) -> None:
        """Return at once, unlike a `threading.Thread`, which waits until it has begun."""
        start_new_thread((context or Context()).run, (self._run,))

    def result(self) -> T:
        """Wait for the end, and return or raise the result of the work."""
        self.ended.wait()
        if self.error is not None:
            raise self.error
        return cast("T", self._value)

    def _run(self) -> None:
        try:
            self._value = self._work()
        except BaseException as error:  # noqa: BLE001  (it is raised where it is waited for)
            self.error = error
        finally:
            self.ended.set()


class StopController:
    """Stops work gracefully: each part registers how it stops and what it has under way."""

    def __init__(self) -> None:
        self.stopped = False
        self._parts: dict[object, tuple[Callable[[], None], Callable[[], int]]] = {}

    @contextmanager
    def on_stop(
        self, stop: Callable[[], None], under_way: Callable[[], int] = lambda: 0
    ) -> Iterator[None]:
        """Call `stop` when the work is stopped within the block, or at once if it was before."""
        part = object()
        self._parts[part] = stop, under_way
        try:
            if self.stopped:
                stop()
            yield
        finally:
            del self._parts[part]

    def stop(self) -> bool:
        """Begin nothing new; return False if no part is at work, so that nothing is waited for."""
        self.stopped = True
        parts = tuple(self._parts.values())
        for stop, _ in parts:
            stop()
        return bool(parts)

    def log_pending(self) -> None:
        """Log how many items are still waited for, if any."""
        if count := sum(under_way() for _, under_way in self._parts.values()):
            items = "1 item is" if count == 1 else f"{count} items are"
            log.warning("Stopping: %s under way and waited for; Ctrl-C again stops at once.", items)


_controller: ContextVar[StopController] = ContextVar("stop_controller")
_wakeup: ContextVar[int | None] = ContextVar("wakeup", default=None)
"""Within `graceful_interrupt`: the file from which signals are read that arrived meanwhile."""


def stop_controller() -> StopController:
    """Return the controller of the current work; outside of any, an unused one."""
    return _controller.get(None) or StopController()


@contextmanager
def graceful_interrupt() -> Iterator[None]:
    """Let interrupted work finish what is under way; a second interruption ends it.

    For commands that a user waits for, in the main thread; a run that Dagster terminates must not
    linger. SIGTERM and the loss of the terminal interrupt too.
    """
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    descriptor_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    wakeup_before = _wakeup.set(reading)
    try:
        with (
            _handled(signal.SIGTERM, _interrupt),
            _handled(signal.SIGHUP, _hang_up_handler()),
            _silence_unraisable_interrupts(),
        ):
            yield
    finally:
        _wakeup.reset(wakeup_before)
        signal.set_wakeup_fd(descriptor_before)
        os.close(reading)
        os.close(writing)


def raise_if_interrupted() -> None:
    """Raise a pending interruption: Dagster drops one that comes at the end of a run."""
    if _was_interrupted():
        raise KeyboardInterrupt


def run_async(work: Coroutine[Any, Any, T], meanwhile: Callable[[], None] | None = None) -> T:
    """Run the work in a thread of its own and wait for it, calling `meanwhile` every few seconds.

    A signal handler that raises then hits only the waiting, never the event loop. Within
    `graceful_interrupt` the work is stopped, elsewhere it is cancelled and cleans up.
    """
    if _was_interrupted():
        work.close()
        raise KeyboardInterrupt
    thread = _AsyncThread(work)
    ended = thread.task.ended
    try:
        thread.start()
        _wait(ended, meanwhile)
    except BaseException:
        if _wakeup.get() is not None and not ended.happened:
            thread.stop()
            _wait(ended, meanwhile)  # another interruption ends this, and so the work
            _log_failure(thread.task.error)
        raise
    finally:
        if not ended.happened:
            thread.cancel()
    return thread.task.result()


async def in_a_thread(work: Callable[..., T], *given: Any) -> T:
    """Call it in a thread and wait for its end, also when cancelled: it cannot be stopped.

    So what it needs, such as a lock, is not released before it has ended.
    """
    task = asyncio.create_task(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class _AsyncThread(Generic[T]):
    """Work in a thread and an event loop of its own, with a stop controller."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.task = ThreadTask(self._run)
        self._work = work
        self._controller = StopController()
        self._begun = OneShotEvent()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[Any] | None = None

    def start(self) -> None:
        context = copy_context()
        context.run(_controller.set, self._controller)
        self.task.start(context)

    def stop(self) -> None:
        """Finish what is under way and begin nothing new; cancel if nothing can be finished."""
        self._call(self._stop)

    def cancel(self) -> None:
        """Cancel the work and wait for its cleanup, which always gets some time."""
        earliest = time.monotonic() + CLEANUP_S
        called = False
        while not self.task.ended.happened:
            try:
                called = called or self._call(self._cancel)
                if not called:
                    return
                self.task.ended.wait()
            except BaseException:
                if time.monotonic() >= earliest:
                    raise

    def _run(self) -> T:
        with _rare_collections(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self._announced())

    async def _announced(self) -> T:
        self._main = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._begun.set()
        return await self._work

    def _call(self, what: Callable[[], None]) -> bool:
        """Schedule the call in the loop; return False if the loop never began."""
        if not self._begun.wait(CLEANUP_S) or self._loop is None:
            return False
        with suppress(RuntimeError):  # it has just ended
            self._loop.call_soon_threadsafe(what)
        return True

    def _stop(self) -> None:
        if self._controller.stop():
            asyncio.get_running_loop().call_later(SETTLES_S, self._controller.log_pending)
        else:
            self._cancel()

    def _cancel(self) -> None:
        if self._main is not None:
            self._main.cancel()


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage less often: scanning all imported objects would take a tenth of the time."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*OBJECTS_BETWEEN_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _wait(event: OneShotEvent, meanwhile: Callable[[], None] | None) -> None:
    while not event.wait(PROGRESS_EVERY_S if meanwhile else math.inf):
        try:
            if meanwhile is not None:
                meanwhile()
        except Exception:
            log.exception("The progress could not be shown.")


def _log_failure(error: BaseException | None) -> None:
    """Log a fault of the work itself: the interruption is what is raised."""
    if isinstance(error, Exception) and not isinstance(error, Halted):
        log.error("The work failed while it was stopped.", exc_info=error)


def _was_interrupted() -> bool:
    with suppress(BlockingIOError):
        wakeup = _wakeup.get()
        return wakeup is not None and bool(INTERRUPTIONS & {*os.read(wakeup, 4096)})
    return False


@contextmanager
def _handled(number: signal.Signals, handler: Handler) -> Iterator[None]:
    """Install the handler, unless the signal is ignored, as with `nohup`."""
    before = signal.getsignal(number)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        # A signal that was set to be ignored meanwhile stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C does at this time: within its runs Dagster decides that."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(number, frame)


def _hang_up_handler() -> Handler:
    """Return a handler that interrupts once, and redirects a lost terminal to /dev/null."""
    terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def hang_up(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for terminal in terminals:
            os.dup2(nowhere, terminal)
        os.close(nowhere)
        _interrupt(number, frame)

    return hang_up


@contextmanager
def _silence_unraisable_interrupts() -> Iterator[None]:
    """Suppress 'Exception ignored in …' when an interrupt lands in a destructor."""
    before = sys.unraisablehook

    def report(unraisable: "sys.UnraisableHookArgs") -> None:
        if issubclass(unraisable.exc_type, Exception):
            before(unraisable)

    sys.unraisablehook = report
    try:
        yield
    finally:
        sys.unraisablehook = before

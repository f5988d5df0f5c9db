"""Work in another thread, waited for where a signal handler may raise at any moment."""

import math
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from contextvars import Context
from typing import Generic, TypeVar, cast

T = TypeVar("T")
HEARD_WITHIN_S = 0.2
"""No signal waits longer for its handler."""


class Moment:
    """Something that happens once in one thread and is waited for in another.

    Unlike events, conditions and futures it may be waited for where a signal handler raises: what
    these do in Python can be left half done, with a lock held for ever. Here there is one lock, and
    whoever was interrupted behind it finds that it has happened. Nor does a signal go unheard that
    comes just before the lock is waited for, or in another thread: no such wait is long.
    """

    def __init__(self) -> None:
        self.happened = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def happens(self) -> None:
        """Once only."""
        self.happened = True
        self._lock.release()

    def wait(self, timeout: float = math.inf) -> bool:
        """Whether it has happened by then; for one thread only."""
        end = time.monotonic() + timeout
        while not self.happened and (left := end - time.monotonic()) > 0:
            self._lock.acquire(timeout=min(left, HEARD_WITHIN_S))
        return self.happened


class Worker(Generic[T]):
    """A thread that does one thing; `ended` is when it has. The program's end does not wait."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.ended = Moment()
        self.error: BaseException | None = None
        self._value: T | None = None
        self._work = work

    def start(self, context: Context | None = None) -> None:
        """Returns at once, unlike a `threading.Thread`, which waits for itself to have begun."""
        start_new_thread((context or Context()).run, (self._run,))

    def result(self) -> T:
        """What the work returned or raised, when it has ended."""
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
            self.ended.happens()

"""A pool of threads with a bounded line of jobs and an orderly end."""

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from types import TracebackType
from typing import Self

Job = Callable[[], object]


class PoolClosed(Exception):
    """The pool takes no more jobs."""


class WorkerPool:
    """Runs jobs in threads; whoever submits waits while too many jobs do."""

    def __init__(self, *, workers: int, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[Job] = deque()
        self._failures: list[Exception] = []
        self._closed = False
        # One condition guards all of the above; each change of them notifies everybody.
        self._changed = Condition()
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    @property
    def failures(self) -> list[Exception]:
        """What jobs have raised so far."""
        with self._changed:
            return list(self._failures)

    def submit(self, job: Job) -> None:
        """Puts a job in line, after waiting for room."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._waiting) < self._capacity)
            if self._closed:
                raise PoolClosed
            self._waiting.append(job)
            self._changed.notify_all()

    def close(self, *, drain: bool = True) -> None:
        """Ends the threads, after the jobs that wait or without them."""
        with self._changed:
            self._closed = True
            if not drain:
                self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        try:
            while (job := self._next()) is not None:
                job()
        except Exception as error:
            with self._changed:
                self._failures.append(error)

    def _next(self) -> Job | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting)
            if not self._waiting:
                return None
            job = self._waiting.popleft()
            self._changed.notify_all()
            return job

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(drain=error is None)

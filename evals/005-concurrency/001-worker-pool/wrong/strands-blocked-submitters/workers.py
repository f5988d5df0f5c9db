"""A pool of threads with a bounded queue of jobs."""

import queue
from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Self

Job = Callable[[], object]


class PoolClosed(Exception):
    """The pool takes no more jobs."""


class WorkerPool:
    """Runs jobs in threads; whoever submits waits while the queue is full."""

    def __init__(self, *, workers: int, capacity: int) -> None:
        self._queue: queue.Queue[Job | None] = queue.Queue(maxsize=capacity)
        self._failures: list[Exception] = []
        self._closed = False
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    @property
    def failures(self) -> list[Exception]:
        """What jobs have raised so far."""
        return list(self._failures)

    def submit(self, job: Job) -> None:
        """Puts a job in line, after waiting for room."""
        if self._closed:
            raise PoolClosed
        self._queue.put(job)

    def close(self, *, drain: bool = True) -> None:
        """Ends the threads, after the jobs that wait or without them."""
        if not self._closed:
            self._closed = True
            if not drain:
                while not self._queue.empty():
                    self._queue.get_nowait()
            for _ in self._threads:
                self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            try:
                job()
            except Exception as error:
                self._failures.append(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(drain=error is None)

"""What those who submit jobs to a pool of threads may rely on."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from workers import PoolClosed, WorkerPool

PATIENCE = 2.0
MOMENT = 0.02


class Background:
    """A call in a thread of its own, with its outcome."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self._call = call
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self.error = error

    def is_done(self, within: float = PATIENCE) -> bool:
        self._thread.join(within)
        return not self._thread.is_alive()


class Gate:
    """A job that has begun when it says so, and ends when it may."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.ended = False

    def __call__(self) -> None:
        self.begun.set()
        self.may_end.wait(PATIENCE)
        self.ended = True


def must_end(call: Callable[[], object]) -> None:
    """Calls it, and fails rather than hangs."""
    background = Background(call)
    assert background.is_done(), "it did not return"
    if background.error is not None:
        raise background.error


def full_pool() -> tuple[WorkerPool, Gate, list[str]]:
    """A pool whose one thread is busy and whose one place in line is taken."""
    pool, gate, ran = WorkerPool(workers=1, capacity=1), Gate(), list[str]()
    must_end(lambda: pool.submit(gate))
    assert gate.begun.wait(PATIENCE)
    must_end(lambda: pool.submit(lambda: ran.append("waiting")))
    return pool, gate, ran


def test_one_worker_runs_jobs_in_the_order_of_submission() -> None:
    pool = WorkerPool(workers=1, capacity=3)
    ran: list[int] = []
    must_end(lambda: [pool.submit(lambda n=n: ran.append(n)) for n in range(20)])
    must_end(pool.close)
    assert ran == list(range(20))


def test_as_many_jobs_run_at_once_as_there_are_workers() -> None:
    pool = WorkerPool(workers=3, capacity=1)
    gates = [Gate() for _ in range(3)]
    for gate in gates:
        must_end(lambda gate=gate: pool.submit(gate))
    assert all(gate.begun.wait(PATIENCE) for gate in gates)
    for gate in gates:
        gate.may_end.set()
    must_end(pool.close)


def test_submit_blocks_while_the_line_is_full() -> None:
    pool, gate, ran = full_pool()
    blocked = Background(lambda: pool.submit(lambda: ran.append("late")))
    assert not blocked.is_done(within=MOMENT)
    gate.may_end.set()
    assert blocked.is_done()
    must_end(pool.close)
    assert ran == ["waiting", "late"]


def test_a_failing_job_does_not_stop_its_worker() -> None:
    pool = WorkerPool(workers=1, capacity=9)
    errors: list[Exception] = [ValueError("first"), OSError("second")]
    ran: list[str] = []

    def fail(error: Exception) -> None:
        raise error

    pool.submit(lambda: fail(errors[0]))
    pool.submit(lambda: ran.append("between"))
    pool.submit(lambda: fail(errors[1]))
    must_end(pool.close)
    assert ran == ["between"]
    assert pool.failures == errors
    pool.failures.clear()
    assert pool.failures == errors


def test_closing_runs_what_waits() -> None:
    pool, gate, ran = full_pool()
    closing = Background(pool.close)
    assert not closing.is_done(within=MOMENT)
    gate.may_end.set()
    assert closing.is_done()
    assert gate.ended
    assert ran == ["waiting"]


def test_closing_without_draining_forgets_what_waits_but_not_what_runs() -> None:
    pool, gate, ran = full_pool()
    closing = Background(lambda: pool.close(drain=False))
    assert not closing.is_done(within=MOMENT)
    gate.may_end.set()
    assert closing.is_done()
    assert gate.ended
    assert ran == []


def test_a_closed_pool_has_no_threads_left_and_takes_no_jobs() -> None:
    before = set(threading.enumerate())
    pool = WorkerPool(workers=4, capacity=2)
    must_end(pool.close)
    must_end(pool.close)
    assert not [thread for thread in set(threading.enumerate()) - before if thread.is_alive()]
    with pytest.raises(PoolClosed):
        must_end(lambda: pool.submit(lambda: None))


@pytest.mark.parametrize("drain", [True, False])
def test_a_blocked_submit_is_refused_when_the_pool_closes(drain: bool) -> None:
    pool, gate, ran = full_pool()
    blocked = [Background(lambda: pool.submit(lambda: ran.append("never"))) for _ in range(2)]
    assert not any(each.is_done(within=MOMENT / 2) for each in blocked)

    closing = Background(lambda: pool.close(drain=drain))
    assert all(each.is_done(within=PATIENCE / 2) for each in blocked)
    assert [type(each.error) for each in blocked] == [PoolClosed, PoolClosed]
    assert not closing.is_done(within=0)

    gate.may_end.set()
    assert closing.is_done()
    assert ran == (["waiting"] if drain else [])


def test_every_one_of_several_closers_waits_for_the_threads() -> None:
    pool, gate, _ = full_pool()
    closers = [Background(pool.close) for _ in range(3)]
    assert not any(closer.is_done(within=MOMENT / 3) for closer in closers)
    gate.may_end.set()
    assert all(closer.is_done() for closer in closers)
    assert [closer.error for closer in closers] == [None] * 3


def test_leaving_the_block_runs_what_waits() -> None:
    ran: list[int] = []

    def block() -> None:
        with WorkerPool(workers=2, capacity=10) as pool:
            for n in range(10):
                pool.submit(lambda n=n: ran.append(n))

    must_end(block)
    assert sorted(ran) == list(range(10))


def test_an_exception_that_leaves_the_block_forgets_what_waits() -> None:
    pool, gate, ran = full_pool()

    def block() -> Any:
        with pool as entered:
            assert entered is pool
            raise LookupError("in the block")

    leaving = Background(block)
    assert not leaving.is_done(within=MOMENT)
    gate.may_end.set()
    assert leaving.is_done()
    assert isinstance(leaving.error, LookupError)
    assert ran == []

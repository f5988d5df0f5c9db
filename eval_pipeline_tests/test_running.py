"""Async work under a main thread that may be interrupted at any moment."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import pytest

from eval_pipeline.runtime import (
    Halted,
    graceful_interrupt,
    raise_if_interrupted,
    run_async,
    stop_controller,
)


class Interrupted(BaseException):
    """What a signal handler raises, like Dagster's; they are numbered."""


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """Interrupts the main thread from wherever it is called."""
    count = 0

    def raise_it(*_: object) -> None:
        nonlocal count
        count += 1
        raise Interrupted(count)

    before = signal.signal(signal.SIGUSR1, raise_it)
    yield lambda: os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110  (what is waited for happens in another thread)
        await asyncio.sleep(0.005)


def test_the_result_comes_back() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 42

    assert run_async(work()) == 42


def test_an_error_comes_back() -> None:
    async def work() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        run_async(work())


@pytest.mark.parametrize("gentle", [False, True])
def test_an_interruption_cancels_the_work_and_waits_for_its_clean_up(
    interrupt: Callable[[], None], *, gentle: bool
) -> None:
    log: list[str] = []

    async def work() -> None:
        try:
            threading.Timer(0.1, interrupt).start()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            log.append("cleaned up")

    with pytest.raises(Interrupted), graceful_interrupt() if gentle else nullcontext():
        run_async(work())

    assert log == ["cleaned up"]


class Errand:
    """Work that has something under way, which takes until it is told to be done."""

    def __init__(self, *, cleaning_s: float = 0.05) -> None:
        self.told: list[str] = []
        self._cleaning_s = cleaning_s
        self.asked_to_stop = threading.Event()
        self.arrived = threading.Event()

    async def run(self, begun: Callable[[], None]) -> None:
        try:
            with stop_controller().on_stop(self.asked_to_stop.set, lambda: 2):
                begun()
                await until(self.arrived.is_set)
                self.told.append("arrived")
        finally:
            await asyncio.sleep(self._cleaning_s)
            self.told.append("cleaned up")


def test_a_gentle_interruption_waits_for_what_is_under_way(
    interrupt: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    errand = Errand()

    def then_arrive() -> None:
        interrupt()
        errand.asked_to_stop.wait(10)
        threading.Timer(0.3, errand.arrived.set).start()

    with pytest.raises(Interrupted), graceful_interrupt():
        run_async(errand.run(threading.Thread(target=then_arrive).start))

    assert errand.told == ["arrived", "cleaned up"]
    assert caplog.messages == [
        "Stopping: 2 items are under way and waited for; Ctrl-C again stops at once."
    ]


def test_a_second_interruption_cancels_the_work(interrupt: Callable[[], None]) -> None:
    errand = Errand()

    def twice() -> None:
        interrupt()
        errand.asked_to_stop.wait(10)
        interrupt()

    with pytest.raises(Interrupted, match="2"), graceful_interrupt():
        run_async(errand.run(threading.Thread(target=twice).start))

    assert errand.told == ["cleaned up"]


def test_no_interruption_goes_unheard_in_whichever_moment_it_comes(
    interrupt: Callable[[], None],
) -> None:
    """Some come while the first one is dealt with, some just before the waiting goes on."""
    for moment in range(300):
        errand = Errand(cleaning_s=0)

        def twice(errand: Errand = errand, moment: int = moment) -> None:
            interrupt()
            errand.asked_to_stop.wait(10)
            for _ in range(moment % 60):
                pass
            interrupt()

        with pytest.raises(Interrupted), graceful_interrupt():
            run_async(errand.run(threading.Thread(target=twice).start))

        assert errand.told == ["cleaned up"]


def test_without_gentleness_what_is_under_way_is_not_waited_for(
    interrupt: Callable[[], None],
) -> None:
    errand = Errand()

    with pytest.raises(Interrupted):
        run_async(errand.run(threading.Thread(target=interrupt).start))

    assert errand.told == ["cleaned up"]
    assert not errand.asked_to_stop.is_set()


def test_impatience_does_not_keep_the_clean_up_from_its_end(interrupt: Callable[[], None]) -> None:
    log: list[str] = []

    async def work() -> None:
        try:
            interrupt()
            await asyncio.sleep(60)
        finally:
            interrupt()
            await asyncio.sleep(0.2)
            log.append("landed")

    with pytest.raises(Interrupted):
        run_async(work())

    assert log == ["landed"]


def test_what_begins_after_the_stop_is_stopped_at_once(interrupt: Callable[[], None]) -> None:
    told: list[bool] = []

    async def work() -> None:
        with stop_controller().on_stop(lambda: None):
            interrupt()
            await until(lambda: stop_controller().stopped)
        with stop_controller().on_stop(lambda: told.append(stop_controller().stopped)):
            pass

    with pytest.raises(Interrupted), graceful_interrupt():
        run_async(work())

    assert told == [True]


def test_a_fault_while_stopping_goes_to_the_log(
    interrupt: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    async def work(error: Exception) -> None:
        with stop_controller().on_stop(lambda: None):
            interrupt()
            await until(lambda: stop_controller().stopped)
            raise error

    with pytest.raises(Interrupted), graceful_interrupt():
        run_async(work(ValueError("wrong")))
    with pytest.raises(Interrupted), graceful_interrupt():
        run_async(work(Halted("as it was told")))

    assert "ValueError: wrong" in caplog.text
    assert "as it was told" not in caplog.text


def test_an_interruption_that_others_have_swallowed_is_raised_before_more_work_is_begun() -> None:
    begun: list[bool] = []

    async def work() -> None:
        begun.append(True)

    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with graceful_interrupt():
            run_async(work())
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                run_async(work())
            run_async(work())
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                raise_if_interrupted()
    finally:
        signal.signal(signal.SIGINT, before)

    assert begun == [True, True]


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Whatever a test does with them, the next one finds them as they were."""
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_to_be_told_to_end_interrupts_like_ctrl_c_and_only_within(number: signal.Signals) -> None:
    heard: list[int] = []
    signal.signal(number, lambda *_: heard.append(number))

    with graceful_interrupt():
        pass
    signal.raise_signal(number)
    with pytest.raises(KeyboardInterrupt), graceful_interrupt():
        signal.raise_signal(number)

    assert heard == [number]


@pytest.mark.usefixtures("own_signals")
def test_a_terminal_that_closes_interrupts_once_however_often_it_says_so() -> None:
    with graceful_interrupt():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGHUP)

    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.usefixtures("own_signals")
def test_work_that_is_to_outlive_its_terminal_does() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with graceful_interrupt():
        signal.raise_signal(signal.SIGHUP)
        raise_if_interrupted()


def test_work_that_nobody_runs_is_never_stopped() -> None:
    assert not stop_controller().stopped

"""Async work under a main thread that may be interrupted at any moment."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from eval_pipeline.running import run_async


class Interrupted(BaseException):
    """What a signal handler raises, like Dagster's."""


@pytest.fixture
def handler() -> Iterator[None]:
    def raise_it(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, raise_it)
    yield
    signal.signal(signal.SIGUSR1, before)


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


@pytest.mark.usefixtures("handler")
def test_an_interruption_cancels_the_work_and_waits_for_its_clean_up() -> None:
    log: list[str] = []

    async def work() -> None:
        try:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            log.append("cleaned up")

    with pytest.raises(Interrupted):
        run_async(work())

    assert log == ["cleaned up"]

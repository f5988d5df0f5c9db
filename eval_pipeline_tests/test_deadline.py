"""A time limit that many share: whoever is late gets a TimeoutError, and nobody else."""

import asyncio

import pytest

from eval_pipeline.gateways.client import Deadline


async def stay(deadline: Deadline, seconds: float) -> str:
    try:
        with deadline.limit():
            await asyncio.sleep(seconds)
    except TimeoutError:
        return "late"
    await asyncio.sleep(0)
    return "in time"


def test_who_is_late_is_cancelled_and_the_others_are_not() -> None:
    deadline = Deadline(0.2)

    async def work() -> list[str]:
        return await asyncio.gather(*(stay(deadline, seconds) for seconds in (9, 0, 0.02, 9, 0.1)))

    assert asyncio.run(work()) == ["late", "in time", "in time", "late", "in time"]


def test_each_has_the_whole_time_for_itself() -> None:
    deadline = Deadline(0.3)

    async def work() -> list[str]:
        early = asyncio.create_task(stay(deadline, 9))
        await asyncio.sleep(0.2)
        later = asyncio.create_task(stay(deadline, 0.2))
        return [await early, await later, await stay(deadline, 9)]

    assert asyncio.run(work()) == ["late", "in time", "late"]


def test_someone_elses_cancellation_stays_one() -> None:
    async def work() -> None:
        task = asyncio.create_task(stay(Deadline(60), 9))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())


def test_who_was_late_can_be_cancelled_again_and_go_on() -> None:
    deadline = Deadline(0.05)

    async def work() -> tuple[str, str]:
        async def twice() -> tuple[str, str]:
            return await stay(deadline, 9), await stay(deadline, 0)

        task = asyncio.create_task(twice())
        results = await task
        assert task.cancelling() == 0
        return results

    assert asyncio.run(work()) == ("late", "in time")


def test_an_error_of_its_own_is_passed_on() -> None:
    async def work() -> None:
        with pytest.raises(ValueError, match="mine"), Deadline(1).limit():
            raise ValueError("mine")

    asyncio.run(work())

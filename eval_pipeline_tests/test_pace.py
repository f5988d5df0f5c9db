"""How fast a model is asked: never more at once than allowed, paced, paused, and ended at once."""

import asyncio
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.gateways.limits import SharedRateLimit
from eval_pipeline.gateways.rate_limiter import Meters, RateLimiter, StopSignal
from eval_pipeline.runtime import Halted, run_async
from eval_pipeline.settings.gateway import RateLimits


class Crowd:
    """Requests that all want their turn, and how many had it at the same time."""

    def __init__(self, pace: RateLimiter) -> None:
        self.pace = pace
        self.halt = StopSignal()
        self.most_at_once = 0
        self.served = 0
        self.began = asyncio.Event()
        self._now = 0

    async def one(self, seconds: float = 0.001) -> None:
        await self.pace.enter(self.halt, tokens=1)
        try:
            self.began.set()
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            await asyncio.sleep(seconds)
            self.served += 1
        finally:
            self._now -= 1
            self.pace.leave()


def per_minute(requests: float | None) -> Meters:
    """Meters in a file of their own."""
    folder = Path(tempfile.mkdtemp())
    return Meters(RateLimits(requests_per_minute=requests), SharedRateLimit(folder, "one"))


def run(work: Coroutine[Any, Any, None]) -> None:
    """On the loop that the pipeline runs on, whose timers are not those of asyncio."""
    run_async(asyncio.wait_for(work, 20))


@pytest.mark.parametrize("most", [1, 7, 50])
def test_so_many_are_asked_at_once_and_never_more(most: int) -> None:
    crowd = Crowd(RateLimiter(most))

    async def work() -> None:
        await asyncio.gather(*(crowd.one() for _ in range(200)))

    run(work())

    assert (crowd.most_at_once, crowd.served) == (most, 200)


def test_after_a_burst_of_refusals_half_as_many_are_asked() -> None:
    pace = RateLimiter(40)
    for _ in range(40):
        pace.turned_away(started=time.monotonic() - 1, retry_after=None)
    crowd = Crowd(pace)

    async def work() -> None:
        await asyncio.gather(*(crowd.one() for _ in range(100)))

    run(work())

    assert crowd.most_at_once == 20


def test_when_most_are_refused_all_wait_as_long_as_the_server_says() -> None:
    pace, crowd = RateLimiter(10), Crowd(RateLimiter(10))
    crowd.pace = pace
    told = 0.3

    async def work() -> None:
        began = time.monotonic()
        for _ in range(10):
            pace.turned_away(started=began, retry_after=told)
        other = Crowd(RateLimiter(10))
        await other.one()
        assert (other.served, crowd.served) == (1, 0)
        await crowd.one(0)
        assert time.monotonic() - began >= told

    run(work())

    assert crowd.served == 1


@pytest.mark.parametrize("told", [0.011, 0.0257, 0.0419, 0.1003])
def test_however_long_the_wait_is_it_ends(told: float) -> None:
    async def one_pace() -> None:
        pace = RateLimiter(10)
        crowd = Crowd(pace)
        for _ in range(10):
            pace.turned_away(started=time.monotonic(), retry_after=told)
        await asyncio.gather(*(crowd.one(0) for _ in range(5)))

    async def work() -> None:
        await asyncio.gather(*(one_pace() for _ in range(50)))

    run(work())


def test_no_meter_is_exceeded_where_several_apply() -> None:
    shared = per_minute(60 * 40)
    slow = Crowd(RateLimiter(20, meters=[per_minute(60 * 5), shared]))
    quick = Crowd(RateLimiter(20, meters=[per_minute(None), shared]))
    starts: list[float] = []

    async def ask(crowd: Crowd) -> None:
        await crowd.one(0)
        starts.append(time.monotonic())

    async def work() -> None:
        await asyncio.gather(*(ask(crowd) for crowd in [slow] * 8 + [quick] * 60))

    run(work())

    first, last = min(starts), max(starts)
    assert len(starts) == 68
    for begin in (first, first + 0.3, first + 0.6):
        assert sum(begin <= start < begin + 0.5 for start in starts) <= 20 + 3
    assert last - first >= 7 / 5 - 0.1


def test_a_server_can_not_make_everybody_wait_for_a_day() -> None:
    pace = RateLimiter(10, longest_wait_s=60)
    crowd = Crowd(pace)

    async def work() -> None:
        for _ in range(10):
            pace.turned_away(started=time.monotonic(), retry_after=86_400)
        await crowd.one()

    run(work())

    assert crowd.served == 1


def test_meters_space_the_requests_out() -> None:
    crowd = Crowd(RateLimiter(100, meters=[per_minute(60 * 20)]))

    async def work() -> None:
        began = time.monotonic()
        await asyncio.gather(*(crowd.one(0) for _ in range(30)))
        assert time.monotonic() - began >= 29 / 20 - 0.1

    run(work())


def test_models_share_the_meter_of_their_gateway_fairly() -> None:
    shared = per_minute(60 * 40)
    crowds = [Crowd(RateLimiter(5, meters=[per_minute(None), shared])) for _ in range(4)]
    order: list[int] = []

    async def keep_asking(number: int) -> None:
        for _ in range(4):
            await crowds[number].one(0)
            order.append(number)

    async def work() -> None:
        # The first has many more who ask, but no more of them at once.
        await asyncio.gather(*(keep_asking(n) for n in [0] * 20 + [1, 2, 3] * 5))

    run(work())

    served = [order[:80].count(number) for number in range(4)]
    assert max(served) - min(served) <= 4


def test_a_halt_ends_all_waiting_and_lets_what_is_on_its_way_come_in() -> None:
    crowd = Crowd(RateLimiter(2, meters=[per_minute(1)]))
    ended = []

    async def one() -> None:
        try:
            await crowd.one(0.05)
        except Halted:
            ended.append("halted")

    async def resting() -> None:
        with pytest.raises(Halted):
            await crowd.halt.sleep(3600)
        ended.append("woken")

    async def work() -> None:
        tasks = [asyncio.create_task(one()) for _ in range(10)]
        tasks.append(asyncio.create_task(resting()))
        await crowd.began.wait()
        crowd.halt()
        await asyncio.gather(*tasks)
        with pytest.raises(Halted):
            await crowd.one()

    run(work())

    assert crowd.served == 1
    assert sorted(ended) == ["halted"] * 9 + ["woken"]


def test_those_who_gave_up_do_not_stand_in_the_way_of_others() -> None:
    pace = RateLimiter(1)
    crowd, other = Crowd(pace), Crowd(pace)

    async def work() -> None:
        await pace.enter(crowd.halt, tokens=1)
        waiting = [asyncio.create_task(crowd.one()) for _ in range(3)]
        await asyncio.sleep(0)
        crowd.halt()
        await asyncio.gather(*waiting, return_exceptions=True)
        later = asyncio.create_task(other.one())
        await asyncio.sleep(0)
        pace.leave()
        await later

    run(work())

    assert other.served == 1


def test_a_place_that_was_given_to_someone_who_was_cancelled_is_not_lost() -> None:
    crowd = Crowd(RateLimiter(1))

    async def work() -> None:
        first = asyncio.create_task(crowd.one(0.01))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(crowd.one(0)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await first
        waiting[1].cancel()
        await asyncio.wait(waiting)
        await crowd.one()

    run(work())

    assert crowd.served >= 3

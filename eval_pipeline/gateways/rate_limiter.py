"""The rate of requests to a model: limited at once and per minute, and lower after a 429."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from eval_pipeline.gateways.limits import Reservation, Share, SharedRateLimit, Window
from eval_pipeline.runtime import Halted
from eval_pipeline.settings.gateway import RateLimits

LONGEST_STEP_S = 0.25
# Another process writes to the file for a fraction of this.
BETWEEN_TRIES_S = (0.001, 0.005)


class StopSignal:
    """Ends all waiting of those who share it at once; requests under way go on."""

    def __init__(self) -> None:
        self.is_set = False
        self._waiting: set[asyncio.Future[None]] = set()

    def __call__(self) -> None:
        self.is_set = True
        for future in tuple(self._waiting):
            if not future.done():
                future.set_exception(Halted())

    def future(self) -> asyncio.Future[None]:
        """Return a future to wait for, which the signal ends."""
        if self.is_set:
            raise Halted
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)
        return future

    async def sleep(self, seconds: float) -> None:
        """Wait so long, or until the signal."""
        if seconds <= 0:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.future()


class Meters:
    """Limits of requests and tokens per minute, shared with other processes."""

    def __init__(self, limits: RateLimits, shared: SharedRateLimit) -> None:
        per_minute = {"requests": limits.requests_per_minute, "tokens": limits.tokens_per_minute}
        self._shares = {name: Share(limit) for name, limit in per_minute.items() if limit}
        self._shared = shared
        self.turn = asyncio.Lock()

    def __bool__(self) -> bool:
        return bool(self._shares)

    async def wait(self, stop: StopSignal, tokens: float) -> None:
        """Wait until a request that takes these tokens may be made."""
        if stop.is_set:
            raise Halted
        amounts, moment = {"requests": 1.0, "tokens": tokens}, time.monotonic()
        wanted = {
            name: share.wanted(amounts[name], moment)
            for name, share in self._shares.items()
            if not share.covers(amounts[name], moment)
        }
        await self._take(wanted, stop)
        shares = self._shares.values()
        while seconds := max((share.ready_in(time.monotonic()) for share in shares), default=0.0):
            # In short steps: what was expected is corrected meanwhile.
            await stop.sleep(min(seconds, LONGEST_STEP_S))

    def use(self, tokens: float) -> None:
        """Note that a request is made."""
        amounts, moment = {"requests": 1.0, "tokens": tokens}, time.monotonic()
        for name, share in self._shares.items():
            share.use(amounts[name], moment)

    def correct(self, tokens: float) -> None:
        """Note that it took these more tokens than were expected."""
        if share := self._shares.get("tokens"):
            share.correct(tokens)

    async def settle(self) -> None:
        """Share what was corrected since the last reservation with other processes."""
        debts = {name: debt for name, share in self._shares.items() if (debt := share.debt())}
        await self._take(debts, StopSignal())

    async def _take(self, wanted: dict[str, Reservation], stop: StopSignal) -> None:
        if not wanted:
            return
        # In a thread, because a disk may be slow.
        while (waits := await asyncio.to_thread(self._shared.take, wanted)) is None:
            await stop.sleep(random.uniform(*BETWEEN_TRIES_S))  # noqa: S311
        moment = time.monotonic()
        for name, seconds in waits.items():
            self._shares[name].given(wanted[name], moment + seconds)


class RateLimiter:
    """The one place through which every request to a model goes.

    Of its meters, the first are its own: who waits for those must not keep others from what is
    shared.
    """

    def __init__(
        self,
        most: int,
        *,
        meters: Sequence[Meters] = (),
        longest_wait_s: float = float("inf"),
    ) -> None:
        self.window = Window(most)
        self._longest_wait_s = longest_wait_s
        self._meters = [one for one in meters if one]
        self._running = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._closed_until = 0.0

    async def enter(self, stop: StopSignal, *, tokens: float) -> None:
        """Wait for a place among those at work, then for the meters; `leave` gives it back."""
        if not self._is_open or self._queue:
            await self._wait_for_a_place(stop)
        else:
            self._running += 1
        if not self._meters and not stop.is_set:
            return
        try:
            await self._wait_for_meters(stop, tokens)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Give the place back when the request is done, whatever came of it."""
        self._running -= 1
        self._let_in()

    def answered(self, started: float, *, tokens_off: float) -> None:
        """Note a reply, and by how many tokens it was off the estimate."""
        self.window.answered(started)
        for meters in self._meters:
            meters.correct(tokens_off)

    def turned_away(self, started: float, retry_after: float | None) -> None:
        """Note a 429; when the server turns most requests away, all wait as long as it says."""
        moment = time.monotonic()
        burst = self.window.turned_away(started, moment)
        if burst and retry_after is not None and retry_after <= self._longest_wait_s:
            self._closed_until = max(self._closed_until, moment + retry_after)
            self._reopen()

    def _reopen(self) -> None:
        """Let requests in when the time has come; a timer may ring a little too early."""
        if (left := self._closed_until - time.monotonic()) > 0:
            asyncio.get_running_loop().call_later(left, self._reopen)
        else:
            self._let_in()

    @property
    def is_metered(self) -> bool:
        """Return whether it matters how many tokens a request will take."""
        return bool(self._meters)

    @property
    def _is_open(self) -> bool:
        if self._running >= self.window.width:
            return False
        return not self._closed_until or time.monotonic() >= self._closed_until

    async def _wait_for_a_place(self, stop: StopSignal) -> None:
        future = stop.future()
        self._queue.append(future)
        self._let_in()  # before it there may be only those who have given up
        try:
            await future
        except BaseException:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.leave()  # the place was given to someone who has just left
            raise

    def _let_in(self) -> None:
        while self._queue and self._is_open:
            future = self._queue.popleft()
            if not future.done():
                self._running += 1
                future.set_result(None)

    async def _wait_for_meters(self, stop: StopSignal, tokens: float) -> None:
        """Wait one request after the other, so that a model has one turn among those who share."""
        if stop.is_set:
            raise Halted
        async with AsyncExitStack() as turns:
            for meters in self._meters:
                await turns.enter_async_context(meters.turn)
                await meters.wait(stop, tokens)
            for meters in self._meters:
                meters.use(tokens)

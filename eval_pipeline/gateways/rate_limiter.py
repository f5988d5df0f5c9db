"""How fast one model is asked: so many at once, so much per minute, and less when it says so."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from eval_pipeline.gateways.limits import Ledger, Share, Wanted, Window
from eval_pipeline.runtime import Halted

LONGEST_STEP_S = 0.25
BETWEEN_TRIES_S = (0.001, 0.005)
"""Somebody else writes to the ledger for a fraction of this."""


class Halt:
    """Ends all waiting of those who share it, at once; what is on its way comes in."""

    def __init__(self) -> None:
        self.halted = False
        self._waiting: set[asyncio.Future[None]] = set()

    def __call__(self) -> None:
        self.halted = True
        for future in tuple(self._waiting):
            if not future.done():
                future.set_exception(Halted())

    def future(self) -> asyncio.Future[None]:
        """Something to wait for, which the halt ends."""
        if self.halted:
            raise Halted
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)
        return future

    async def sleep(self, seconds: float) -> None:
        """Waits so long, or until the halt."""
        if seconds <= 0:
            return
        future = self.future()
        timer = asyncio.get_running_loop().call_later(seconds, _finish, future)
        try:
            await future
        finally:
            timer.cancel()


class Meters:
    """So many requests and tokens per minute, of all who share the ledger; here they take turns."""

    def __init__(
        self,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        limits = {"requests": requests_per_minute, "tokens": tokens_per_minute}
        self._shares = {name: Share(limit) for name, limit in limits.items() if limit}
        self._ledger = ledger or Ledger()
        self.turn = asyncio.Lock()

    def __bool__(self) -> bool:
        return bool(self._shares)

    async def wait(self, halt: Halt, tokens: float) -> None:
        """Until a request of so many tokens may be made."""
        if halt.halted:
            raise Halted
        amounts, moment = _amounts(tokens), time.monotonic()
        await self._take(
            {
                name: share.wanted(amounts[name], moment)
                for name, share in self._shares.items()
                if not share.covers(amounts[name], moment)
            },
            halt,
        )
        while (seconds := self._ready_in(time.monotonic())) > 0:
            # In short steps: what was expected is corrected meanwhile.
            await halt.sleep(min(seconds, LONGEST_STEP_S))

    def use(self, tokens: float) -> None:
        """A request is made."""
        amounts, moment = _amounts(tokens), time.monotonic()
        for name, share in self._shares.items():
            share.use(amounts[name], moment)

    def correct(self, tokens: float) -> None:
        """It took so many more tokens than were expected."""
        if share := self._shares.get("tokens"):
            share.correct(tokens)

    async def settle(self) -> None:
        """Has all others know of what was corrected since something was taken last."""
        debts = {name: debt for name, share in self._shares.items() if (debt := share.debt())}
        with suppress(Halted):
            await self._take(debts, Halt())

    async def _take(self, wanted: dict[str, Wanted], halt: Halt) -> None:
        if not wanted:
            return
        while (waits := await self._taken(wanted)) is None:
            await halt.sleep(random.uniform(*BETWEEN_TRIES_S))  # noqa: S311
        moment = time.monotonic()
        for name, seconds in waits.items():
            self._shares[name].given(wanted[name], moment + seconds)

    async def _taken(self, wanted: dict[str, Wanted]) -> dict[str, float] | None:
        if self._ledger.path is None:
            return self._ledger.take(wanted)
        return await asyncio.to_thread(self._ledger.take, wanted)  # a disk may be slow

    def _ready_in(self, moment: float) -> float:
        return max((share.ready_in(moment) for share in self._shares.values()), default=0.0)


class Pace:
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
        self._meters = meters if any(meters) else ()
        self._running = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._closed_until = 0.0

    async def enter(self, halt: Halt, *, tokens: float) -> None:
        """Waits for a place among those at work, then for the meters; `leave` gives it back."""
        if not self._is_open or self._queue:
            await self._wait_for_a_place(halt)
        else:
            self._running += 1
        if not self._meters and not halt.halted:
            return
        try:
            await self._wait_for_meters(halt, tokens)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """The request is done, whatever came of it."""
        self._running -= 1
        self._let_in()

    def answered(self, started: float, *, tokens_off: float) -> None:
        """A reply came; it took so many more tokens than were expected."""
        self.window.answered(started)
        for meters in self._meters:
            meters.correct(tokens_off)

    def turned_away(self, started: float, retry_after: float | None) -> None:
        """The server asks for fewer; when it turns most away, all wait as long as it says."""
        moment = time.monotonic()
        burst = self.window.turned_away(started, moment)
        if burst and retry_after is not None and retry_after <= self._longest_wait_s:
            self._closed_until = max(self._closed_until, moment + retry_after)
            self._reopen()

    def _reopen(self) -> None:
        """Lets in when the time has come; a timer may ring a little too early."""
        if (left := self._closed_until - time.monotonic()) > 0:
            asyncio.get_running_loop().call_later(left, self._reopen)
        else:
            self._let_in()

    @property
    def is_metered(self) -> bool:
        """Whether it matters how many tokens a request will take."""
        return bool(self._meters)

    @property
    def _is_open(self) -> bool:
        if self._running >= self.window.width:
            return False
        return not self._closed_until or time.monotonic() >= self._closed_until

    async def _wait_for_a_place(self, halt: Halt) -> None:
        future = halt.future()
        self._queue.append(future)
        self._let_in()  # before it there may be only those who have given up
        try:
            await future
        except BaseException:
            if _is_fulfilled(future):  # the place was given to someone who has just left
                self.leave()
            raise

    def _let_in(self) -> None:
        while self._queue and self._is_open:
            future = self._queue.popleft()
            if not future.done():
                self._running += 1
                future.set_result(None)

    async def _wait_for_meters(self, halt: Halt, tokens: float) -> None:
        """One request after the other, so that a model has one turn among those who share."""
        if halt.halted:
            raise Halted
        if not self._meters:
            return
        async with AsyncExitStack() as turns:
            for meters in self._meters:
                await turns.enter_async_context(meters.turn)
                await meters.wait(halt, tokens)
            for meters in self._meters:
                meters.use(tokens)


def _amounts(tokens: float) -> dict[str, float]:
    return {"requests": 1.0, "tokens": tokens}


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _is_fulfilled(future: asyncio.Future[None]) -> bool:
    with suppress(asyncio.CancelledError):
        return future.done() and future.exception() is None
    return False

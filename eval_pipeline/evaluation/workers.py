"""Workers over what is pending for one model, counting what came of it and what it cost."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.budget import Account
from eval_pipeline.gateways.rate_limiter import StopSignal
from eval_pipeline.journal import Journal, JournalError, JournalWriter, Stream
from eval_pipeline.logs import FACTS, about, in_words
from eval_pipeline.records.diagnosis import Diagnosis
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import NOTHING_USED, Judgement, Prediction, Usage
from eval_pipeline.runtime import Halted, in_a_thread, stop_controller
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.suites.coding.sandbox.base import SandboxError
from eval_pipeline.suites.coding.toolchains.base import ToolchainError

log = logging.getLogger(__name__)
T = TypeVar("T")
L = TypeVar("L", Prediction, Judgement, Diagnosis)
PROGRESS_EVERY_S = 10.0
BETWEEN_HIRES_S = 0.0005
"""About the time that a request takes of our own: then the next one is ready when it is done."""
MOST_WAITING = 10
"""How many times as many items as workers may wait to be asked again."""
INTERRUPTED = "interrupted"


class WorkedOn(NamedTuple):
    """A run that something was done for, or that was named and needed nothing."""

    run_id: str
    model: str


@dataclass
class Tally:
    """What a stage did for one model: counted as it happens, reported at the end."""

    model: str
    verb: str
    runs: list[WorkedOn] = field(default_factory=list)
    planned: int = 0
    estimated_usd: float | None = None
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    trouble: str | None = None
    stopped: str | None = None
    failed: bool = False
    budget_reached: bool = False
    warnings: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    @property
    def asked(self) -> int:
        return self.outcomes.total()

    def count(self, outcome: Outcome, usage: Usage) -> None:
        self.outcomes[outcome] += 1
        self.input_tokens += usage.input_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        self.cost_usd += usage.cost_usd or 0.0

    @property
    def estimate(self) -> str:
        """What it was to cost, in words."""
        usd = self.estimated_usd
        return "at an unknown cost" if usd is None else f"about {usd:.2f} USD"

    def line(self) -> str:
        """The tally in a sentence."""
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        done = f"{self.model}: {self.asked} of {self.planned} {self.verb} ({outcomes or 'none'})"
        said = self.stopped or (self.trouble and f"for example {self.trouble}")
        return f"{done}, {self.cost_usd:.4f} USD" + (f"; {said}" if said else "")

    def progress(self) -> dict[str, str | int | float]:
        """Where it stands, for logs and for the UI."""
        rate = self.asked / max(time.monotonic() - self.started, 1e-3)
        left = (self.planned - self.asked) / rate if rate else float("inf")
        return {
            "model": self.model,
            "done": self.asked,
            "planned": self.planned,
            "per_s": round(rate, 1),
            "eta_s": round(left) if left != float("inf") else -1,
            "cost_usd": round(self.cost_usd, 4),
            **{str(outcome): count for outcome, count in self.outcomes.most_common()},
        }

    def stop(self, reason: str, *, failed: bool) -> None:
        """No further request is made; the first reason is the one that is told."""
        self.stopped = self.stopped or reason
        self.failed = self.failed or failed


async def compact(journal: Journal, stream: Stream[L], model: str, run_id: str) -> None:
    """Makes the files of finished work small; where that fails, they are as good as before."""
    if stop_controller().stopped:  # somebody waits for the end, and it can be done next time
        return
    try:
        await in_a_thread(journal.compact, stream, model, run_id)
    except JournalError as error:
        log.warning("The journal was not compacted: %s", error)


@contextmanager
def stopped_by_trouble(*tallies: Tally) -> Iterator[None]:
    """What a user can mend ends the work on this model only, and is told in its tallies."""
    try:
        yield
    except (SettingsError, RunError, JournalError, SandboxError, ToolchainError) as error:
        for tally in tallies:
            tally.stop(str(error), failed=True)
    except Halted as halted:
        for tally in tallies:
            tally.stop(str(halted), failed=False)


@asynccontextmanager
async def unless_stopped() -> AsyncIterator[None]:
    """What is waited for in it is given up when the work is to stop, and not begun after that."""
    if stop_controller().stopped:
        raise Halted(INTERRUPTED)
    loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)
    try:
        async with limit:
            with stop_controller().on_stop(lambda: limit.reschedule(loop.time())):
                yield
    except TimeoutError:
        if limit.expired():
            raise Halted(INTERRUPTED) from None
        raise


@asynccontextmanager
async def holding(*needed: AbstractAsyncContextManager[Any]) -> AsyncIterator[None]:
    """Waits for each of them in this order, unless the work is to stop, and keeps them."""
    async with AsyncExitStack() as held:
        async with unless_stopped():
            for one in needed:
                await held.enter_async_context(one)
        yield


class Shift:
    """The workers on one model's items: as many as may ask at once, and more while some wait."""

    def __init__(
        self,
        tally: Tally,
        account: Account,
        *,
        num_workers: int,
        stop_after_failures: int,
        answered_before: bool = False,
    ) -> None:
        self.tally = tally
        self.account = account
        self.halt = StopSignal()
        self._num_workers = num_workers
        self._stop_after_failures = stop_after_failures
        self._failures_in_a_row = 0
        self._answered_before = answered_before
        self._hire: Callable[[], None] = lambda: None
        self._hired = self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    def stop(self, reason: str, *, failed: bool) -> None:
        """Nothing new is asked and nothing waited for; what is on its way still lands."""
        self.tally.stop(reason, failed=failed)
        self.halt()

    def stop_for_budget(self, reason: str) -> None:
        """As above, and it is told apart from trouble."""
        self.tally.budget_reached = True
        self.stop(reason, failed=False)

    async def work_through(self, pending: Iterable[T], do: Callable[[T], Awaitable[None]]) -> None:
        """Workers pull from one iterator, so memory does not grow with what is pending."""
        if not self.tally.asked:
            self.tally.started = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(PROGRESS_EVERY_S, self._tell)
        interrupt = partial(self.stop, INTERRUPTED, failed=False)
        try:
            with stop_controller().on_stop(interrupt, lambda: self._hired):
                await self._employ(iter(pending), do)
        except* JournalError as errors:
            self.stop(str(errors.exceptions[0]), failed=True)
        finally:
            self._timer.cancel()

    async def _employ(self, queue: Iterator[T], do: Callable[[T], Awaitable[None]]) -> None:
        async with asyncio.TaskGroup() as group:

            def hire() -> None:
                self._hired += 1
                group.create_task(self._work(queue, do))

            self._hire = hire
            await self._hire_all(min(self._num_workers, self.tally.planned))

    async def _hire_all(self, count: int) -> None:
        """One after the other: those who begin at once would wait for each other ever after."""
        began, hired = time.monotonic(), 0
        while hired < count and not self.halt.is_set:
            due = 1 + int((time.monotonic() - began) / BETWEEN_HIRES_S)
            while hired < min(due, count):
                self._hire()
                hired += 1
            await asyncio.sleep(BETWEEN_HIRES_S)

    async def rest(self, seconds: float) -> None:
        """Waits until an item may be asked again; somebody else takes the place meanwhile."""
        self._waiting += 1
        if self._hired < MOST_WAITING * self._num_workers:
            self._hire()
        try:
            await self.halt.sleep(seconds)
        finally:
            self._waiting -= 1

    async def land(self, record: L, writer: JournalWriter[L]) -> None:
        """Hands it to the journal and goes on; it counts once it is on disk."""
        self.heed(record.outcome, record.trouble)
        await writer.post(lambda: record, self.landed)

    def landed(self, record: Prediction | Judgement | Diagnosis | None) -> None:
        """It is on disk, so it counts; None if it could not be made."""
        if record is None:
            self.tally.count(Outcome.INTERNAL_ERROR, NOTHING_USED)
            self._fail("our own fault, which the log tells")
        else:
            self.tally.count(record.outcome, record.usage)

    async def _work(self, queue: Iterator[T], do: Callable[[T], Awaitable[None]]) -> None:
        try:
            for one in queue:
                if self.halt.is_set:
                    return
                await self._attempt(do, one)
                if self._hired - self._waiting > self._num_workers:
                    return  # those who waited are back
        finally:
            self._hired -= 1

    async def _attempt(self, do: Callable[[T], Awaitable[None]], one: T) -> None:
        """Our own fault with one item must not cost the others; it stays pending."""
        try:
            await do(one)
        except JournalError:
            raise
        except Halted:
            return
        except Exception:
            log.exception("%s: an item could not be %s.", self.tally.model, self.tally.verb)
            self.landed(None)

    def heed(self, outcome: Outcome, trouble: str) -> None:
        """Stops where no other request can do better."""
        if outcome is Outcome.OK:
            self._answered_before, self._failures_in_a_row = True, 0
            return
        self.tally.trouble = trouble
        if outcome.is_hopeless(answered_before=self._answered_before):
            self.stop(trouble, failed=True)
        if outcome.is_result:
            self._answered_before, self._failures_in_a_row = True, 0
            return
        self._fail(trouble)

    def _fail(self, trouble: str) -> None:
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._stop_after_failures:
            failures = f"{self._failures_in_a_row} items in a row had no answer"
            self.stop(f"{failures}; the last: {trouble}", failed=True)

    def _tell(self) -> None:
        """One log line every few seconds, also and above all while nothing comes."""
        under_way, waiting = self._hired - self._waiting, self._waiting
        facts = self.tally.progress() | {"under_way": under_way, "to_ask_again": waiting}
        if self.tally.trouble is not None:
            facts["last_trouble"] = repr(self.tally.trouble)
        log.info("progress %s", in_words(facts), extra={FACTS: facts})
        self._timer = asyncio.get_running_loop().call_later(PROGRESS_EVERY_S, self._tell)


log = logging.getLogger(__name__)


def tell(tally: Tally, level: int = logging.INFO) -> None:
    """Tells it, and of which run if there was only one."""
    runs = {one.run_id for one in tally.runs}
    known = {"run_id": runs.pop()} if len(runs) == 1 else {}
    with about(**known):
        log.log(level, tally.line(), extra={FACTS: tally.progress()})

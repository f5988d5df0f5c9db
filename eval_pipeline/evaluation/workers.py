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
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.budget import RunBudget
from eval_pipeline.gateways.rate_limiter import StopSignal
from eval_pipeline.journal import Journal, JournalError, JournalWriter, Stream
from eval_pipeline.logs import FACTS, about, in_words
from eval_pipeline.records.diagnosis import Diagnosis
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import NOTHING_USED, Judgement, Prediction, Repeat, Usage
from eval_pipeline.runtime import Halted, in_a_thread, stop_controller
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.suites.coding.sandbox.base import SandboxError
from eval_pipeline.suites.coding.toolchains.base import ToolchainError

log = logging.getLogger(__name__)
T = TypeVar("T")
L = TypeVar("L", Prediction, Judgement, Repeat, Diagnosis)
PROGRESS_EVERY_S = 10.0
BETWEEN_SPAWNS_S = 0.0005
"""About the time that a request takes of our own: then the next one is ready when it is done."""
MOST_WAITING = 10
"""How many times as many items as workers may wait to be retried."""
INTERRUPTED = "interrupted"


class WorkedOn(NamedTuple):
    """A run that something was done for, or that was named and needed nothing."""

    run_id: str
    model: str


@dataclass
class StageProgress:
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

    def line(self) -> str:
        """Return the progress in a sentence."""
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        done = f"{self.model}: {self.asked} of {self.planned} {self.verb} ({outcomes or 'none'})"
        said = self.stopped or (self.trouble and f"for example {self.trouble}")
        return f"{done}, {self.cost_usd:.4f} USD" + (f"; {said}" if said else "")

    def progress(self) -> dict[str, str | int | float]:
        """Return counts, rate and cost, for logs and for the UI."""
        rate = self.asked / max(time.monotonic() - self.started, 1e-3)
        return {
            "model": self.model,
            "done": self.asked,
            "planned": self.planned,
            "per_s": round(rate, 1),
            "eta_s": round((self.planned - self.asked) / rate) if rate else -1,
            "cost_usd": round(self.cost_usd, 4),
            **{str(outcome): count for outcome, count in self.outcomes.most_common()},
        }

    def stop(self, reason: str, *, failed: bool) -> None:
        """Note that no further request is made; the first reason is the one that is shown."""
        self.stopped = self.stopped or reason
        self.failed = self.failed or failed

    def warn(self, warning: str) -> None:
        """Log the warning and keep it for the summary, once."""
        if warning not in self.warnings:
            log.warning(warning)
            self.warnings.append(warning)


def in_usd(usd: float | None) -> str:
    """Return an expected cost in words."""
    return "at an unknown cost" if usd is None else f"about {usd:.2f} USD"


def log_summary(tally: StageProgress, level: int = logging.INFO) -> None:
    """Log what was done, and of which run if there was only one."""
    runs = {one.run_id for one in tally.runs}
    known = {"run_id": runs.pop()} if len(runs) == 1 else {}
    with about(**known):
        log.log(level, tally.line(), extra={FACTS: tally.progress()})


async def compact(journal: Journal, stream: Stream[L], model: str, run_id: str) -> None:
    """Compact the files of finished work; where that fails, they are as good as before."""
    if stop_controller().stopped:  # somebody waits for the end, and it can be done next time
        return
    try:
        await in_a_thread(journal.compact, stream, model, run_id)
    except JournalError as error:
        log.warning("The journal was not compacted: %s", error)


@contextmanager
def stopped_by_trouble(*tallies: StageProgress) -> Iterator[None]:
    """End the work on this model only, where a user can fix the trouble, and note it."""
    try:
        yield
    except (SettingsError, RunError, JournalError, SandboxError, ToolchainError, Halted) as error:
        for tally in tallies:
            tally.stop(str(error), failed=not isinstance(error, Halted))


@asynccontextmanager
async def unless_stopped() -> AsyncIterator[None]:
    """Give up waiting within the block when the work is to stop, and do not begin it after that."""
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
    """Wait for each of them in this order, unless the work is to stop, and keep them."""
    async with AsyncExitStack() as held:
        async with unless_stopped():
            for one in needed:
                await held.enter_async_context(one)
        yield


@dataclass(eq=False)
class WorkerPool:
    """The workers on one model's items: as many as may ask at once, and more while some wait."""

    tally: StageProgress
    budget: RunBudget
    _: KW_ONLY
    num_workers: int
    stop_after_failures: int
    answered_before: bool = False
    # Several pools on one tally would log the same of it.
    quiet: bool = False

    def __post_init__(self) -> None:
        self.halt = StopSignal()
        self._failures_in_a_row = 0
        self._spawn: Callable[[], object] = lambda: None
        self._workers = self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    def stop(self, reason: str, *, failed: bool) -> None:
        """Ask nothing new and wait for nothing; what is on its way is still recorded."""
        self.tally.stop(reason, failed=failed)
        self.halt()

    async def work_through(self, pending: Iterable[T], do: Callable[[T], Awaitable[None]]) -> None:
        """Let workers pull from one iterator, so memory does not grow with what is pending."""
        if not self.tally.asked:
            self.tally.started = time.monotonic()
        if not self.quiet:
            self._log_later()
        interrupt, queue = partial(self.stop, INTERRUPTED, failed=False), iter(pending)
        try:
            with stop_controller().on_stop(interrupt, lambda: self._workers):
                async with asyncio.TaskGroup() as group:
                    self._spawn = lambda: group.create_task(self._work(queue, do))
                    await self._spawn_all(min(self.num_workers, self.tally.planned))
        except* JournalError as errors:
            self.stop(str(errors.exceptions[0]), failed=True)
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def _spawn_all(self, count: int) -> None:
        """Begin one after the other: workers that begin at once would wait for each other."""
        began, spawned = time.monotonic(), 0
        while spawned < count and not self.halt.is_set:
            due = 1 + int((time.monotonic() - began) / BETWEEN_SPAWNS_S)
            for _ in range(spawned, min(due, count)):
                self._add_worker()
                spawned += 1
            await asyncio.sleep(BETWEEN_SPAWNS_S)

    def _add_worker(self) -> None:
        self._workers += 1
        self._spawn()

    async def sleep_before_retry(self, seconds: float) -> None:
        """Sleep before a retry, letting another worker use the slot."""
        self._waiting += 1
        if self._workers < MOST_WAITING * self.num_workers:
            self._add_worker()
        try:
            await self.halt.sleep(seconds)
        finally:
            self._waiting -= 1

    async def record(self, record: L, writer: JournalWriter[L]) -> None:
        """Hand it to the journal and go on; it counts once it is on disk."""
        self.register_outcome(record.outcome, record.trouble)
        await writer.post(lambda: record, self.landed)

    def landed(self, record: Prediction | Judgement | Diagnosis | None) -> None:
        """Count what is on disk; None if it could not be made."""
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
                if self._workers - self._waiting > self.num_workers:
                    return  # those who waited are back
        finally:
            self._workers -= 1

    async def _attempt(self, do: Callable[[T], Awaitable[None]], one: T) -> None:
        """Do it; our own fault with one item must not cost the others, and it stays pending."""
        try:
            await do(one)
        except JournalError:
            raise
        except Halted:
            return
        except Exception:
            log.exception("%s: an item could not be %s.", self.tally.model, self.tally.verb)
            self.landed(None)

    def register_outcome(self, outcome: Outcome, trouble: str) -> None:
        """Stop where no other request can do better."""
        if outcome is not Outcome.OK:
            self.tally.trouble = trouble
            if outcome.is_hopeless(answered_before=self.answered_before):
                self.stop(trouble, failed=True)
        if outcome.is_result:
            self.answered_before, self._failures_in_a_row = True, 0
        else:
            self._fail(trouble)

    def _fail(self, trouble: str) -> None:
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self.stop_after_failures:
            failures = f"{self._failures_in_a_row} items in a row had no answer"
            self.stop(f"{failures}; the last: {trouble}", failed=True)

    def _log_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(PROGRESS_EVERY_S, self._log_progress)

    def _log_progress(self) -> None:
        """Log one line every few seconds, also and above all while nothing comes."""
        under_way, waiting = self._workers - self._waiting, self._waiting
        facts = self.tally.progress() | {"under_way": under_way, "to_ask_again": waiting}
        if self.tally.trouble is not None:
            facts["last_trouble"] = repr(self.tally.trouble)
        log.info("progress %s", in_words(facts), extra={FACTS: facts})
        self._log_later()

"""Asking models what is pending in their runs."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from eval_pipeline.errors import NothingFailedError
from eval_pipeline.evaluation.budget import SpendTracker
from eval_pipeline.evaluation.estimate import estimate_answers
from eval_pipeline.evaluation.requests import ModelClient, RequestBuilder, model_client
from eval_pipeline.evaluation.reuse import Versions, reuse_answers
from eval_pipeline.evaluation.runs import (
    OpenRun,
    failed_in_latest,
    new_run,
    open_run,
    refuse_without_text,
)
from eval_pipeline.evaluation.state import Pending, ReplyKey
from eval_pipeline.evaluation.workers import (
    StageProgress,
    WorkedOn,
    WorkerPool,
    compact,
    holding,
    in_usd,
    log_summary,
    stopped_by_trouble,
)
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.journal import ATTEMPTS, PREDICTIONS, Journal, JournalError
from eval_pipeline.logs import about
from eval_pipeline.records.base import now
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.run import Attempt, Mode
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import Benchmark

log = logging.getLogger(__name__)
SlotOf = Callable[[Model], AbstractAsyncContextManager[None]]
"""Where a model waits until it may be asked beside those that other processes ask."""


@dataclass(frozen=True)
class Launch:
    """The Dagster run that a stage was started under, and what it does with earlier work."""

    run_id: str
    mode: Mode = Mode.AUTO
    continue_run: str | None = None
    retry_of: str | None = None
    only_failed: bool = False
    # For each of these models another one to continue.
    continue_runs: Mapping[str, str] = field(default_factory=dict)

    def run_for(self, model: str) -> str | None:
        """Return the run of the model that is to be continued, if one is named."""
        return self.continue_runs.get(model, self.continue_run)

    @property
    def names_runs(self) -> bool:
        """Whether it says which runs are to be continued."""
        return self.continue_run is not None or bool(self.continue_runs)

    @property
    def origin(self) -> str:
        """The launch that this one retries, or itself."""
        return self.retry_of or self.run_id

    def for_failed(self) -> "Launch":
        """Return the same for what failed in the latest run: it is asked anew."""
        return replace(self, mode=Mode.FRESH, only_failed=True)

    @property
    def repairs(self) -> bool:
        """Whether it mends an earlier run, where there is one, instead of evaluating anew."""
        return self.mode in (Mode.RESUME, Mode.FIX) or self.names_runs


async def predict(
    models: Sequence[Model],
    benchmark: Benchmark,
    launch: Launch,
    *,
    settings: Settings,
    journal: Journal,
    board: list[StageProgress] | None = None,
    places: SlotOf = lambda _: nullcontext(),
) -> list[StageProgress]:
    """Ask every model what is pending in its run; `board` shows how far each of them is."""
    slots = asyncio.Semaphore(settings.concurrency.max_concurrent_models)
    async with Gateways(settings, benchmark.items.values()) as gateways:
        spend = SpendTracker(settings.budget, journal)
        stage = _Predict(benchmark, launch, settings, journal, gateways, spend)

        async def one(model: Model, tally: StageProgress) -> None:
            # A model that another process is at work on takes no slot. The slot of all processes
            # comes last: taken in the same order, they cannot deadlock.
            with about(model=model.id), stopped_by_trouble(tally):
                async with holding(journal.claim(PREDICTIONS, model.id), slots, places(model)):
                    await stage.run(model, tally)

        tallies = [StageProgress(model.id, "asked") for model in models]
        if board is not None:
            board.extend(tallies)
        async with asyncio.TaskGroup() as group:
            for model, tally in zip(models, tallies, strict=True):
                group.create_task(one(model, tally))
        return tallies


@dataclass(frozen=True)
class _Predict:
    benchmark: Benchmark
    launch: Launch
    settings: Settings
    journal: Journal
    gateways: Gateways
    spend: SpendTracker

    async def run(self, model: Model, tally: StageProgress) -> None:
        if self.settings.experiments[self.settings.experiment].web_search and not model.web_search:
            tally.stop(f"{model.id} is not asked: its gateway lists no web search.", failed=False)
            log.info(tally.stopped)
            return
        with stopped_by_trouble(tally):
            # First of all: what fails from here on has been tried, and is not due at once again.
            await in_a_thread(partial(self._note_attempt, model, repair=self.launch.repairs))
            most = self.settings.concurrency.num_workers
            client = model_client(model, self.settings, self.gateways, most)
            builder = RequestBuilder.of(model, self.settings)
            try:
                shared = (self.benchmark, self.launch, self.settings, self.journal)
                opened = await asyncio.to_thread(open_wanted, builder, *shared)
            except NothingFailedError as nothing:
                log.info(nothing)
                return
            tally.runs.append(WorkedOn(opened.run.run_id, model.id))
            if self.launch.repairs and opened.run.run_id == self.launch.run_id:
                # There was nothing to mend, so it is an evaluation after all.
                await in_a_thread(partial(self._note_attempt, model, repair=False))
            with about(run_id=opened.run.run_id):
                await self._ask_pending(client, builder, opened, tally)
        if tally.planned or tally.failed:
            log_summary(tally, logging.WARNING if tally.failed else logging.INFO)

    def _note_attempt(self, model: Model, *, repair: bool) -> None:
        attempt = Attempt(
            run_id=self.launch.run_id,
            model=model.id,
            experiment=self.settings.experiment,
            filtered=self.settings.plan.narrows or self.launch.only_failed,
            repair=repair,
            began_at=now(),
        )
        self.journal.write_whole(ATTEMPTS, model.id, attempt.run_id, records=[attempt])

    async def _ask_pending(
        self, client: ModelClient, builder: RequestBuilder, opened: OpenRun, tally: StageProgress
    ) -> None:
        run, pending = opened.run, opened.pending
        items = Versions(self.journal, self.benchmark).benchmark(run.benchmark_version).items
        if pending:
            refuse_without_text(run, items)
        if run.carry_from and pending:
            hash_of = builder.reply_hash(items)
            # Earlier runs may be many: other models are asked meanwhile.
            pending = await in_a_thread(reuse_answers, self.journal, run, pending, hash_of)
            opened = OpenRun(run, pending)
        tally.planned = len(pending)
        budget = self.spend.run_budget(run.run_id, run.model)
        tally.estimated_usd = await self._estimated_usd(builder, pending, items)
        _log_plan(opened, builder.model, tally)
        for warning in builder.warnings(self.settings, run.samples):
            tally.warn(warning)
        if too_little := budget.warning(tally.estimated_usd):
            tally.warn(f"{run.model}: {too_little}")
        pool = WorkerPool(
            tally,
            budget,
            num_workers=self.settings.concurrency.num_workers,
            stop_after_failures=self.settings.requests.stop_after_failures,
            answered_before=opened.done > 0,
        )
        async with self.journal.writer(PREDICTIONS, run.model, run.run_id) as writer:

            async def do(reply: ReplyKey) -> None:
                item, sample = items[reply.key], reply.sample
                request = builder.request(item, sample)
                asked = await client.ask(request, pool)
                make = builder.prediction_maker(item, sample, run.run_id, request, asked)
                pool.register_outcome(asked.outcome, f"{run.model}: {asked.error or asked.outcome}")
                await writer.post(make, pool.landed, size=asked.size)

            await pool.work_through(pending, do)
        await compact(self.journal, PREDICTIONS, run.model, run.run_id)

    async def _estimated_usd(
        self, builder: RequestBuilder, pending: Pending, items: Mapping[ItemKey, Item]
    ) -> float | None:
        try:
            asking = await in_a_thread(estimate_answers, self.journal, builder, pending, items)
        except JournalError:
            raise
        except Exception:  # an item that cannot be asked must not cost the others
            log.exception("%s: what it will cost could not be estimated.", builder.model.id)
            return None
        return asking.cost_usd


def open_wanted(
    builder: RequestBuilder,
    benchmark: Benchmark,
    launch: Launch,
    settings: Settings,
    journal: Journal,
    *,
    dry_run: bool = False,
) -> OpenRun:
    """Continue the run that a launch means for a model, or open one; a dry run writes nothing."""
    failed, mode, model = None, launch.mode, builder.model
    if launch.only_failed:
        own = (launch.run_id, launch.retry_of)
        failed = failed_in_latest(journal, model, settings.experiment, but=own)
        mode = Mode.FIX if failed.begun else mode
    wanted = new_run(
        launch.run_id,
        builder,
        benchmark,
        settings.plan,
        experiment_name=settings.experiment,
        failed=failed,
    )
    return open_run(
        journal,
        wanted,
        mode,
        run_id=launch.run_for(model.id),
        retry_of=launch.retry_of,
        dry_run=dry_run,
    )


def _log_plan(opened: OpenRun, model: Model, tally: StageProgress) -> None:
    run, simulated = opened.run, " (simulated)" if model.simulated else ""
    samples = f"replies ({len(run.plan)} items x {run.samples} samples)"
    items = f"{opened.done} of {run.planned} {'items' if run.samples == 1 else samples}"
    left = f"{len(opened.pending)} to ask, {in_usd(tally.estimated_usd)}"
    log.info("%s%s: run %s has %s, %s", model.id, simulated, run.run_id[:8], items, left)

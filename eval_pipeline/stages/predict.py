"""Asking models what is pending in their runs."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from secrets import token_hex
from typing import Any

from eval_pipeline.benchmark import Benchmark, past_items, read_prompt
from eval_pipeline.carrying import carry_over
from eval_pipeline.exam.messages import question_messages
from eval_pipeline.journal import PREDICTIONS, Journal, JournalWriter
from eval_pipeline.money import Forecast, Ledger
from eval_pipeline.providers.chat import Asked, ChatRequest
from eval_pipeline.providers.dialects.messages import MAX_TOKENS
from eval_pipeline.providers.gateways import Gateways
from eval_pipeline.providers.limits import RetryPolicy
from eval_pipeline.records import (
    Item,
    ItemKey,
    Model,
    Prediction,
    canonical,
    fingerprint,
    fingerprint_of_text,
    now,
)
from eval_pipeline.runs import Mode, OpenRun, new_run, open_run
from eval_pipeline.settings import Budget, Experiment, Settings
from eval_pipeline.stages.asking import Asking
from eval_pipeline.stages.workers import Shift, Tally, compact, stopped_by_trouble

log = logging.getLogger(__name__)
ITEMS_TO_ESTIMATE_BY = 50


@dataclass(frozen=True)
class Launch:
    """Under which Dagster run a stage was started, and what it does with earlier work."""

    run_id: str
    mode: Mode = Mode.AUTO
    continue_run: str | None = None
    retry_of: str | None = None


async def predict(
    models: Sequence[Model],
    benchmark: Benchmark,
    launch: Launch,
    *,
    settings: Settings,
    journal: Journal,
    board: list[Tally] | None = None,
) -> list[Tally]:
    """Asks every model what is pending in its run; `board` shows how far each of them is."""
    places = asyncio.Semaphore(settings.concurrency.max_concurrent_models)
    async with Gateways(settings, benchmark.items.values()) as gateways:
        ledger = Ledger(settings.budget, journal)
        stage = _Predict(benchmark, launch, settings, journal, gateways, ledger)

        async def one(model: Model, tally: Tally) -> None:
            # A model that another process is at work on does not take a place.
            with stopped_by_trouble(tally):
                async with journal.claim(PREDICTIONS, model.id), places:
                    await stage.run(model, tally)

        tallies = [Tally(model.id, "asked") for model in models]
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
    ledger: Ledger

    async def run(self, model: Model, tally: Tally) -> None:
        with stopped_by_trouble(tally):
            asker = _Asker.of(model, self.settings, self.gateways)
            opened = await asyncio.to_thread(self._open, asker)
            await self._ask_pending(asker, opened, tally)
        if tally.planned or tally.failed:
            log.log(logging.WARNING if tally.failed else logging.INFO, tally.line())

    async def _ask_pending(self, asker: "_Asker", opened: OpenRun, tally: Tally) -> None:
        items, run_id = self._items(opened), opened.run.run_id
        opened = self._carry_over(asker, opened, items)
        tally.planned = len(opened.pending)
        account = self.ledger.account(run_id, asker.model.id)
        tally.estimated_usd = self._estimate(asker, opened, items)
        tally.warnings.extend(asker.warnings(self.settings))
        if warning := account.warning(tally.estimated_usd):
            tally.warnings.append(f"{asker.model.id}: {warning}")
        _announce(opened, asker.model, tally)
        shift = Shift(
            tally,
            account,
            num_workers=self.settings.concurrency.num_workers,
            stop_after_failures=self.settings.requests.stop_after_failures,
            answered_before=opened.done > 0,
        )
        async with self.journal.writer(PREDICTIONS, asker.model.id, run_id) as writer:

            async def do(key: ItemKey) -> None:
                await asker.predict(items[key], run_id, shift, writer)

            await shift.work_through(opened.pending, do)
        await compact(self.journal, PREDICTIONS, asker.model.id, run_id)

    def _estimate(
        self, asker: "_Asker", opened: OpenRun, items: Mapping[ItemKey, Item]
    ) -> float | None:
        """By what this model's answers have cost before, else by the length of some questions."""
        known = self.ledger.usual_usd(PREDICTIONS, asker.model.id)
        return (
            asker.estimate(opened.pending, items) if known is None else known * len(opened.pending)
        )

    def _open(self, asker: "_Asker") -> OpenRun:
        wanted = new_run(
            self.launch.run_id,
            asker.model,
            self.benchmark,
            self.settings.plan,
            experiment_name=self.settings.experiment,
            experiment=asker.experiment,
            system_prompt_hash=fingerprint(asker.system_prompt),
        )
        return open_run(
            self.journal,
            wanted,
            self.launch.mode,
            run_id=self.launch.continue_run,
            retry_of=self.launch.retry_of,
        )

    def _carry_over(
        self, asker: "_Asker", opened: OpenRun, items: Mapping[ItemKey, Item]
    ) -> OpenRun:
        if opened.run.carry_from is None:
            return opened
        hashes = {key: asker.request_hash(items[key]) for key in opened.pending}
        carried = carry_over(self.journal, opened.run, hashes)
        return OpenRun(opened.run, tuple(key for key in opened.pending if key not in carried))

    def _items(self, opened: OpenRun) -> Mapping[ItemKey, Item]:
        version = opened.run.benchmark_version
        if version == self.benchmark.version.benchmark_version:
            return self.benchmark.items
        return past_items(self.journal, version)


@dataclass(frozen=True)
class _Asker:
    """Turns an item into a prediction by asking one model."""

    model: Model
    asking: Asking
    experiment: Experiment
    system_prompt: str
    hashes: "_Hashes"
    # What makes an id unlike all others costs more than the rest of it, so it is drawn once.
    ids: str = field(default_factory=lambda: token_hex(8))
    numbers: Iterator[int] = field(default_factory=count)

    @classmethod
    def of(cls, model: Model, settings: Settings, gateways: Gateways) -> "_Asker":
        experiment = settings.experiments[settings.experiment]
        return cls(
            model=model,
            asking=how_to_ask(model, settings, gateways, settings.concurrency.num_workers),
            experiment=experiment.with_override(settings.override(model)),
            system_prompt=read_prompt(settings, experiment.system_prompt),
            hashes=_Hashes(model),
        )

    def request_hash(self, item: Item) -> str:
        """Equal for requests that ask for the same in the same way."""
        return self.hashes.of(self._request(item))

    def estimate(self, pending: Sequence[ItemKey], items: Mapping[ItemKey, Item]) -> float | None:
        """What asking all of them will cost, judged by the length of a few; None if unpriced."""
        if not self.model.prices.known:
            return None
        few = pending[:: len(pending) // ITEMS_TO_ESTIMATE_BY + 1]
        try:
            guesses = [self.asking.forecast.guess(self._request(items[key])) for key in few]
        except Exception:  # an item that can not be asked must not cost the others
            log.exception("%s: what it will cost could not be estimated.", self.model.id)
            return None
        return sum(guess.cost_usd for guess in guesses) / max(len(few), 1) * len(pending)

    def warnings(self, settings: Settings) -> Iterator[str]:
        """What the numbers of this run will not show by themselves."""
        model, budget = self.model, settings.budget
        if warning := unpriced(model, budget):
            yield warning
        if model.provider is None and settings.gateway(model.gateway).routes:
            yield (
                f"{model.id} is not pinned to a provider, so its answers may come from several; "
                "the column served_by tells from which."
            )

    async def predict(
        self, item: Item, run_id: str, shift: Shift, writer: JournalWriter[Prediction]
    ) -> None:
        """Asks, and hands the journal what it needs to make a prediction of it."""
        request = self._request(item)
        asked = await self.asking.ask(request, shift)
        outcome, finished_at = asked.outcome, now()

        def make() -> Prediction:
            return Prediction(
                prediction_id=f"{self.ids}{next(self.numbers):016x}",
                run_id=run_id,
                model=self.model.id,
                suite=item.suite,
                item_id=item.id,
                attempts=asked.attempts,
                request_hash=self.hashes.of(request),
                finished_at=finished_at,
                usage=asked.usage,
                outcome=outcome,
                **_result(asked, self.model),
            )

        shift.heed(outcome, f"{self.model.id}: {asked.error or outcome}")
        await writer.post(make, shift.landed, size=asked.size)

    def _token_limit(self) -> int | None:
        """Where a limit has to be sent, it is not more than the model can do."""
        limit, most = self.experiment.max_tokens, self.model.max_output_tokens
        if limit is None and most is not None and self.model.dialect == "messages":
            return min(most, MAX_TOKENS)
        return limit

    def _request(self, item: Item) -> ChatRequest:
        return ChatRequest(
            model=self.model.request_name,
            messages=question_messages(item, self.model, self.system_prompt),
            temperature=self.experiment.temperature if self.model.temperature else None,
            max_tokens=self._token_limit(),
            stream=self.experiment.stream and self.model.streaming,
            extra=self.experiment.extra,
        )


class _Hashes:
    """Hashes of one model's requests, which differ in their last message only."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._around: tuple[str, str] | None = None

    def of(self, request: ChatRequest) -> str:
        """Equal for requests that ask for the same in the same way."""
        before, after = self._around = self._around or self._without_content(request)
        return fingerprint_of_text(before + canonical(request.messages[-1]["content"]) + after)

    def _without_content(self, request: ChatRequest) -> tuple[str, str]:
        """Before and after what differs: a text that is not made anew for each request."""
        *others, last = request.messages
        mark = token_hex(16)
        fields = replace(request, messages=(*others, {**last, "content": mark})).fields()
        if self._model.dialect != "chat_completions":
            fields["dialect"] = self._model.dialect
        before, _, after = canonical(fields).partition(canonical(mark))
        return before, after


def how_to_ask(model: Model, settings: Settings, gateways: Gateways, most: int) -> Asking:
    """Through whom a model is asked, how patiently, how fast and at what price."""
    requests = settings.requests
    policy = RetryPolicy(
        attempts=requests.attempts,
        attempts_when_limited=requests.attempts_when_limited,
        first_wait_s=requests.first_wait_s,
        longest_wait_s=requests.longest_wait_s,
        total_s=requests.total_s,
    )
    return Asking(
        gateways.provider(model), policy, gateways.pace(model, most), Forecast(model.prices)
    )


def _result(asked: Asked, model: Model) -> dict[str, Any]:
    reply = asked.reply
    if reply is None:
        return {"error": str(asked.error)}
    first = reply.first_token_s
    return {
        "answer": reply.text or reply.refusal,
        "reasoning": reply.reasoning,
        "finish_reason": reply.finish_reason,
        "latency_s": reply.latency_s,
        "first_token_s": first,
        "generation_s": None if first is None else reply.latency_s - first,
        "generation_id": reply.generation_id,
        "served_by": reply.served_by or model.provider,
        "model_reported": reply.model_reported,
        "system_fingerprint": reply.system_fingerprint,
    }


def unpriced(model: Model, budget: Budget) -> str | None:
    """That a budget may not hold, because nobody says what the model costs."""
    if model.prices.known or all(limit is None for limit in budget.model_dump().values()):
        return None
    return (
        f"{model.id}: no price is known, so the budget holds only if the gateway reports "
        "what each answer cost; overrides can set prices."
    )


def _announce(opened: OpenRun, model: Model, tally: Tally) -> None:
    log.info(
        "%s%s: run %s has %d of %d items, %d to ask, %s",
        model.id,
        " (simulated)" if model.simulated else "",
        opened.run.run_id[:8],
        opened.done,
        len(opened.run.plan),
        len(opened.pending),
        tally.estimate,
    )
    for warning in tally.warnings:
        log.warning(warning)

"""Asking models what is pending in their runs."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from eval_pipeline.benchmark import Benchmark, past_items, read_prompt
from eval_pipeline.carrying import carry_over
from eval_pipeline.environment import SettingsError
from eval_pipeline.exam.messages import question_messages
from eval_pipeline.journal import PREDICTIONS, Journal, JournalError
from eval_pipeline.providers.chat import Asked, ChatProvider, ChatRequest, ask
from eval_pipeline.providers.gateways import Gateways
from eval_pipeline.providers.limits import RetryPolicy
from eval_pipeline.records import (
    Item,
    ItemKey,
    Model,
    Outcome,
    Prediction,
    fingerprint,
    now,
)
from eval_pipeline.runs import Mode, OpenRun, RunError, new_run, open_run
from eval_pipeline.settings import Experiment, Settings
from eval_pipeline.stages.workers import Spending, Tally, land, priced, work_through

log = logging.getLogger(__name__)


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
) -> list[Tally]:
    """Asks every model what is pending in its run, several models at a time."""
    places = asyncio.Semaphore(settings.concurrency.max_concurrent_models)
    spending = Spending(settings.budget.usd_per_run)
    async with Gateways(settings, tuple(benchmark.items.values())) as gateways:
        stage = _Predict(benchmark, launch, settings, journal, gateways)

        async def one(model: Model) -> Tally:
            async with places, journal.claim(PREDICTIONS, model.id):
                return await stage.run(model, spending)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(model)) for model in models]
        return [task.result() for task in tasks]


@dataclass(frozen=True)
class _Predict:
    benchmark: Benchmark
    launch: Launch
    settings: Settings
    journal: Journal
    gateways: Gateways

    async def run(self, model: Model, spending: Spending) -> Tally:
        tally = Tally(model.id, "asked")
        try:
            asker = _Asker.of(model, self.settings, self.gateways)
            await self._ask_pending(asker, self._open(model, asker.system_prompt), tally, spending)
        except (SettingsError, RunError, JournalError) as error:
            tally.stop(str(error), failed=True)
        if tally.planned or tally.failed:
            log.log(logging.WARNING if tally.failed else logging.INFO, tally.line())
        return tally

    async def _ask_pending(
        self, asker: "_Asker", opened: OpenRun, tally: Tally, spending: Spending
    ) -> None:
        items, run_id = self._items(opened), opened.run.run_id
        opened = self._carry_over(asker, opened, items)
        _announce(opened, asker.model)
        tally.planned = len(opened.pending)
        async with self.journal.writer(PREDICTIONS, asker.model.id, run_id) as writer:

            async def do(key: ItemKey) -> None:
                prediction = await asker.predict(items[key], run_id)
                await land(prediction, writer, tally, spending)

            await work_through(
                opened.pending,
                do,
                num_workers=self.settings.concurrency.num_workers,
                tally=tally,
                spending=spending,
            )

    def _open(self, model: Model, system_prompt: str) -> OpenRun:
        wanted = new_run(
            self.launch.run_id,
            model,
            self.benchmark,
            self.settings.plan,
            experiment_name=self.settings.experiment,
            experiment=self.settings.experiments[self.settings.experiment],
            system_prompt_hash=fingerprint(system_prompt),
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
    provider: ChatProvider
    policy: RetryPolicy
    experiment: Experiment
    system_prompt: str

    @classmethod
    def of(cls, model: Model, settings: Settings, gateways: Gateways) -> "_Asker":
        experiment = settings.experiments[settings.experiment]
        return cls(
            model=model,
            provider=gateways.provider(model),
            policy=retry_policy(settings),
            experiment=experiment,
            system_prompt=read_prompt(settings, experiment.system_prompt),
        )

    def request_hash(self, item: Item) -> str:
        """Equal for requests that ask for the same in the same way."""
        return _hash(self._request(item))

    async def predict(self, item: Item, run_id: str) -> Prediction:
        request = self._request(item)
        asked = await ask(self.provider, request, self.policy)
        about = {
            "prediction_id": uuid4().hex,
            "run_id": run_id,
            "model": self.model.id,
            "suite": item.suite,
            "item_id": item.id,
            "attempts": asked.attempts,
            "request_hash": _hash(request),
            "finished_at": now(),
        }
        return Prediction.model_validate(about | _result(asked, self.model))

    def _request(self, item: Item) -> ChatRequest:
        return ChatRequest(
            model=self.model.request_name,
            messages=question_messages(item, self.model, self.system_prompt),
            temperature=self.experiment.temperature if self.model.temperature else None,
            max_tokens=self.experiment.max_tokens,
            stream=self.experiment.stream and self.model.streaming,
            extra=self.experiment.extra,
        )


def _hash(request: ChatRequest) -> str:
    return fingerprint(request.model_dump(mode="json"))


def retry_policy(settings: Settings) -> RetryPolicy:
    """How often and how patiently a single request is repeated."""
    requests = settings.requests
    return RetryPolicy(requests.attempts, requests.first_wait_s, requests.longest_wait_s)


def _result(asked: Asked, model: Model) -> dict[str, object]:
    reply, usage = asked.reply, priced(asked.usage, model.prices)
    if reply is None:
        error = asked.error
        outcome = error.outcome if error else Outcome.EMPTY
        return {"outcome": outcome, "error": str(error), "usage": usage}
    return {
        "outcome": reply.outcome,
        "answer": reply.text or reply.refusal,
        "reasoning": reply.reasoning,
        "finish_reason": reply.finish_reason,
        "usage": usage,
        "latency_s": reply.latency_s,
        "first_token_s": reply.first_token_s,
        "generation_id": reply.generation_id,
        "served_by": reply.served_by or model.provider,
        "model_reported": reply.model_reported,
    }


def _announce(opened: OpenRun, model: Model) -> None:
    log.info(
        "%s%s: run %s has %d of %d items, %d to ask",
        model.id,
        " (simulated)" if model.simulated else "",
        opened.run.run_id[:8],
        opened.done,
        len(opened.run.plan),
        len(opened.pending),
    )

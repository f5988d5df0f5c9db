"""Judging every prediction that has no verdict yet."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from eval_pipeline.benchmark import judge_prompt_of, past_items
from eval_pipeline.exam.judge import SCHEMA, JudgedAnswer, judge_answer, judge_request, own_failing
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal, JournalError
from eval_pipeline.providers.chat import ChatProvider
from eval_pipeline.providers.gateways import Gateways
from eval_pipeline.providers.limits import RetryPolicy
from eval_pipeline.records import (
    Item,
    ItemKey,
    Judgement,
    Model,
    Outcome,
    Prediction,
    Run,
    fingerprint,
    now,
)
from eval_pipeline.runs import Mode, RunError, latest
from eval_pipeline.settings import Settings
from eval_pipeline.stages.predict import Launch, retry_policy
from eval_pipeline.stages.workers import Spending, Tally, land, priced, work_through

log = logging.getLogger(__name__)


class _Pending(NamedTuple):
    prediction: Prediction
    item: Item


async def judge(
    models: Sequence[str],
    judge_model: Model,
    launch: Launch,
    *,
    settings: Settings,
    journal: Journal,
    this_judge: bool = False,
) -> list[Tally]:
    """Judges what is pending for these models; with `this_judge` also what others have judged."""
    prompt = judge_prompt_of(settings)
    _check_run(journal, models, launch.continue_run)
    # All models' answers go to one judge, so its workers are shared.
    places = asyncio.Semaphore(settings.judge.num_workers)
    spending = Spending(settings.budget.usd_per_run)
    async with Gateways(settings) as gateways:
        provider = gateways.provider(judge_model)
        policy = retry_policy(settings)
        grader = _Grader(judge_model, provider, policy, prompt, settings.judge.max_tokens)
        stage = _Judge(grader, launch, settings, journal, this_judge, places)

        async def one(model: str) -> Tally:
            async with journal.claim(JUDGED, model):
                return await stage.run(model, spending)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(model)) for model in models]
        return [task.result() for task in tasks]


def _check_run(journal: Journal, models: Sequence[str], run_id: str | None) -> None:
    runs = (run for model in models for run in journal.read(RUNS, model))
    if run_id is not None and not any(run.run_id.startswith(run_id) for run in runs):
        raise RunError(f"There is no run {run_id} to judge; the table `runs` lists them.")


@dataclass(frozen=True)
class _Grader:
    """Turns a prediction into a judgement by asking one judge."""

    model: Model
    provider: ChatProvider
    policy: RetryPolicy
    prompt: str
    max_tokens: int | None

    @property
    def version(self) -> str:
        return fingerprint(self.prompt, SCHEMA, self.max_tokens)

    async def grade(self, prediction: Prediction, item: Item) -> Judgement:
        if reason := own_failing(prediction):
            return self._judgement(prediction, outcome=Outcome.OK, score=0.0, reason=reason)
        request = judge_request(
            item, prediction.answer or "", self.model, self.prompt, self.max_tokens
        )
        judged = await judge_answer(self.provider, request, self.policy)
        return self._judgement(prediction, **self._result(judged))

    def _result(self, judged: JudgedAnswer) -> dict[str, object]:
        verdict, reply = judged.verdict, judged.reply
        result: dict[str, object] = {
            "outcome": judged.outcome,
            "score": None,
            "reason": judged.error,
            "attempts": judged.attempts,
            "usage": priced(judged.usage, self.model.prices),
        }
        if reply is not None:
            result |= {"raw_reply": reply.text, "latency_s": reply.latency_s}
        if verdict is not None:
            stated = verdict.confidence
            result |= {
                "score": float(verdict.correct),
                "reason": verdict.reasoning,
                "extracted_answer": verdict.extracted_answer,
                "confidence": None if stated is None else stated / 100,
            }
        return result

    def _judgement(self, prediction: Prediction, **result: object) -> Judgement:
        about = prediction.model_dump(
            include={"prediction_id", "run_id", "model", "suite", "item_id", "sample"}
        )
        return Judgement.model_validate(
            {
                **about,
                "judge": self.model.id,
                "judge_version": self.version,
                "finished_at": now(),
                **result,
            }
        )


@dataclass(frozen=True)
class _Judge:
    grader: _Grader
    launch: Launch
    settings: Settings
    journal: Journal
    this_judge: bool
    places: asyncio.Semaphore
    items: dict[str, Mapping[ItemKey, Item]] = field(default_factory=dict)

    async def run(self, model: str, spending: Spending) -> Tally:
        tally = Tally(model, "judged")
        try:
            for run in self._runs(model):
                if pending := list(self._pending(run)):
                    tally.planned += len(pending)
                    await self._judge_run(run, pending, tally, spending)
        except JournalError as error:
            tally.stop(str(error), failed=True)
        if tally.planned or tally.stopped:
            log.info(tally.line())
        return tally

    async def _judge_run(
        self, run: Run, pending: Sequence[_Pending], tally: Tally, spending: Spending
    ) -> None:
        async with self.journal.writer(JUDGED, run.model, run.run_id) as writer:

            async def do(one: _Pending) -> None:
                async with self.places:
                    judgement = await self.grader.grade(one.prediction, one.item)
                await land(judgement, writer, tally, spending)

            await work_through(
                pending,
                do,
                num_workers=min(self.settings.judge.num_workers, len(pending)),
                tally=tally,
                spending=spending,
            )

    def _runs(self, model: str) -> Iterator[Run]:
        wanted = self.launch.continue_run
        for run in self.journal.read(RUNS, model):
            if wanted is None or run.run_id.startswith(wanted):
                yield run

    def _pending(self, run: Run) -> Iterator[_Pending]:
        """Predictions to judge now: those without a score, or without any verdict, or all."""
        predictions = {
            prediction.prediction_id: prediction
            for prediction in latest(self.journal.read(PREDICTIONS, run.model, run.run_id)).values()
            if prediction.outcome.is_result
        }
        pending = predictions.keys() - self._settled(run, predictions.keys())
        for prediction_id, prediction in predictions.items():
            if prediction_id in pending:
                yield _Pending(prediction, self._items(run)[prediction.key])

    def _settled(self, run: Run, predictions: Set[str]) -> Set[str]:
        """A run has one judge: what several did in part, the present one does as a whole."""
        if self.launch.mode is Mode.FRESH:
            return set()
        by_judge: dict[tuple[str, str], set[str]] = {}
        for judgement in self.journal.read(JUDGED, run.model, run.run_id):
            if judgement.score is not None or self.launch.mode is Mode.RESUME:
                by = (judgement.judge, judgement.judge_version)
                by_judge.setdefault(by, set()).add(judgement.prediction_id)
        if not self.this_judge and any(done >= predictions for done in by_judge.values()):
            return predictions
        return by_judge.get((self.grader.model.id, self.grader.version), set())

    def _items(self, run: Run) -> Mapping[ItemKey, Item]:
        if run.benchmark_version not in self.items:
            self.items[run.benchmark_version] = past_items(self.journal, run.benchmark_version)
        return self.items[run.benchmark_version]

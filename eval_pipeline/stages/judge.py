"""Judging every prediction that has no verdict yet."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eval_pipeline.benchmark import judge_prompt_of, past_items
from eval_pipeline.exam.judge import SCHEMA, JudgedAnswer, judge_answer, judge_request, own_failing
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
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
from eval_pipeline.runs import Mode, latest
from eval_pipeline.settings import Settings
from eval_pipeline.stages.predict import Launch, retry_policy
from eval_pipeline.stages.workers import Spending, Tally, each, land, priced, work_through

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
    gateways: Gateways,
    this_judge: bool = False,
) -> list[Tally]:
    """Judges what is pending for these models; with `this_judge` also what only others judged."""
    prompt = judge_prompt_of(settings)
    grader = _Grader(
        judge_model,
        gateways.provider(judge_model),
        retry_policy(settings),
        prompt,
        settings.judge.max_tokens,
    )
    # All models' answers go to one judge, so its workers are shared.
    places = asyncio.Semaphore(settings.judge.num_workers)
    stage = _Judge(grader, launch, settings, journal, this_judge, places)
    spending = Spending(settings.budget.usd_per_run)

    async def one(model: str) -> Tally:
        async with journal.claim(JUDGED, model):
            return await stage.run(model, spending)

    return await each(models, one)


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

    async def run(self, model: str, spending: Spending) -> Tally:
        tally = Tally(model, "judged")
        for run in self._runs(model):
            if pending := list(self._pending(run)):
                tally.planned += len(pending)
                await self._judge_run(run, pending, tally, spending)
        if tally.planned:
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
        settled = set() if self.launch.mode is Mode.FRESH else set(self._settled(run))
        predictions = latest(self.journal.read(PREDICTIONS, run.model, run.run_id))
        open_ones = [
            prediction
            for prediction in predictions.values()
            if prediction.outcome.is_result and prediction.prediction_id not in settled
        ]
        items: Mapping[ItemKey, Item] = (
            past_items(self.journal, run.benchmark_version) if open_ones else {}
        )
        for prediction in open_ones:
            yield _Pending(prediction, items[prediction.key])

    def _settled(self, run: Run) -> Iterator[str]:
        for judgement in self.journal.read(JUDGED, run.model, run.run_id):
            if self.this_judge and judgement.judge != self.grader.model.id:
                continue
            if judgement.score is not None or self.launch.mode is Mode.RESUME:
                yield judgement.prediction_id

"""Judging every prediction that has no verdict yet."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from statistics import fmean

from eval_pipeline.benchmark import judge_prompt_of, past_items
from eval_pipeline.exam.judge import SCHEMA, JudgedAnswer, judge_answer, judge_request, own_failing
from eval_pipeline.history import JUDGEMENT_BRIEFS, PAST_RUNS, PREDICTION_BRIEFS, LastWords
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, GoneError, Journal
from eval_pipeline.money import Ledger
from eval_pipeline.providers.chat import ChatRequest
from eval_pipeline.providers.gateways import Gateways
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
from eval_pipeline.runs import Mode, RunError
from eval_pipeline.settings import Settings
from eval_pipeline.stages.asking import Asking
from eval_pipeline.stages.predict import Launch, how_to_ask, unpriced
from eval_pipeline.stages.workers import Shift, Tally, compact, stopped_by_trouble

log = logging.getLogger(__name__)
ANSWERS_TO_ESTIMATE_BY = 50


async def judge(
    models: Sequence[str],
    judge_model: Model,
    launch: Launch,
    *,
    settings: Settings,
    journal: Journal,
    this_judge: bool = False,
    board: list[Tally] | None = None,
) -> list[Tally]:
    """Judges what is pending for these models; with `this_judge` also what others have judged."""
    prompt = judge_prompt_of(settings)
    _check_run(journal, models, launch.continue_run)
    async with Gateways(settings) as gateways:
        # All models' answers go to one judge, so they share its pace.
        asking = how_to_ask(judge_model, settings, gateways, settings.judge.num_workers)
        grader = _Grader(judge_model, asking, prompt, settings.judge.max_tokens)
        ledger = Ledger(settings.budget, journal)
        stage = _Judge(grader, launch, settings, journal, ledger, this_judge)

        async def one(tally: Tally) -> None:
            with stopped_by_trouble(tally):
                async with journal.claim(JUDGED, tally.model):
                    await stage.run(tally)

        tallies = [Tally(model, "judged") for model in models]
        if board is not None:
            board.extend(tallies)
        async with asyncio.TaskGroup() as group:
            for tally in tallies:
                group.create_task(one(tally))
        return tallies


def _check_run(journal: Journal, models: Sequence[str], run_id: str | None) -> None:
    runs = (run for model in models for run in journal.read(PAST_RUNS, model))
    if run_id is not None and not any(run.run_id.startswith(run_id) for run in runs):
        raise RunError(f"There is no run {run_id} to judge; the table `runs` lists them.")


@dataclass(frozen=True)
class _Grader:
    """Turns a prediction into a judgement by asking one judge."""

    model: Model
    asking: Asking
    prompt: str
    max_tokens: int | None

    @property
    def version(self) -> str:
        return fingerprint(self.prompt, SCHEMA, self.max_tokens)

    async def grade(self, prediction: Prediction, item: Item, shift: Shift) -> Judgement:
        if reason := own_failing(prediction):
            return self._judgement(prediction, outcome=Outcome.OK, score=0.0, reason=reason)
        ask = partial(self.asking.ask, shift=shift)
        judged = await judge_answer(ask, self._request(prediction, item))
        return self._judgement(prediction, **self._result(judged))

    def guess_usd(self, few: Sequence[Prediction], items: Mapping[ItemKey, Item]) -> float:
        """What a verdict will cost, judged by the length of a few answers."""
        requests = [self._request(one, items[one.key]) for one in few]
        return fmean(self.asking.forecast.guess(request).cost_usd for request in requests)

    def _request(self, prediction: Prediction, item: Item) -> ChatRequest:
        answer = prediction.answer or ""
        return judge_request(item, answer, self.model, self.prompt, self.max_tokens)

    def _result(self, judged: JudgedAnswer) -> dict[str, object]:
        verdict, reply = judged.verdict, judged.reply
        result: dict[str, object] = {
            "outcome": judged.outcome,
            "score": None,
            "reason": judged.error,
            "attempts": judged.attempts,
            "usage": judged.usage,
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
    ledger: Ledger
    this_judge: bool
    items: dict[str, Mapping[ItemKey, Item]] = field(default_factory=dict)

    async def run(self, tally: Tally) -> None:
        with stopped_by_trouble(tally):
            for run in self._runs(tally.model):
                pending = await asyncio.to_thread(self._pending, run)
                if pending and not tally.failed:  # a spent budget is that of one run
                    tally.planned += len(pending)
                    self._announce(run, pending, tally)
                    await self._judge_run(run, pending, tally)
        if tally.planned or tally.stopped:
            log.info(tally.line())

    async def _judge_run(self, run: Run, pending: Set[str], tally: Tally) -> None:
        items = self._items(run)
        shift = Shift(
            tally,
            self.ledger.account(run.run_id, run.model),
            num_workers=self.settings.judge.num_workers,
            stop_after_failures=self.settings.requests.stop_after_failures,
        )
        async with self.journal.writer(JUDGED, run.model, run.run_id) as writer:

            async def do(one: Prediction) -> None:
                await shift.land(await self.grader.grade(one, items[one.key], shift), writer)

            await shift.work_through(self._predictions(run, pending), do)
        await compact(self.journal, JUDGED, run.model, run.run_id)

    def _announce(self, run: Run, pending: Set[str], tally: Tally) -> None:
        usual = self.ledger.usual_usd(JUDGED, run.model)
        if usual is None and self.grader.model.prices.known:
            few = list(islice(self._predictions(run, pending), ANSWERS_TO_ESTIMATE_BY))
            usual = self.grader.guess_usd(few, self._items(run))
        if usual is not None:
            tally.estimated_usd = (tally.estimated_usd or 0.0) + usual * len(pending)
        answers = f"{len(pending)} answers of run {run.run_id[:8]} to judge"
        log.info("%s: %s, %s", run.model, answers, tally.estimate)
        warning = unpriced(self.grader.model, self.settings.budget)
        if warning and warning not in tally.warnings:
            log.warning(warning)
            tally.warnings.append(warning)

    def _runs(self, model: str) -> Iterator[Run]:
        wanted = self.launch.continue_run
        for run in self.journal.read(PAST_RUNS, model):
            if wanted is None or run.run_id.startswith(wanted):
                yield next(self.journal.read_file(RUNS, model, run.run_id))

    def _predictions(self, run: Run, pending: Set[str]) -> Iterator[Prediction]:
        """Reads them as they are needed, however long judging takes."""
        left = set(pending)
        while left:
            try:
                for one in self.journal.read(PREDICTIONS, run.model, run.run_id):
                    if one.prediction_id in left:
                        left.discard(one.prediction_id)
                        yield one
            except GoneError:  # compacted meanwhile: they stand in another file now
                continue
            return

    def _pending(self, run: Run) -> Set[str]:
        """Ids of what to judge now: without a score, or without any verdict, or all."""
        briefs = partial(self.journal.read, PREDICTION_BRIEFS, run.model, run.run_id)
        words = LastWords(run.plan, briefs())
        results = {
            brief.prediction_id
            for number, brief in enumerate(briefs())
            if brief.outcome.is_result and words.is_last(number, brief.key)
        }
        return results - self._settled(run, results)

    def _settled(self, run: Run, results: Set[str]) -> Set[str]:
        """A run has one judge: what several did in part, the present one does as a whole."""
        if self.launch.mode is Mode.FRESH:
            return set()
        by_judge: dict[tuple[str, str], set[str]] = {}
        for judgement in self.journal.read(JUDGEMENT_BRIEFS, run.model, run.run_id):
            if judgement.score is not None or self.launch.mode is Mode.RESUME:
                by = (judgement.judge, judgement.judge_version)
                by_judge.setdefault(by, set()).add(judgement.prediction_id)
        if not self.this_judge and any(done >= results for done in by_judge.values()):
            return results
        return by_judge.get((self.grader.model.id, self.grader.version), set())

    def _items(self, run: Run) -> Mapping[ItemKey, Item]:
        if run.benchmark_version not in self.items:
            self.items[run.benchmark_version] = past_items(self.journal, run.benchmark_version)
        return self.items[run.benchmark_version]

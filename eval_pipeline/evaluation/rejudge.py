"""Judges judge a few replies again: whether they say the same tells how far to trust them."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import duckdb

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.budget import SpendTracker, price_warning
from eval_pipeline.evaluation.catalog import known_models
from eval_pipeline.evaluation.grading import RULES, Grader, ModelJudge
from eval_pipeline.evaluation.state import read_predictions
from eval_pipeline.evaluation.workers import (
    StageProgress,
    WorkerPool,
    holding,
    in_usd,
    log_summary,
    stopped_by_trouble,
)
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.journal import REJUDGED, Journal
from eval_pipeline.records.item import ExamQuestion, Item, ItemKey
from eval_pipeline.records.prediction import Prediction, Repeat
from eval_pipeline.results.queries import query
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import judge_prompt_of, past_items

log = logging.getLogger(__name__)
GONE = "{} is not asked again: it is in no gateway's list any more."
CHANGED = (
    "{} is not asked again: its verdicts were given with another prompt or token limit than the "
    "settings have now. Set the earlier ones; or name the judge in a launch of judged, which then "
    "judges with those of now."
)


class SampledAnswer(NamedTuple):
    """An answer that a judge is to judge again."""

    judge: str
    judge_version: str
    benchmark_version: str
    model: str
    run_id: str
    prediction_id: str


def sample_answers(
    db: duckdb.DuckDBPyConnection, answers: int, judge: str | None = None
) -> list[SampledAnswer]:
    """Return so many answers per version of each judge (or of this one), the same each time."""
    columns = ", ".join(SampledAnswer._fields)
    found = query(db, "summaries/repeatable_verdicts").filter(f"place <= {answers}")
    ordered = found.order("judge, last_at_work desc, judge_version, place")
    drawn = [SampledAnswer(*row) for row in ordered.project(columns).fetchall()]
    if judge is None or not answers:
        return drawn
    if judge not in (judges := list(dict.fromkeys(one.judge for one in drawn))):
        raise RunError(
            f"{judge} has not judged any reply of the published or the current benchmark version "
            f"as a model; those who have: {', '.join(judges) or 'none'}."
        )
    return [one for one in drawn if one.judge == judge]


async def rejudge(
    drawn: Sequence[SampledAnswer],
    launch: str,
    *,
    settings: Settings,
    journal: Journal,
    board: list[StageProgress] | None = None,
) -> list[StageProgress]:
    """Have each judge judge its replies as often again as the settings say; only what is missing.

    It is asked as the settings have it, so of what was drawn it gets what it judged in that way.
    """
    by_judge: dict[str, list[SampledAnswer]] = defaultdict(list)
    for one in drawn:
        by_judge[one.judge].append(one)
    tallies = {judge: StageProgress(judge, "judged again") for judge in by_judge}
    if board is not None:
        board.extend(tallies.values())
    models, spend = known_models(journal), SpendTracker(settings.budget, journal)
    async with Gateways(settings) as gateways, asyncio.TaskGroup() as group:
        for judge, answers in by_judge.items():
            with stopped_by_trouble(tallies[judge]):
                name = judge.removeprefix(f"{RULES}+")
                if name not in models:
                    tallies[judge].warn(GONE.format(judge))
                    continue
                prompt = judge_prompt_of(settings)
                model = ModelJudge.of(models[name], prompt, settings, gateways)
                grader = Grader(launch, model, rules=name != judge)
                if same := [one for one in answers if one.judge_version == grader.version]:
                    task = _RejudgeTask(grader, same, tallies[judge], settings, journal, spend)
                    group.create_task(task.run())
                else:
                    tallies[judge].warn(CHANGED.format(judge))
    return list(tallies.values())


_Repetition = tuple[Prediction, int]
"""A reply, and which of the times this is that it is judged again."""
_RunKey = tuple[str, str]
"""The model and the id of a run."""


@dataclass(frozen=True)
class _RejudgeTask:
    """What one judge has to judge again."""

    grader: Grader
    answers: Sequence[SampledAnswer]
    tally: StageProgress
    settings: Settings
    journal: Journal
    spend: SpendTracker

    async def run(self) -> None:
        """Ask for what is missing, in all runs at once: there are few replies in each."""
        with stopped_by_trouble(self.tally):
            async with holding(self.journal.claim(REJUDGED, self.grader.judge)):
                items = past_items(self.journal, self.answers[0].benchmark_version)
                pending = await asyncio.to_thread(self._pending)
                self.tally.planned = sum(map(len, pending.values()))
                self._announce([one for many in pending.values() for one in many], items)
                slots = asyncio.Semaphore(self.settings.judge.num_workers)
                async with asyncio.TaskGroup() as group:
                    for run, repetitions in pending.items():
                        group.create_task(self._judge_run(run, repetitions, items, slots))
        if self.tally.planned or self.tally.stopped:
            log_summary(self.tally)

    async def _judge_run(
        self,
        run: _RunKey,
        repetitions: Sequence[_Repetition],
        items: Mapping[ItemKey, Item],
        slots: asyncio.Semaphore,
    ) -> None:
        model, run_id = run
        with stopped_by_trouble(self.tally):
            async with holding(slots):
                if self.tally.failed:
                    return
                pool = WorkerPool(
                    self.tally,
                    self.spend.run_budget(run_id, model),
                    num_workers=min(self.settings.judge.num_workers, len(repetitions)),
                    stop_after_failures=self.settings.requests.stop_after_failures,
                    quiet=True,
                )
                async with self.journal.writer(REJUDGED, model, run_id) as writer:

                    async def do(one: _Repetition) -> None:
                        prediction, repeat = one
                        item = items[prediction.key]
                        if not isinstance(item, ExamQuestion):
                            raise TypeError(f"{item.id} is code, of which no judge has an opinion.")
                        verdict = await self.grader.grade(prediction, item, pool)
                        await pool.record(Repeat(**dict(verdict), repeat=repeat), writer)

                    await pool.work_through(repetitions, do)

    def _announce(self, repetitions: Sequence[_Repetition], items: Mapping[ItemKey, Item]) -> None:
        if not repetitions:
            return
        each = self.grader.guess_usd([prediction for prediction, _ in repetitions], items)
        self.tally.estimated_usd = None if each is None else each * len(repetitions)
        asked = self.grader.model
        simulated = " (simulated)" if asked and asked.model.simulated else ""
        count = f"{len(repetitions)} verdicts to give again"
        cost = in_usd(self.tally.estimated_usd)
        log.info("%s%s: %s, %s", self.tally.model, simulated, count, cost)
        if warning := asked and price_warning(asked.model, self.settings.budget):
            self.tally.warn(warning)

    def _pending(self) -> Mapping[_RunKey, Sequence[_Repetition]]:
        """Return what has no score yet, by run."""
        wanted: dict[_RunKey, set[str]] = defaultdict(set)
        for one in self.answers:
            wanted[one.model, one.run_id].add(one.prediction_id)
        repeats = range(1, self.settings.reliability.repeats + 1)
        pending: dict[_RunKey, list[_Repetition]] = defaultdict(list)
        for run, ids in wanted.items():
            done = {
                (one.prediction_id, one.repeat)
                for one in self.journal.read(REJUDGED, *run)
                if (one.judge, one.judge_version) == self.grader.key and one.score is not None
            }
            left = {one for one in ids if not done.issuperset(product([one], repeats))}
            for prediction, repeat in product(read_predictions(self.journal, *run, left), repeats):
                if (prediction.prediction_id, repeat) not in done:
                    pending[run].append((prediction, repeat))
        return pending

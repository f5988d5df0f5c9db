"""Judging every prediction that has no verdict yet, by one judge or by several."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import islice
from typing import NamedTuple

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.budget import SpendTracker, price_warning
from eval_pipeline.evaluation.estimate import AverageUsage, average_usage
from eval_pipeline.evaluation.grading import (
    REVIEW_PROMPT,
    STEPS,
    CodeGraderFactory,
    CodeReviewer,
    Grader,
    ModelJudge,
    graders_of,
    num_workers,
)
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.runs import refuse_without_text
from eval_pipeline.evaluation.state import (
    JUDGEMENT_BRIEFS,
    PAST_RUNS,
    JudgeKey,
    JudgementBrief,
    PastRun,
    final_results,
    read_predictions,
    read_run,
)
from eval_pipeline.evaluation.workers import (
    StageProgress,
    WorkedOn,
    WorkerPool,
    compact,
    holding,
    in_usd,
    log_summary,
    stopped_by_trouble,
    unless_stopped,
)
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.journal import JUDGED, VERSIONS, Journal, JournalWriter
from eval_pipeline.logs import about
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import ExamQuestion, Item, ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Mode, Run
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import minted, past_items, past_version

log = logging.getLogger(__name__)
ANSWERS_TO_ESTIMATE_BY = 50
LEFT_OUT = (
    "Runs left out, since they are neither of the current nor of the published benchmark version: "
    "%d. To judge one of them in this way, name it in run_id."
)
OTHER_JUDGE = (
    "%s: run %s stays with %s; to judge it again, name the judge, the prompt or the rules in "
    "a launch of `judged`"
)
_Items = Mapping[ItemKey, Item]
_Writer = JournalWriter[Judgement]


class JudgingState(NamedTuple):
    """The predictions each judge need not judge now, and the judges of the run as a whole."""

    by: Mapping[JudgeKey, Set[str]]
    whole: list[JudgeKey]


def judging_state(
    journal: Journal, run: Run, results: Set[str], launch: Launch, *, by_any: bool
) -> JudgingState:
    """Return what need not be judged; with `by_any`, one judge's whole work settles it for others.

    Not by parts: what several did in part, the present one does as a whole.
    """
    settled: dict[JudgeKey, set[str]] = defaultdict(set)
    scored: dict[JudgeKey, set[str]] = defaultdict(set)
    for verdict in journal.read(JUDGEMENT_BRIEFS, run.model, run.run_id):
        if _is_settled(verdict, launch):
            settled[verdict.by].add(verdict.prediction_id)
            if verdict.score is not None or launch.mode is Mode.RESUME:
                scored[verdict.by].add(verdict.prediction_id)
    by_any = by_any and launch.mode is not Mode.FRESH and bool(results)
    return JudgingState(settled, [by for by, done in scored.items() if by_any and done >= results])


def _is_settled(verdict: JudgementBrief, launch: Launch) -> bool:
    """Return whether the verdict need not be given again in this mode."""
    if launch.mode is Mode.RESUME:
        return True
    if launch.mode is Mode.FRESH and verdict.launch != launch.origin:
        return False
    return verdict.score is not None or verdict.outcome is Outcome.UNDECIDED


def runs_to_judge(model: str, launch: Launch, journal: Journal) -> Iterator[PastRun]:
    """Yield the model's runs that a launch judges, whatever benchmark version they are of."""
    wanted = launch.run_for(model)
    for run in journal.read(PAST_RUNS, model):
        is_wanted = wanted is None or run.run_id.startswith(wanted)
        # An imported run lacks scores of its own judge: it is judged again only if it is named.
        if is_wanted and not run.is_closed and (launch.names_runs or not run.is_imported):
            yield run


async def judge(
    models: Sequence[str],
    judges: Sequence[Model],
    launch: Launch,
    *,
    settings: Settings,
    journal: Journal,
    this_judge: bool = False,
    reviewer: Model | None = None,
    board: list[StageProgress] | None = None,
) -> list[StageProgress]:
    """Judge what is pending for these models; with `this_judge` also what others have judged.

    Of several judges each one judges everything. Where the settings let the rules judge alone,
    no judge is asked. There is one StageProgress per model and judge. What is judged although it
    has been before is of the current or the published benchmark version, unless the launch names
    its run. Code is graded in steps; the reviewer, if any, is an AI grader beside its tests.
    """
    if (named := launch.continue_run) is not None:
        runs = (run for model in models for run in journal.read(PAST_RUNS, model))
        if not any(run.run_id.startswith(named) for run in runs):
            raise RunError(f"There is no run {named} to judge; the table `runs` lists them.")
    async with Gateways(settings) as gateways:
        graders = graders_of(judges, settings, gateways, launch.origin)
        prompt = REVIEW_PROMPT.read_text("utf-8").strip()
        stage = _Judge(
            graders,
            launch,
            settings,
            journal,
            SpendTracker(settings.budget, journal),
            CodeGraderFactory(settings, fresh=launch.mode is Mode.FRESH),
            ModelJudge.of(reviewer, prompt, settings, gateways) if reviewer else None,
            this_judge or len(graders) > 1,
            cache(partial(past_items, journal)),
        )
        # Progress names the judge only if there are several.
        by = [f" by {grader.judge}" for grader in graders] if len(graders) > 1 else [""]
        tallies = {
            model: [StageProgress(f"{model}{name}", "judged") for name in by] for model in models
        }
        if board is not None:
            board.extend(tally for row in tallies.values() for tally in row)
        async with asyncio.TaskGroup() as group:
            for model, row in tallies.items():
                group.create_task(stage.run(model, row))
        if stage.left_out:
            log.info(LEFT_OUT, len(stage.left_out))
        return [tally for row in tallies.values() for tally in row]


class _Job(NamedTuple):
    """What one judge has to do in one run: ids of answers to questions, and of code, by suite."""

    grader: Grader
    answers: Mapping[str, Set[str]]
    code: Mapping[str, Set[str]]
    tally: StageProgress

    @property
    def size(self) -> int:
        return sum(len(some) for part in (self.answers, self.code) for some in part.values())


@dataclass(frozen=True)
class _Judge:
    graders: Sequence[Grader]
    launch: Launch
    settings: Settings
    journal: Journal
    spend: SpendTracker
    code_graders: CodeGraderFactory
    reviewer: ModelJudge | None
    this_judge: bool
    items: Callable[[str], _Items]
    left_out: list[Run] = field(default_factory=list)

    async def run(self, model: str, tallies: Sequence[StageProgress]) -> None:
        with about(model=model):
            with stopped_by_trouble(*tallies):
                async with holding(self.journal.claim(JUDGED, model)):
                    for run in self._runs(model):
                        await self._judge_run(run, tallies)
            for tally in (one for one in tallies if one.planned or one.stopped):
                log_summary(tally)

    async def _judge_run(self, run: Run, tallies: Sequence[StageProgress]) -> None:
        """Let all judges work at once; one that has to stop does not stop the others."""
        async with unless_stopped():
            jobs = await asyncio.to_thread(self._jobs, run, tallies)
        if jobs or self.launch.names_runs:
            for tally in tallies:
                tally.runs.append(WorkedOn(run.run_id, run.model))
        if jobs:
            refuse_without_text(run, self.items(run.benchmark_version))
            async with asyncio.TaskGroup() as group:
                for job in jobs:
                    group.create_task(self._do(run, job))
            # Only now, for it must not take away a file that another judge still writes to.
            await compact(self.journal, JUDGED, run.model, run.run_id)

    async def _do(self, run: Run, job: _Job) -> None:
        with about(run_id=run.run_id), stopped_by_trouble(job.tally):
            job.tally.planned += job.size
            async with unless_stopped():
                await self._announce(run, job)
            async with (
                self.journal.writer(JUDGED, run.model, run.run_id) as writer,
                asyncio.TaskGroup() as group,
            ):
                if job.answers:
                    group.create_task(self._judge_answers(run, job, writer))
                if job.code:
                    group.create_task(self._grade_code(run, job, writer))

    async def _judge_answers(self, run: Run, job: _Job, writer: _Writer) -> None:
        pool = self._pool(run, job, self.settings.judge.num_workers)
        items = self.items(run.benchmark_version)

        async def do(one: Prediction) -> None:
            if isinstance(item := items[one.key], ExamQuestion):
                await pool.record(await job.grader.grade(one, item, pool), writer)

        await pool.work_through(self._read(run, job.answers), do)

    async def _grade_code(self, run: Run, job: _Job, writer: _Writer) -> None:
        """Grade beside the judges, which wait for others while this needs the machine itself."""
        items, coding = self.items(run.benchmark_version), self._coding_suites(run)
        with stopped_by_trouble(job.tally):
            code = await self.code_graders.open(
                items[key] for key in run.plan if key.suite in coding
            )
            pool = self._pool(run, job, num_workers(self.settings.coding))
            reviewer = CodeReviewer(self.reviewer, pool) if self.reviewer else None

            async def do(one: Prediction) -> None:
                if isinstance(item := items[one.key], CodingTask):
                    await pool.record(
                        await job.grader.grade_code(one, item, code, reviewer), writer
                    )

            await pool.work_through(self._read(run, job.code), do)

    def _read(self, run: Run, ids: Mapping[str, Set[str]]) -> Iterator[Prediction]:
        return read_predictions(self.journal, run.model, run.run_id, set().union(*ids.values()))

    def _pool(self, run: Run, job: _Job, most: int) -> WorkerPool:
        budget = self.spend.run_budget(run.run_id, run.model)
        stop_after = self.settings.requests.stop_after_failures
        return WorkerPool(job.tally, budget, num_workers=most, stop_after_failures=stop_after)

    async def _announce(self, run: Run, job: _Job) -> None:
        usd, tally = await in_a_thread(self._expected_usd, run, job), job.tally
        if usd is not None:
            tally.estimated_usd = (tally.estimated_usd or 0.0) + usd
        answers = f"{job.size} answers of run {run.run_id[:8]} to judge"
        log.info("%s: %s, %s", tally.model, answers, in_usd(usd))
        asked = job.grader.model
        if warning := asked and price_warning(asked.model, self.settings.budget):
            tally.warn(warning)

    def _expected_usd(self, run: Run, job: _Job) -> float | None:
        """Return the cost of all verdicts, by earlier ones or by a few of the answers."""
        model, judge = run.model, job.grader.model
        # Steps cost nothing unless a model has reviewed them; code is no measure for answers.
        reviews = average_usage(self.journal, JUDGED, model, job.code, STEPS)
        usd = sum((reviews[suite].cost_usd or 0.0) * len(ids) for suite, ids in job.code.items())
        known: Mapping[str, AverageUsage] = {}
        # Not where rules come first: the journal does not say how much they leave to the model.
        if judge is not None and not job.grader.rules:
            known = average_usage(self.journal, JUDGED, model, job.answers, judge.model.id)
        for suite, ids in job.answers.items():
            each = known[suite].cost_usd if suite in known else None
            if each is None:
                read = read_predictions(self.journal, model, run.run_id, ids)
                few = list(islice(read, ANSWERS_TO_ESTIMATE_BY))
                each = job.grader.guess_usd(few, self.items(run.benchmark_version))
            if each is None:
                return None
            usd += each * len(ids)
        return usd

    def _runs(self, model: str) -> Iterator[Run]:
        for run in runs_to_judge(model, self.launch, self.journal):
            if self._versions is None or run.benchmark_version in self._versions:
                yield read_run(self.journal, model, run.run_id)
            else:
                self.left_out.append(run)

    @cached_property
    def _versions(self) -> Set[str] | None:
        """The benchmark versions whose runs are judged; None for all of them.

        To judge archived runs once more costs as much again, and no leaderboard shows it.
        """
        again = self.this_judge or self.launch.mode is Mode.FRESH
        if self.launch.names_runs or not again:
            return None
        loaded = sorted(self.journal.read(VERSIONS), key=lambda version: version.loaded_at)
        return {one.benchmark_version for one in [*loaded[-1:], *minted(self.journal)[-1:]]}

    def _jobs(self, run: Run, tallies: Sequence[StageProgress]) -> list[_Job]:
        """Return what is left to judge, for every judge that has not had to stop."""
        coding = self._coding_suites(run)
        results = final_results(self.journal, run)
        graders = self._graders(run, coding)
        by_any = not self.this_judge
        state = judging_state(self.journal, run, results.keys(), self.launch, by_any=by_any)
        if state.whole and graders[0].key not in state.whole:
            log.info(OTHER_JUDGE, run.model, run.run_id[:8], state.whole[-1].judge)
        jobs = []
        # A spent budget is that of one run: it does not fail the tally.
        for grader, tally in zip(graders, tallies, strict=False):
            by_suite: dict[str, set[str]] = defaultdict(set)
            if not state.whole:
                for one in results.keys() - state.by.get(grader.key, set()):
                    by_suite[results[one].suite].add(one)
            code = {suite: by_suite.pop(suite) for suite in coding & by_suite.keys()}
            if (by_suite or code) and not tally.failed:
                jobs.append(_Job(grader, by_suite, code, tally))
        return jobs

    def _graders(self, run: Run, coding: Set[str]) -> Sequence[Grader]:
        """Where there is nothing but code, no judge is named for what it has no part in."""
        if all(key.suite in coding for key in run.plan):
            return [Grader(self.launch.origin)]
        if not all(grader.judges_answers for grader in self.graders):
            raise RunError("Answers to questions need a judge: name one in judge.model.")
        return self.graders

    def _coding_suites(self, run: Run) -> Set[str]:
        return past_version(self.journal, run.benchmark_version).coding_suites

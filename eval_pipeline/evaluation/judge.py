"""Judging every prediction that has no verdict yet, by one judge or by several."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.budget import Ledger, unpriced
from eval_pipeline.evaluation.code_graders import Workshop
from eval_pipeline.evaluation.grading import Grader, Reviewing, graders_of
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.runs import refuse_without_text
from eval_pipeline.evaluation.state import PAST_RUNS
from eval_pipeline.evaluation.unjudged import Settled, predictions_of, results_of, settled_of
from eval_pipeline.evaluation.usage import VerdictCosts
from eval_pipeline.evaluation.workers import (
    Shift,
    Tally,
    WorkedOn,
    compact,
    holding,
    stopped_by_trouble,
    tell,
    unless_stopped,
)
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.journal import JUDGED, RUNS, VERSIONS, Journal, JournalWriter
from eval_pipeline.logs import about
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import ExamQuestion, Item, ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Mode, Run
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.settings.settings import CONVEX_KEY, Settings
from eval_pipeline.suites.benchmark import minted, past_items, past_version

log = logging.getLogger(__name__)
_Items = Mapping[ItemKey, Item]
_Writer = JournalWriter[Judgement]


async def judge(
    models: Sequence[str],
    judges: Model | Sequence[Model],
    launch: Launch,
    *,
    settings: Settings,
    journal: Journal,
    this_judge: bool = False,
    reviewer: Model | None = None,
    board: list[Tally] | None = None,
) -> list[Tally]:
    """Judges what is pending for these models; with `this_judge` also what others have judged.

    Of several judges each one judges everything. Where the settings let the rules judge alone,
    no judge is asked. There is one tally per model and judge. What is judged although it has been
    before is of the current or the published benchmark version, unless the launch names its run.
    Code is graded in steps; the reviewer, if there is one, is an AI grader beside its tests.
    """
    _check_run(journal, models, launch.continue_run)
    async with Gateways(settings) as gateways:
        chosen = [judges] if isinstance(judges, Model) else judges
        graders = graders_of(chosen, settings, gateways, launch.origin)
        stage = _Judge(
            graders,
            launch,
            settings,
            journal,
            Ledger(settings.budget, journal),
            Workshop(
                settings.coding,
                settings.data,
                fresh=launch.mode is Mode.FRESH,
                convex_key=settings.keys.get(CONVEX_KEY),
            ),
            Reviewing.by(reviewer, settings, gateways) if reviewer else None,
            this_judge or len(graders) > 1,
        )
        tallies = {model: stage.tallies(model) for model in models}
        if board is not None:
            board.extend(tally for row in tallies.values() for tally in row)
        async with asyncio.TaskGroup() as group:
            for model, row in tallies.items():
                group.create_task(stage.run(model, row))
        stage.tell_what_was_left_out()
        return [tally for row in tallies.values() for tally in row]


def _check_run(journal: Journal, models: Sequence[str], run_id: str | None) -> None:
    runs = (run for model in models for run in journal.read(PAST_RUNS, model))
    if run_id is not None and not any(run.run_id.startswith(run_id) for run in runs):
        raise RunError(f"There is no run {run_id} to judge; the table `runs` lists them.")


class _Job(NamedTuple):
    """What one judge has to do in one run: answers to questions, and code."""

    grader: Grader
    answers: Set[str]
    code: Set[str]
    tally: Tally
    suites: Mapping[str, str]

    @property
    def pending(self) -> Set[str]:
        return self.answers | self.code

    def by_suite(self, some: Set[str]) -> Mapping[str, Set[str]]:
        """These predictions apart, by the suite of their item."""
        found: dict[str, set[str]] = {}
        for one in some:
            found.setdefault(self.suites[one], set()).add(one)
        return found


@dataclass(frozen=True)
class _Judge:
    graders: Sequence[Grader]
    launch: Launch
    settings: Settings
    journal: Journal
    ledger: Ledger
    workshop: Workshop
    reviewing: Reviewing | None
    this_judge: bool
    items: dict[str, _Items] = field(default_factory=dict)
    left_out: list[Run] = field(default_factory=list)

    def tallies(self, model: str) -> list[Tally]:
        """One per judge, which is named where there are several."""
        if len(self.graders) == 1:
            return [Tally(model, "judged")]
        return [Tally(f"{model} by {grader.judge}", "judged") for grader in self.graders]

    async def run(self, model: str, tallies: Sequence[Tally]) -> None:
        with about(model=model):
            await self._judge_all(model, tallies)
            for tally in (one for one in tallies if one.planned or one.stopped):
                tell(tally)

    async def _judge_all(self, model: str, tallies: Sequence[Tally]) -> None:
        with stopped_by_trouble(*tallies):
            async with holding(self.journal.claim(JUDGED, model)):
                for run in self._runs(model):
                    async with unless_stopped():
                        jobs = await asyncio.to_thread(self._jobs, run, tallies)
                    if jobs or self.launch.names_runs:
                        for tally in tallies:
                            tally.runs.append(WorkedOn(run.run_id, run.model))
                    if jobs:
                        refuse_without_text(run, self._items(run))
                        await self._judge_run(run, jobs)

    async def _judge_run(self, run: Run, jobs: Sequence[_Job]) -> None:
        """All judges at once; one that has to stop does not stop the others."""
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(self._do(run, job))
        # Only now, for it must not take away a file that another judge still writes to.
        await compact(self.journal, JUDGED, run.model, run.run_id)

    async def _do(self, run: Run, job: _Job) -> None:
        with about(run_id=run.run_id), stopped_by_trouble(job.tally):
            job.tally.planned += len(job.pending)
            async with unless_stopped():
                await self._announce(run, job)
            items = self._items(run)
            async with (
                self.journal.writer(JUDGED, run.model, run.run_id) as writer,
                asyncio.TaskGroup() as group,
            ):
                if job.answers:
                    group.create_task(self._judge_answers(run, job, items, writer))
                if job.code:
                    group.create_task(self._grade_code(run, job, items, writer))

    async def _judge_answers(self, run: Run, job: _Job, items: _Items, writer: _Writer) -> None:
        shift = self._shift(run, job, self.settings.judge.num_workers)

        async def do(one: Prediction) -> None:
            if isinstance(item := items[one.key], ExamQuestion):
                await shift.land(await job.grader.grade(one, item, shift), writer)

        await shift.work_through(predictions_of(self.journal, run, job.answers), do)

    async def _grade_code(self, run: Run, job: _Job, items: _Items, writer: _Writer) -> None:
        """Beside the judges, which wait for others while this needs the machine itself."""
        with stopped_by_trouble(job.tally):
            coding = self._coding_suites(run)
            code = await self.workshop.open(items[key] for key in run.plan if key.suite in coding)
            shift = self._shift(run, job, self.workshop.num_workers)
            reviewer = self.reviewing.within(shift) if self.reviewing else None

            async def do(one: Prediction) -> None:
                if isinstance(item := items[one.key], CodingTask):
                    await shift.land(await job.grader.grade_code(one, item, code, reviewer), writer)

            await shift.work_through(predictions_of(self.journal, run, job.code), do)

    def _shift(self, run: Run, job: _Job, num_workers: int) -> Shift:
        return Shift(
            job.tally,
            self.ledger.account(run.run_id, run.model),
            num_workers=num_workers,
            stop_after_failures=self.settings.requests.stop_after_failures,
        )

    async def _announce(self, run: Run, job: _Job) -> None:
        usd, tally = await in_a_thread(self._expected_usd, run, job), job.tally
        if usd is not None:
            tally.estimated_usd = (tally.estimated_usd or 0.0) + usd
        answers = f"{len(job.pending)} answers of run {run.run_id[:8]} to judge"
        cost = "at an unknown cost" if usd is None else f"about {usd:.2f} USD"
        log.info("%s: %s, %s", tally.model, answers, cost)
        asked = job.grader.model
        warning = asked and unpriced(asked.model, self.settings.budget)
        if warning and warning not in tally.warnings:
            log.warning(warning)
            tally.warnings.append(warning)

    def _expected_usd(self, run: Run, job: _Job) -> float | None:
        read = partial(predictions_of, self.journal, run)
        costs = VerdictCosts(self.journal, run.model, job.grader, self._items(run), read)
        return costs.expect(job.by_suite(job.answers), job.by_suite(job.code))

    def _runs(self, model: str) -> Iterator[Run]:
        wanted = self.launch.run_for(model)
        for run in self.journal.read(PAST_RUNS, model):
            if run.is_closed or (wanted is not None and not run.run_id.startswith(wanted)):
                continue
            # Its own judge has not scored all of it: to have that done anew is for people to say.
            if run.is_imported and not self.launch.names_runs:
                continue
            if self._versions is not None and run.benchmark_version not in self._versions:
                self.left_out.append(run)
                continue
            yield next(self.journal.read_file(RUNS, model, run.run_id))

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

    def tell_what_was_left_out(self) -> None:
        """Says in the log how many runs were not looked at, and how to have them judged."""
        if self.left_out:
            log.info(
                "Runs left out, since they are neither of the current nor of the published "
                "benchmark version: %d. To judge one of them in this way, name it in run_id.",
                len(self.left_out),
            )

    def _jobs(self, run: Run, tallies: Sequence[Tally]) -> list[_Job]:
        """What is left to judge, for every judge that has not had to stop."""
        coding = self._coding_suites(run)
        results = results_of(self.journal, run)
        graders = self._graders(run, coding)
        settled = settled_of(
            self.journal, run, results.keys(), self.launch, by_any=not self.this_judge
        )
        self._tell_of_others(run, graders, settled)
        jobs = []
        for grader, tally in zip(graders, tallies, strict=False):
            pending = settled.pending(results.keys(), (grader.judge, grader.version))
            code = {one for one in pending if results[one] in coding}
            jobs.append(_Job(grader, pending - code, code, tally, results))
        # A spent budget is that of one run: it does not fail the tally.
        return [job for job in jobs if job.pending and not job.tally.failed]

    def _graders(self, run: Run, coding: Set[str]) -> Sequence[Grader]:
        """Where there is nothing but code, no judge is named for what it has no part in."""
        if all(key.suite in coding for key in run.plan):
            return [Grader(self.launch.origin)]
        if not all(grader.judges_answers for grader in self.graders):
            raise RunError("Answers to questions need a judge: name one in judge.model.")
        return self.graders

    def _tell_of_others(self, run: Run, graders: Sequence[Grader], settled: Settled) -> None:
        """That a run keeps the judge it has, where the settings name another one now."""
        if settled.whole and (graders[0].judge, graders[0].version) not in settled.whole:
            log.info(
                "%s: run %s stays with %s; to have it judged anew, name the judge, the prompt or "
                "the rules in a launch of `judged`",
                run.model,
                run.run_id[:8],
                settled.whole[-1][0],
            )

    def _coding_suites(self, run: Run) -> Set[str]:
        return past_version(self.journal, run.benchmark_version).coding_suites

    def _items(self, run: Run) -> _Items:
        if run.benchmark_version not in self.items:
            self.items[run.benchmark_version] = past_items(self.journal, run.benchmark_version)
        return self.items[run.benchmark_version]

"""Judging every prediction that has no verdict yet, by one judge or by several."""

import asyncio
import logging
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from eval_pipeline.benchmark import minted, past_items
from eval_pipeline.environment import SettingsError
from eval_pipeline.history import PAST_RUNS, PREDICTION_BRIEFS, JudgementBrief, Replies
from eval_pipeline.journal import (
    JUDGED,
    PREDICTIONS,
    RUNS,
    VERSIONS,
    GoneError,
    Journal,
    JournalError,
    Stream,
)
from eval_pipeline.money import Ledger, unpriced
from eval_pipeline.outcomes import Outcome
from eval_pipeline.providers.gateways import Gateways
from eval_pipeline.records import Item, ItemKey, Model, Prediction, Run
from eval_pipeline.runs import Mode, RunError
from eval_pipeline.settings import Settings
from eval_pipeline.stages.grading import Grader, graders_of
from eval_pipeline.stages.predict import Launch
from eval_pipeline.stages.workers import Shift, Tally, compact, stopped_by_trouble

log = logging.getLogger(__name__)
ANSWERS_TO_ESTIMATE_BY = 50


class _VerdictBrief(JudgementBrief):
    """Of a judgement, also what tells whether it is to be given again."""

    launch: str | None = None


_VERDICT_BRIEFS = Stream(JUDGED.name, _VerdictBrief)


async def judge(
    models: Sequence[str],
    judges: Model | Sequence[Model],
    launch: Launch,
    *,
    settings: Settings,
    journal: Journal,
    this_judge: bool = False,
    board: list[Tally] | None = None,
) -> list[Tally]:
    """Judges what is pending for these models; with `this_judge` also what others have judged.

    Of several judges each one judges everything. Where the settings let the rules judge alone,
    no judge is asked. There is one tally per model and judge. What is judged although it has been
    before is of the current or the published benchmark version, unless the launch names its run.
    """
    _check_run(journal, models, launch.continue_run)
    async with Gateways(settings) as gateways:
        chosen = [judges] if isinstance(judges, Model) else judges
        graders = graders_of(chosen, settings, gateways, _origin(launch))
        ledger = Ledger(settings.budget, journal)
        stage = _Judge(graders, launch, settings, journal, ledger, this_judge or len(graders) > 1)
        tallies = {model: stage.tallies(model) for model in models}
        if board is not None:
            board.extend(tally for row in tallies.values() for tally in row)
        async with asyncio.TaskGroup() as group:
            for model, row in tallies.items():
                group.create_task(stage.run(model, row))
        stage.tell_what_was_left_out()
        return [tally for row in tallies.values() for tally in row]


def _origin(launch: Launch) -> str:
    """A launch that is tried again goes on as the one that it was at first."""
    return launch.retry_of or launch.run_id


def _check_run(journal: Journal, models: Sequence[str], run_id: str | None) -> None:
    runs = (run for model in models for run in journal.read(PAST_RUNS, model))
    if run_id is not None and not any(run.run_id.startswith(run_id) for run in runs):
        raise RunError(f"There is no run {run_id} to judge; the table `runs` lists them.")


class _Job(NamedTuple):
    """What one judge has to do in one run."""

    grader: Grader
    pending: Set[str]
    tally: Tally


@dataclass(frozen=True)
class _Judge:
    graders: Sequence[Grader]
    launch: Launch
    settings: Settings
    journal: Journal
    ledger: Ledger
    this_judge: bool
    items: dict[str, Mapping[ItemKey, Item]] = field(default_factory=dict)
    left_out: list[Run] = field(default_factory=list)

    def tallies(self, model: str) -> list[Tally]:
        """One per judge, which is named where there are several."""
        if len(self.graders) == 1:
            return [Tally(model, "judged")]
        return [Tally(f"{model} by {grader.judge}", "judged") for grader in self.graders]

    async def run(self, model: str, tallies: Sequence[Tally]) -> None:
        try:
            async with self.journal.claim(JUDGED, model):
                for run in self._runs(model):
                    jobs = await asyncio.to_thread(self._jobs, run, tallies)
                    await self._judge_run(run, jobs)
        except (SettingsError, RunError, JournalError) as error:
            for tally in tallies:
                tally.stop(str(error), failed=True)
        for tally in tallies:
            if tally.planned or tally.stopped:
                log.info(tally.line())

    async def _judge_run(self, run: Run, jobs: Sequence[_Job]) -> None:
        """All judges at once; one that has to stop does not stop the others."""
        if not jobs:
            return
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(self._do(run, job))
        # Only now, for it must not take away a file that another judge still writes to.
        await compact(self.journal, JUDGED, run.model, run.run_id)

    async def _do(self, run: Run, job: _Job) -> None:
        with stopped_by_trouble(job.tally):
            job.tally.planned += len(job.pending)
            self._announce(run, job)
            items = self._items(run)
            shift = Shift(
                job.tally,
                self.ledger.account(run.run_id, run.model),
                num_workers=self.settings.judge.num_workers,
                stop_after_failures=self.settings.requests.stop_after_failures,
            )
            async with self.journal.writer(JUDGED, run.model, run.run_id) as writer:

                async def do(one: Prediction) -> None:
                    await shift.land(await job.grader.grade(one, items[one.key], shift), writer)

                await shift.work_through(self._predictions(run, job.pending), do)

    def _announce(self, run: Run, job: _Job) -> None:
        each, tally = self._expected_usd(run, job), job.tally
        if each is not None:
            tally.estimated_usd = (tally.estimated_usd or 0.0) + each * len(job.pending)
        answers = f"{len(job.pending)} answers of run {run.run_id[:8]} to judge"
        cost = "at an unknown cost" if each is None else f"about {each * len(job.pending):.2f} USD"
        log.info("%s: %s, %s", tally.model, answers, cost)
        asked = job.grader.model
        warning = asked and unpriced(asked.model, self.settings.budget)
        if warning and warning not in tally.warnings:
            log.warning(warning)
            tally.warnings.append(warning)

    def _expected_usd(self, run: Run, job: _Job) -> float | None:
        """By what verdicts have cost before, unless those may have been another judge's."""
        if len(self.graders) == 1 and not job.grader.rules:
            usual = self.ledger.usual_usd(JUDGED, run.model)
            if usual is not None:
                return usual
        few = list(islice(self._predictions(run, job.pending), ANSWERS_TO_ESTIMATE_BY))
        return job.grader.guess_usd(few, self._items(run))

    def _runs(self, model: str) -> Iterator[Run]:
        wanted = self.launch.continue_run
        for run in self.journal.read(PAST_RUNS, model):
            if wanted is not None and not run.run_id.startswith(wanted):
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
        if self.launch.continue_run is not None or not again:
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

    def _jobs(self, run: Run, tallies: Sequence[Tally]) -> list[_Job]:
        """What is left to judge, for every judge that has not had to stop."""
        results = self._results(run)
        settled = self._settled(run, results)
        pairs = zip(self.graders, tallies, strict=True)
        jobs = [_Job(one, results - settled[one.judge, one.version], tally) for one, tally in pairs]
        # A spent budget is that of one run: it does not fail the tally.
        return [job for job in jobs if job.pending and not job.tally.failed]

    def _results(self, run: Run) -> Set[str]:
        """Ids of the predictions that say something about the model, and are the last to do so."""
        while True:
            try:
                return self._last_results(run)
            except GoneError:  # compacted meanwhile: they stand in another file now
                continue

    def _last_results(self, run: Run) -> Set[str]:
        """In one pass, for the model may still be asked: read again, the journal may have grown."""
        replies = Replies(run.plan, run.samples)
        moments = array("d", [0.0]) * len(replies)
        ids: list[str | None] = [None] * len(replies)
        for brief in self.journal.read(PREDICTION_BRIEFS, run.model, run.run_id):
            reply, moment = replies.find(brief.key, brief.sample), brief.finished_at.timestamp()
            if reply is not None and moments[reply] <= moment:
                moments[reply] = moment
                ids[reply] = brief.prediction_id if brief.outcome.is_result else None
        return {one for one in ids if one is not None}

    def _settled(self, run: Run, results: Set[str]) -> Mapping[tuple[str, str], Set[str]]:
        """What each judge need not judge now; one judge's whole work settles a run for any other.

        Not by parts: what several did in part, the present one does as a whole.
        """
        settled: dict[tuple[str, str], set[str]] = defaultdict(set)
        scored: dict[tuple[str, str], set[str]] = defaultdict(set)
        resuming = self.launch.mode is Mode.RESUME
        for verdict in self.journal.read(_VERDICT_BRIEFS, run.model, run.run_id):
            if not self._stands(verdict):
                continue
            by = (verdict.judge, verdict.judge_version)
            settled[by].add(verdict.prediction_id)
            if verdict.score is not None or resuming:
                scored[by].add(verdict.prediction_id)
        by_any = not self.this_judge and self.launch.mode is not Mode.FRESH
        whole = [by for by, done in scored.items() if done >= results]
        if by_any and whole and results:
            self._tell_of_others(run, whole)
            return defaultdict(lambda: set(results))
        return settled

    def _tell_of_others(self, run: Run, whole: Sequence[tuple[str, str]]) -> None:
        """That a run keeps the judge it has, where the settings name another one now."""
        (present,) = self.graders
        if (present.judge, present.version) not in whole:
            log.info(
                "%s: run %s stays with %s; to have it judged anew, name the judge, the prompt or "
                "the rules in a launch of `judged`",
                run.model,
                run.run_id[:8],
                whole[-1][0],
            )

    def _stands(self, verdict: _VerdictBrief) -> bool:
        """Whether it need not be given again in this mode."""
        if self.launch.mode is Mode.RESUME:
            return True
        if self.launch.mode is Mode.FRESH and verdict.launch != _origin(self.launch):
            return False
        return verdict.score is not None or verdict.outcome is Outcome.UNDECIDED

    def _items(self, run: Run) -> Mapping[ItemKey, Item]:
        if run.benchmark_version not in self.items:
            self.items[run.benchmark_version] = past_items(self.journal, run.benchmark_version)
        return self.items[run.benchmark_version]

"""Finding out why replies were wrong: an analyst explains each failure that nobody has yet."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import NamedTuple

import duckdb
from pydantic import AwareDatetime, ConfigDict

from eval_pipeline.analysis.analyst import Analyst
from eval_pipeline.analysis.evidence import Evidence, read_found
from eval_pipeline.analysis.failures import Failure, find_failed, find_latest, to_analyse
from eval_pipeline.evaluation.budget import SpendTracker, price_warning
from eval_pipeline.evaluation.catalog import look_up
from eval_pipeline.evaluation.estimate import average_usage
from eval_pipeline.evaluation.requests import ModelClient, model_client
from eval_pipeline.evaluation.workers import (
    StageProgress,
    WorkerPool,
    compact,
    holding,
    log_summary,
    stopped_by_trouble,
    unless_stopped,
)
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.gateways.structured import ParsedReply
from eval_pipeline.journal import DIAGNOSES, Journal, Stream
from eval_pipeline.logs import about
from eval_pipeline.records.base import Record, now
from eval_pipeline.records.diagnosis import Diagnosis, Explanation
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.results.runs import FoundRun, Row, State, run_rows
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import SETTINGS_FILE, Settings
from eval_pipeline.suites.benchmark import past_items
from eval_pipeline.suites.kinds import gaps_hash

log = logging.getLogger(__name__)
READ_AT_ONCE = 20
"""How many failures are read together: each reading opens the warehouse for a moment."""
NOT_THE_MODEL_S = "which says nothing about the model"


class PassedOver(NamedTuple):
    """Why a run is not analysed; `is_early` if it can be once more of it is done."""

    sentence: str
    is_early: bool


class Scope(NamedTuple):
    """Runs with failures to analyse, as rows, those failures, and why other runs are left out."""

    runs: Sequence[Row]
    failures: Sequence[Failure]
    passed_over: Sequence[PassedOver]

    @property
    def incomplete(self) -> list[str]:
        """Return a sentence about each of these runs that is not complete."""
        return [
            f"{_named(run)} is not complete, so more may turn out wrong: {run['next_step']}"
            for run in self.runs
            if run["next_step"]
        ]


def chosen_runs(
    db: duckdb.DuckDBPyConnection, name: str | None, models: Sequence[str] = ()
) -> list[FoundRun]:
    """Return the runs of that name, or the latest of each model and experiment.

    Only those that `models` match: ids, parts of them, or patterns such as `demo/*`.
    """
    return find_latest(db, models) if name is None else find_failed(db, name, models)


def scope_of(
    db: duckdb.DuckDBPyConnection, runs: Sequence[FoundRun], at_work: Collection[str]
) -> Scope:
    """Return what to analyse in these runs; `at_work` are launches whose process is alive."""
    meant = {(run.run_id, run.model) for run in runs}
    rows = [row for row in run_rows(db, at_work) if (row["run_id"], row["model"]) in meant]
    wrong = to_analyse(db, runs)
    about = {(one.run_id, one.model) for one in wrong}
    ready = [row for row in rows if (row["run_id"], row["model"]) in about and not _is_going(row)]
    kept = {(row["run_id"], row["model"]) for row in ready}
    others = (row for row in rows if (row["run_id"], row["model"]) not in kept)
    return Scope(
        ready,
        [one for one in wrong if (one.run_id, one.model) in kept],
        [_why_not(row) for row in others],
    )


def _why_not(run: Row) -> PassedOver:
    if _is_going(run):
        said = f"{_named(run)} is still going: analyze it when it is done."
        return PassedOver(said, is_early=True)
    if not run["judged"]:
        return PassedOver(_without_verdicts(run), is_early=True)
    right = f"{_named(run)}: nothing is wrong among {run['judged']} judged replies."
    left = run["next_step"]
    return PassedOver(f"{right} {_what_is_left(run)}" if left else right, is_early=bool(left))


def _without_verdicts(run: Row) -> str:
    """Return why the run has no verdicts yet."""
    again = f"evals fix {run['run_id'][:8]}"
    if run["answered"]:
        return f"{_named(run)} is not judged yet: {again}{'' if run['failed'] else ' --judge'}"
    if run["failed"]:
        return f"{_named(run)}: no reply came, {NOT_THE_MODEL_S}. To ask again: {again}"
    return f"{_named(run)}: nobody was asked yet. To go on: {run['next_step']}"


def _what_is_left(run: Row) -> str:
    if run["failed"]:
        return f"{run['failed']} failed on the way, {NOT_THE_MODEL_S}: {run['next_step']}"
    return f"But it is not complete: {run['next_step']}"


def _is_going(run: Row) -> bool:
    """Return whether more is to come; the launch of a complete run may still be publishing."""
    return run["state"] is State.RUNNING


def _named(run: Row) -> str:
    return f"{run['model']}, run {run['run_id'][:8]}"


def analyst_of(settings: Settings, journal: Journal) -> Model:
    """Return the model that looks into failures."""
    if settings.analysis.model is None:
        raise SettingsError(
            f"Nobody looks into failures: name a model under [analysis] in {SETTINGS_FILE}."
        )
    (found,) = look_up(journal, [settings.analysis.model])
    return found


async def analyse(
    failures: Sequence[Failure],
    launch: str,
    *,
    settings: Settings,
    journal: Journal,
    analyst: Model,
    fresh: bool = False,
    board: list[StageProgress] | None = None,
) -> list[StageProgress]:
    """Has the analyst explain what it has not explained in this way yet; one tally per model.

    With `fresh`, what it has explained before this launch is explained anew. The warehouse has to
    know the failures.
    """
    by_model: dict[str, list[Failure]] = defaultdict(list)
    for failure in dict.fromkeys(failures):
        by_model[failure.model].append(failure)
    tallies = {model: StageProgress(model, "analysed") for model in by_model}
    if board is not None:
        board.extend(tallies.values())
    if not tallies:
        return []
    async with Gateways(settings) as gateways, asyncio.TaskGroup() as group:
        with stopped_by_trouble(*tallies.values()):
            most = settings.analysis.num_workers
            stage = _Analyse(
                Analyst(analyst, settings.analysis.max_tokens),
                # The failures of all models go to the same analyst, so they share its pace.
                model_client(analyst, settings, gateways, most),
                launch,
                settings,
                journal,
                SpendTracker(settings.budget, journal),
                fresh,
            )
            for model, failed in by_model.items():
                group.create_task(stage.run(model, failed, tallies[model]))
    return list(tallies.values())


class _DiagnosisBrief(Record):
    """Of a diagnosis, what tells whether it need not be made again."""

    model_config = ConfigDict(extra="ignore")

    prediction_id: str
    judge: str
    judge_version: str
    analyst: str
    analyst_version: str
    outcome: Outcome
    launch: str | None = None
    gaps_hash: str | None = None
    finished_at: AwareDatetime


_DIAGNOSIS_BRIEFS = Stream(DIAGNOSES.name, _DiagnosisBrief)
_Items = Mapping[ItemKey, Item]


@dataclass(frozen=True)
class _Analyse:
    analyst: Analyst
    asking: ModelClient
    launch: str
    settings: Settings
    journal: Journal
    ledger: SpendTracker
    fresh: bool
    items: dict[str, _Items] = field(default_factory=dict)
    loading: Lock = field(default_factory=Lock)

    async def run(self, model: str, failures: Sequence[Failure], tally: StageProgress) -> None:
        """Explains what is pending of one model, and tells what came of it."""
        with about(model=model):
            await self._explain(model, failures, tally)
            if tally.planned or tally.stopped:
                log_summary(tally)

    async def _explain(self, model: str, failures: Sequence[Failure], tally: StageProgress) -> None:
        """Run by run: each has a budget of its own."""
        with stopped_by_trouble(tally):
            async with holding(self.journal.claim(DIAGNOSES, model)):
                pending = await in_a_thread(self._pending, model, failures)
                tally.planned = sum(map(len, pending.values()))
                self._warn(tally)
                for run_id, failed in pending.items():
                    if not tally.failed:
                        with about(run_id=run_id):
                            await self._explain_run(model, run_id, failed, tally)

    async def _explain_run(
        self, model: str, run_id: str, failures: Sequence[Failure], tally: StageProgress
    ) -> None:
        pool = WorkerPool(
            tally,
            self.ledger.run_budget(run_id, model),
            num_workers=self.settings.analysis.num_workers,
            stop_after_failures=self.settings.requests.stop_after_failures,
        )
        read = partial(in_a_thread, self._read, model, run_id)
        async with unless_stopped():
            await self._announce(run_id, tally, failures, read)
        shelf = _Shelf(failures, read)
        async with self.journal.writer(DIAGNOSES, model, run_id) as writer:

            async def do(failure: Failure) -> None:
                evidence = await shelf.take(failure)
                if evidence is None:
                    tally.planned -= 1
                    log.warning("%s: the reply to %s is gone.", model, failure.item_id)
                    return
                ask = partial(self.asking.ask, pool=pool)
                given = await self.analyst.explain(evidence, ask)
                await pool.record(self._diagnosis(evidence, given), writer)

            await pool.work_through(failures, do)
        await compact(self.journal, DIAGNOSES, model, run_id)

    def _diagnosis(self, evidence: Evidence, given: ParsedReply[Explanation]) -> Diagnosis:
        failure, reply = evidence.failure, given.reply
        return Diagnosis(
            prediction_id=failure.prediction_id,
            run_id=failure.run_id,
            model=failure.model,
            suite=failure.suite,
            item_id=failure.item_id,
            sample=failure.sample,
            judge=failure.judge,
            judge_version=failure.judge_version,
            analyst=self.analyst.model.id,
            analyst_version=self.analyst.version,
            outcome=given.outcome,
            # What was written with escapes is text only now.
            explanation=given.value and self.settings.redacted(given.value),
            reason=given.error or "",
            reply_format=given.reply_format,
            raw_reply=(reply.text or reply.refusal) if reply else None,
            latency_s=reply.latency_s if reply else None,
            usage=given.usage,
            attempts=given.attempts,
            launch=self.launch,
            gaps_hash=gaps_hash(evidence.item),
            finished_at=now(),
        )

    async def _announce(
        self, run_id: str, tally: StageProgress, failures: Sequence[Failure], read: "_Read"
    ) -> None:
        """Says what is to be done and what it may cost, judged by the first of it."""
        usd = await self._guess_usd(failures, read)
        if usd is not None:
            tally.estimated_usd = (tally.estimated_usd or 0.0) + usd
        cost = "at an unknown cost" if usd is None else f"about {usd:.2f} USD"
        simulated = " (simulated)" if self.analyst.model.simulated else ""
        what = f"{len(failures)} failures of run {run_id[:8]} to analyse"
        log.info("%s: %s by %s%s, %s", tally.model, what, self.analyst.model.id, simulated, cost)

    async def _guess_usd(self, failures: Sequence[Failure], read: "_Read") -> float | None:
        if not self.analyst.model.prices.known:
            return None
        by_suite: dict[str, list[Failure]] = defaultdict(list)
        for failure in failures:
            by_suite[failure.suite].append(failure)
        known = await in_a_thread(
            average_usage, self.journal, DIAGNOSES, failures[0].model, by_suite
        )
        usd = 0.0
        for suite, some in by_suite.items():
            each = known[suite].cost_usd
            usd += len(some) * (await self._guess_one_usd(some, read) if each is None else each)
        return usd

    async def _guess_one_usd(self, failures: Sequence[Failure], read: "_Read") -> float:
        """By what the analyst has to read about the first of them."""
        few = (await read(failures[:READ_AT_ONCE])).values()
        guesses = [self.asking.forecast.guess(self.analyst.request(one)).cost_usd for one in few]
        return sum(guesses) / max(len(guesses), 1)

    def _warn(self, tally: StageProgress) -> None:
        warning = price_warning(self.analyst.model, self.settings.budget)
        if warning and tally.planned:
            tally.warn(warning)

    def _pending(self, model: str, failures: Sequence[Failure]) -> dict[str, list[Failure]]:
        """What has no explanation yet, by run."""
        by_run: dict[str, list[Failure]] = defaultdict(list)
        for failure in failures:
            if self._item(failure).question:  # some were imported by their ids alone
                by_run[failure.run_id].append(failure)
        left = {run_id: self._unexplained(model, run_id, by_run[run_id]) for run_id in by_run}
        return {run_id: failed for run_id, failed in left.items() if failed}

    def _unexplained(self, model: str, run_id: str, failures: Sequence[Failure]) -> list[Failure]:
        by = (self.analyst.model.id, self.analyst.version)
        last: dict[tuple[str, str, str], _DiagnosisBrief] = {}
        for said in self.journal.read(_DIAGNOSIS_BRIEFS, model, run_id):
            if (said.analyst, said.analyst_version) == by and self._stands(said):
                about = (said.prediction_id, said.judge, said.judge_version)
                last[about] = max(last.get(about, said), said, key=lambda one: one.finished_at)
        return [
            one
            for one in failures
            if not self._explains(last.get((one.prediction_id, one.judge, one.judge_version)), one)
        ]

    def _explains(self, said: _DiagnosisBrief | None, failure: Failure) -> bool:
        """Whether it does so in the light of all faults of the task that are known now."""
        return said is not None and said.gaps_hash == gaps_hash(self._item(failure))

    def _stands(self, diagnosis: _DiagnosisBrief) -> bool:
        """Whether it is an explanation that need not be given again."""
        again = self.fresh and diagnosis.launch != self.launch
        return diagnosis.outcome is Outcome.OK and not again

    def _read(
        self, model: str, run_id: str, failures: Sequence[Failure]
    ) -> dict[Failure, Evidence]:
        """All that is known of a few failures; the warehouse is closed again before any asking."""
        warehouse = Warehouse(self.settings.database, self.journal)
        with warehouse.reading() as db:
            found = read_found(db, run_id, model, failures)
        return {one: Evidence(one, self._item(one), found[one]) for one in found}

    def _item(self, failure: Failure) -> Item:
        version = failure.benchmark_version
        with self.loading:  # of several threads one is enough
            if version not in self.items:
                self.items[version] = past_items(self.journal, version)
        return self.items[version][ItemKey(failure.suite, failure.item_id)]


_Read = Callable[[Sequence[Failure]], Awaitable[dict[Failure, Evidence]]]


class _Shelf:
    """The evidence of failures that are taken in their order: a few of them at a time are read."""

    def __init__(self, failures: Sequence[Failure], read: _Read) -> None:
        self._failures = failures
        self._places = {failure: place for place, failure in enumerate(failures)}
        self._read = read
        self._there: dict[Failure, Evidence | None] = {}
        self._reading = asyncio.Lock()

    async def take(self, failure: Failure) -> Evidence | None:
        """What is known of the failure; None if its reply is not there any more."""
        async with self._reading:
            if failure not in self._there:
                place = self._places[failure]
                few = self._failures[place : place + READ_AT_ONCE]
                self._there |= {**dict.fromkeys(few), **await self._read(few)}
            return self._there.pop(failure)

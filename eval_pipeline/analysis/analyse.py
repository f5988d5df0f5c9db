"""Finding out why replies were wrong: an analyst explains each failure that nobody has yet."""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple

import duckdb
from pydantic import AwareDatetime, ConfigDict

from eval_pipeline.analysis.analyst import Analyst
from eval_pipeline.analysis.evidence import Evidence, read_evidence
from eval_pipeline.analysis.failures import Failure, to_analyse
from eval_pipeline.evaluation.budget import SpendTracker, price_warning
from eval_pipeline.evaluation.catalog import look_up
from eval_pipeline.evaluation.estimate import average_usage, mean
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


def scope_of(
    db: duckdb.DuckDBPyConnection, runs: Sequence[FoundRun], at_work: Collection[str]
) -> Scope:
    """Return what to analyse in these runs; `at_work` are launches whose process is alive."""
    meant = {(run.run_id, run.model) for run in runs}
    wrong = {name: list(some) for name, some in groupby(to_analyse(db, runs), attrgetter("run"))}
    ready: dict[tuple[str, str], Row] = {}
    passed_over = []
    for row in run_rows(db, at_work):
        if (name := (row["run_id"], row["model"])) not in meant:
            continue
        # More is to come, unless the launch of a complete run is still publishing.
        if name in wrong and row["state"] is not State.RUNNING:
            ready[name] = row
        else:
            passed_over.append(_why_not(row))
    failures = [one for name in wrong if name in ready for one in wrong[name]]
    return Scope(list(ready.values()), failures, passed_over)


def _why_not(run: Row) -> PassedOver:
    name, left, again = _named(run), run["next_step"], f"evals fix {run['run_id'][:8]}"
    if run["state"] is State.RUNNING:
        said = f"{name} is still going: analyze it when it is done."
    elif run["judged"]:
        said = f"{name}: nothing is wrong among {run['judged']} judged replies."
        if left and run["failed"]:
            said += f" {run['failed']} failed on the way, {NOT_THE_MODEL_S}: {left}"
        elif left:
            said += f" But it is not complete: {left}"
        return PassedOver(said, is_early=bool(left))
    elif run["answered"]:
        said = f"{name} is not judged yet: {again}{'' if run['failed'] else ' --judge'}"
    elif run["failed"]:
        said = f"{name}: no reply came, {NOT_THE_MODEL_S}. To ask again: {again}"
    else:
        said = f"{name}: no item was asked yet. To continue: {left}"
    return PassedOver(said, is_early=True)


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
_Read = Callable[[Sequence[Failure]], Coroutine[Any, Any, dict[Failure, Evidence]]]


@dataclass(frozen=True)
class _Analyse:
    analyst: Analyst
    asking: ModelClient
    launch: str
    settings: Settings
    journal: Journal
    ledger: SpendTracker
    fresh: bool
    items: dict[str, Mapping[ItemKey, Item]] = field(default_factory=dict)
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
                warning = price_warning(self.analyst.model, self.settings.budget)
                if warning and pending:
                    tally.warn(warning)
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
        reading: dict[int, asyncio.Task[dict[Failure, Evidence]]] = {}
        async with self.journal.writer(DIAGNOSES, model, run_id) as writer:

            async def do(numbered: tuple[int, Failure]) -> None:
                number, failure = numbered
                first = number - number % READ_AT_ONCE
                # A read that failed is tried again for the failures that are still to come.
                if (found := reading.get(first)) is None or (found.done() and found.exception()):
                    few = failures[first : first + READ_AT_ONCE]
                    reading[first] = found = asyncio.create_task(read(few))
                evidence = (await found).pop(failure, None)
                if evidence is None:
                    tally.planned -= 1
                    log.warning("%s: the reply to %s is gone.", model, failure.item_id)
                    return
                ask = partial(self.asking.ask, pool=pool)
                given = await self.analyst.explain(evidence, ask)
                await pool.record(self._diagnosis(evidence, given), writer)

            await pool.work_through(enumerate(failures), do)
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
        self, run_id: str, tally: StageProgress, failures: Sequence[Failure], read: _Read
    ) -> None:
        """Says what is to be done and what it may cost, judged by the first of it."""
        usd = await self._guess_usd(failures, read)
        if usd is not None:
            tally.estimated_usd = (tally.estimated_usd or 0.0) + usd
        cost = "at an unknown cost" if usd is None else f"about {usd:.2f} USD"
        simulated = " (simulated)" if self.analyst.model.simulated else ""
        what = f"{len(failures)} failures of run {run_id[:8]} to analyse"
        log.info("%s: %s by %s%s, %s", tally.model, what, self.analyst.model.id, simulated, cost)

    async def _guess_usd(self, failures: Sequence[Failure], read: _Read) -> float | None:
        """Return the cost by what was explained lately, else by what is to be read at first."""
        if not self.analyst.model.prices.known:
            return None
        usd, suites = 0.0, Counter(one.suite for one in failures)
        known = await in_a_thread(average_usage, self.journal, DIAGNOSES, failures[0].model, suites)
        for suite, times in suites.items():
            each = known[suite].cost_usd
            if each is None:
                few = [one for one in failures if one.suite == suite][:READ_AT_ONCE]
                requests = map(self.analyst.request, (await read(few)).values())
                each = mean(self.asking.forecast.guess(one).cost_usd for one in requests) or 0.0
            usd += times * each
        return usd

    def _pending(self, model: str, failures: Sequence[Failure]) -> dict[str, list[Failure]]:
        """Return what has no explanation yet, by run."""
        by_run: dict[str, list[Failure]] = defaultdict(list)
        for failure in failures:
            if self._item(failure).question:  # some were imported by their ids alone
                by_run[failure.run_id].append(failure)
        left = {run_id: self._unexplained(model, run_id, by_run[run_id]) for run_id in by_run}
        return {run_id: failed for run_id, failed in left.items() if failed}

    def _unexplained(self, model: str, run_id: str, failures: Sequence[Failure]) -> list[Failure]:
        """Return those not explained in the light of all faults of the task that are known now."""
        by = (self.analyst.model.id, self.analyst.version)
        said = [
            one
            for one in self.journal.read(_DIAGNOSIS_BRIEFS, model, run_id)
            if (one.analyst, one.analyst_version) == by and one.outcome is Outcome.OK
            if one.launch == self.launch or not self.fresh
        ]
        said.sort(key=attrgetter("finished_at"))
        known = {(one.prediction_id, one.judge, one.judge_version): one.gaps_hash for one in said}
        return [one for one in failures if known.get(one.verdict, "") != gaps_hash(self._item(one))]

    def _read(
        self, model: str, run_id: str, failures: Sequence[Failure]
    ) -> dict[Failure, Evidence]:
        """Return all that is known of a few failures; no asking keeps the warehouse open."""
        items = {one: self._item(one) for one in failures}
        with Warehouse(self.settings.database, self.journal).reading() as db:
            return read_evidence(db, run_id, model, items)

    def _item(self, failure: Failure) -> Item:
        version = failure.benchmark_version
        with self.loading:  # of several threads one is enough
            if version not in self.items:
                self.items[version] = past_items(self.journal, version)
        return self.items[version][ItemKey(failure.suite, failure.item_id)]

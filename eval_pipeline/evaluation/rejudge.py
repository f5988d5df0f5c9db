"""Judges judge a few replies again: whether they say the same tells how far to trust them."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import duckdb

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.budget import Ledger, unpriced
from eval_pipeline.evaluation.catalog import known_models
from eval_pipeline.evaluation.grading import RULES, Grader, graders_of
from eval_pipeline.evaluation.state import JudgementBrief
from eval_pipeline.evaluation.workers import Shift, Tally, holding, stopped_by_trouble, tell
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.journal import PREDICTIONS, REJUDGED, FileCompactedError, Journal, Stream
from eval_pipeline.records.item import ExamQuestion, Item, ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.prediction import Prediction, Repeat
from eval_pipeline.results.queries import query
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import past_items

log = logging.getLogger(__name__)
TRIES = 3


class Drawn(NamedTuple):
    """A reply that a judge is to judge again."""

    judge: str
    judge_version: str
    benchmark_version: str
    model: str
    run_id: str
    prediction_id: str


class _RepeatBrief(JudgementBrief):
    """Of a repetition, what tells whether it is done."""

    repeat: int


_REPEAT_BRIEFS = Stream(REJUDGED.name, _RepeatBrief)


def draw(db: duckdb.DuckDBPyConnection, answers: int, judge: str | None = None) -> list[Drawn]:
    """So many replies for each version of each judge (or of this one), the same ones each time."""
    columns = ", ".join(Drawn._fields)
    found = query(db, "summaries/repeatable_verdicts").filter(f"place <= {answers}")
    ordered = found.order("judge, last_at_work desc, judge_version, place")
    drawn = [Drawn(*row) for row in ordered.project(columns).fetchall()]
    if judge is None or not answers:
        return drawn
    if judge not in (judges := list(dict.fromkeys(one.judge for one in drawn))):
        raise RunError(
            f"{judge} has not judged any reply of the published or the current benchmark version "
            f"as a model; those who have: {', '.join(judges) or 'none'}."
        )
    return [one for one in drawn if one.judge == judge]


async def rejudge(
    drawn: Sequence[Drawn],
    launch: str,
    *,
    settings: Settings,
    journal: Journal,
    board: list[Tally] | None = None,
) -> list[Tally]:
    """Has each judge judge its replies as often again as the settings say; only what is missing.

    It is asked as the settings have it, so of what was drawn it gets what it judged in that way.
    """
    by_judge: dict[str, list[Drawn]] = defaultdict(list)
    for one in drawn:
        by_judge[one.judge].append(one)
    tallies = {judge: Tally(judge, "judged again") for judge in by_judge}
    if board is not None:
        board.extend(tallies.values())
    models, ledger = known_models(journal), Ledger(settings.budget, journal)
    async with Gateways(settings) as gateways, asyncio.TaskGroup() as group:
        for judge, replies in by_judge.items():
            with stopped_by_trouble(tallies[judge]):
                grader = _grader(judge, models, settings, gateways, launch)
                same = [one for one in replies if grader and one.judge_version == grader.version]
                if grader is not None and same:
                    again = _Again(grader, same, tallies[judge], settings, journal, ledger)
                    group.create_task(again.run())
                else:
                    _warn(_problem(judge, grader), tallies[judge])
    return list(tallies.values())


def _grader(
    judge: str, models: Mapping[str, Model], settings: Settings, gateways: Gateways, launch: str
) -> Grader | None:
    """The judge as it judged the first time; None if there is no such model any more."""
    name = judge.removeprefix(f"{RULES}+")
    if name not in models:
        return None
    rules = "off" if name == judge else "first"
    how = settings.overridden({"judge": {"rules": rules}})
    (grader,) = graders_of([models[name]], how, gateways, launch)
    return grader


def _problem(judge: str, grader: Grader | None) -> str:
    """Why the judge can not be asked in the same way again."""
    if grader is None:
        return f"{judge} is not asked again: it is in no gateway's list any more."
    return (
        f"{judge} is not asked again: its verdicts were given with another prompt or token limit "
        "than the settings have now. Set the earlier ones; or name the judge in a launch of "
        "judged, which then judges with those of now."
    )


def _warn(warning: str, tally: Tally) -> None:
    log.warning(warning)
    tally.warnings.append(warning)


class _Quiet(Shift):
    """Says nothing while it works: the other runs of the judge would say the same of its tally."""

    def _tell(self) -> None:
        pass


class _Repetition(NamedTuple):
    """A reply, and for the how-manieth time it is judged again."""

    prediction: Prediction
    repeat: int


_RunKey = tuple[str, str]
"""The model and the id of a run."""


@dataclass(frozen=True)
class _Again:
    """What one judge has to judge again."""

    grader: Grader
    drawn: Sequence[Drawn]
    tally: Tally
    settings: Settings
    journal: Journal
    ledger: Ledger

    async def run(self) -> None:
        """Asks for what is missing, in all runs at once: there are few replies in each."""
        with stopped_by_trouble(self.tally):
            async with holding(self.journal.claim(REJUDGED, self.grader.judge)):
                items = past_items(self.journal, self.drawn[0].benchmark_version)
                pending = await asyncio.to_thread(self._pending)
                self.tally.planned = sum(map(len, pending.values()))
                self._announce([one for many in pending.values() for one in many], items)
                places = asyncio.Semaphore(self.settings.judge.num_workers)
                async with asyncio.TaskGroup() as group:
                    for run, repetitions in pending.items():
                        group.create_task(self._judge_run(run, repetitions, items, places))
        if self.tally.planned or self.tally.stopped:
            tell(self.tally)

    async def _judge_run(
        self,
        run: _RunKey,
        repetitions: Sequence[_Repetition],
        items: Mapping[ItemKey, Item],
        places: asyncio.Semaphore,
    ) -> None:
        with stopped_by_trouble(self.tally):
            async with holding(places):
                if not self.tally.failed:
                    await self._work_through(run, repetitions, items)

    async def _work_through(
        self, run: _RunKey, repetitions: Sequence[_Repetition], items: Mapping[ItemKey, Item]
    ) -> None:
        model, run_id = run
        shift = _Quiet(
            self.tally,
            self.ledger.account(run_id, model),
            num_workers=min(self.settings.judge.num_workers, len(repetitions)),
            stop_after_failures=self.settings.requests.stop_after_failures,
        )
        async with self.journal.writer(REJUDGED, model, run_id) as writer:

            async def do(one: _Repetition) -> None:
                item = items[one.prediction.key]
                if not isinstance(item, ExamQuestion):
                    raise TypeError(f"{item.id} is code, of which no judge has an opinion.")
                verdict = await self.grader.grade(one.prediction, item, shift)
                shift.heed(verdict.outcome, verdict.trouble)
                make = partial(Repeat, **dict(verdict), repeat=one.repeat)
                await writer.post(make, shift.landed)

            await shift.work_through(repetitions, do)

    def _announce(self, repetitions: Sequence[_Repetition], items: Mapping[ItemKey, Item]) -> None:
        if not repetitions:
            return
        each = self.grader.guess_usd([one.prediction for one in repetitions], items)
        self.tally.estimated_usd = None if each is None else each * len(repetitions)
        asked = self.grader.model
        simulated = " (simulated)" if asked and asked.model.simulated else ""
        count = f"{len(repetitions)} verdicts to give again"
        log.info("%s%s: %s, %s", self.tally.model, simulated, count, self.tally.estimate)
        if warning := asked and unpriced(asked.model, self.settings.budget):
            _warn(warning, self.tally)

    def _pending(self) -> dict[_RunKey, list[_Repetition]]:
        """What has no score yet, by run."""
        wanted: dict[_RunKey, set[str]] = defaultdict(set)
        for one in self.drawn:
            wanted[one.model, one.run_id].add(one.prediction_id)
        pending = {run: list(self._missing(run, ids)) for run, ids in wanted.items()}
        return {run: repetitions for run, repetitions in pending.items() if repetitions}

    def _missing(self, run: _RunKey, wanted: set[str]) -> Iterator[_Repetition]:
        by = (self.grader.judge, self.grader.version)
        done = {
            (one.prediction_id, one.repeat)
            for one in self.journal.read(_REPEAT_BRIEFS, *run)
            if (one.judge, one.judge_version) == by and one.score is not None
        }
        left = {
            prediction_id: [
                repeat for repeat in self._repeats if (prediction_id, repeat) not in done
            ]
            for prediction_id in wanted
        }
        if any(left.values()):
            for prediction in self._predictions(run, wanted):
                for repeat in left[prediction.prediction_id]:
                    yield _Repetition(prediction, repeat)

    @property
    def _repeats(self) -> range:
        return range(1, self.settings.reliability.repeats + 1)

    def _predictions(self, run: _RunKey, wanted: set[str]) -> list[Prediction]:
        for _ in range(TRIES - 1):
            with suppress(FileCompactedError):  # compacted meanwhile: now in another file
                return self._read(run, wanted)
        return self._read(run, wanted)

    def _read(self, run: _RunKey, wanted: set[str]) -> list[Prediction]:
        found = self.journal.read(PREDICTIONS, *run)
        return list(
            {one.prediction_id: one for one in found if one.prediction_id in wanted}.values()
        )

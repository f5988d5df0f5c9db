"""Deleting runs for good: what would go with them, and away with it, in order if killed meanwhile.

A run is set aside first, beginning with its record, so that it is never taken for one that has
answers missing. Then the DuckDB file is built without it, Dagster's history is told, and what was
set aside is deleted. Whoever deletes next finishes what was left half done.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import duckdb

from eval_pipeline.errors import RunError
from eval_pipeline.journal import (
    ATTEMPTS,
    DIAGNOSES,
    JUDGED,
    PREDICTIONS,
    REJUDGED,
    RUNS,
    Journal,
    Stream,
)
from eval_pipeline.journal.locks import running_run_ids
from eval_pipeline.results.queries import query
from eval_pipeline.results.runs import LATEST, FoundRun, find_runs
from eval_pipeline.results.warehouse import Warehouse


class RunKey(NamedTuple):
    """What names a run of one model."""

    model: str
    run_id: str


IsAlive = Callable[[str, str], bool]
"""Whether somebody is at work on the run of that model and that id."""
Tell = Callable[[Sequence[RunKey]], None]
"""Leaves a trace of what was deleted."""


class DoomedRun(NamedTuple):
    """A run with all that would go with it; the columns of `summaries/doomed_runs`."""

    run_id: str
    model: str
    experiment: str
    simulated: bool
    opened_at: datetime
    planned: int
    predictions: int
    answered: int
    judged: int
    rejudged: int
    diagnosed: int
    classified: int
    cost_usd: float
    costs_unknown: int
    on_leaderboard: bool
    carried_to: list[str]
    judges: list[str]

    @property
    def key(self) -> RunKey:
        return RunKey(self.model, self.run_id)


def what_would_go(db: duckdb.DuckDBPyConnection, runs: Sequence[FoundRun]) -> list[DoomedRun]:
    """The runs, which have one id, with what belongs to them."""
    given = {"run_id": runs[0].run_id, "models": [run.model for run in runs]}
    return [DoomedRun(*row) for row in query(db, "summaries/doomed_runs", given).fetchall()]


def prunable_runs(warehouse: Warehouse, before: datetime) -> list[DoomedRun]:
    """The runs opened before then that no number rests on, with what belongs to them."""
    warehouse.publish()
    with warehouse.reading() as db:
        found = query(db, "summaries/prunable_runs", {"before": before}).fetchall()
        by_id = groupby((FoundRun(*row) for row in found), key=attrgetter("run_id"))
        return [doomed for _, runs in by_id for doomed in what_would_go(db, list(runs))]


def in_words(runs: Sequence[DoomedRun]) -> Iterator[str]:
    """What would go, in sentences."""
    ids = dict.fromkeys(run.run_id[:8] for run in runs)
    yield f"Run{'s' if len(ids) > 1 else ''} {', '.join(ids)} would be deleted for good:"
    for run in runs:
        yield f"  {_described(run)}"
        if run.carried_to:
            keep = ", ".join(run_id[:8] for run_id in run.carried_to)
            yield f"    Copies that other runs took over from it stay there: {keep}."
    usd = sum(run.cost_usd for run in runs)
    unknown = "" if not any(run.costs_unknown for run in runs) else " or more"
    yield f"The {usd:.4f} USD{unknown} that was paid will no longer count in any budget."
    yield (
        "Items and labels stay, and so does Dagster's own history. A model without any other run "
        "may be due again."
    )


def _described(run: DoomedRun) -> str:
    who = f"{run.model} (simulated)" if run.simulated else run.model
    more = {
        "verdicts given again": run.rejudged,
        "failures explained": run.diagnosed,
        "classified by people": run.classified,
    }
    again = "".join(f", {number} {what}" for what, number in more.items() if number)
    ranked = "on the leaderboard" if run.on_leaderboard else "not on the leaderboard"
    return (
        f"{who}, experiment {run.experiment}, opened {run.opened_at:%Y-%m-%d %H:%M} UTC: "
        f"{run.answered} of {run.planned} answers, {run.judged} verdicts{again}, "
        f"{run.cost_usd:.4f} USD, {ranked}."
    )


def delete_runs(
    warehouse: Warehouse,
    runs: Sequence[DoomedRun],
    *,
    is_alive: IsAlive,
    tell: Tell,
) -> None:
    """Deletes the runs, unless somebody is at work on them."""
    journal = warehouse.journal
    with _one_at_a_time(journal), _claimed(journal, runs):
        for run in runs:
            if is_alive(*run.key):
                raise RunError(
                    f"Nothing was changed: run {run.run_id[:8]} is at work. "
                    "Interrupt it (Ctrl-C, or in Dagster's UI) or wait for its end."
                )
        _remove(warehouse, [run.key for run in runs], tell)


def is_at_work(journal: Journal, model: str, run_id: str) -> bool:
    """Whether a living launch has opened the run, or asks that model and may be continuing it."""
    return any(
        launch == run_id or journal.exists(ATTEMPTS, model, launch)
        for launch in running_run_ids(journal.root)
    )


def finish_deletions(warehouse: Warehouse, tell: Tell) -> list[RunKey]:
    """Deletes the rest of runs whose deletion was interrupted, and says which these are."""
    journal = warehouse.journal
    if not journal.trashed_runs():
        return []
    with _one_at_a_time(journal):
        runs = [RunKey(*names) for names in journal.trashed_runs()]
        _remove(warehouse, runs, tell)
        return runs


def doomed_runs(
    warehouse: Warehouse, name: str, finished: Sequence[RunKey] = ()
) -> list[DoomedRun]:
    """The runs of that name; none if it meant those whose deletion was `finished` just now."""
    model, _, begins = name.rpartition("@")
    if finished and begins == LATEST:  # by now that would be another one
        return []
    warehouse.publish()
    try:
        with warehouse.reading() as db:
            return what_would_go(db, find_runs(db, name))
    except RunError:
        if any(_is_named(run, begins, model) for run in finished):
            return []
        raise


def _is_named(run: RunKey, begins: str, model: str) -> bool:
    return run.run_id.startswith(begins) and model in ("", run.model)


def _remove(warehouse: Warehouse, runs: Sequence[RunKey], tell: Tell) -> None:
    for run in runs:
        warehouse.journal.trash_run(*run)
    warehouse.publish()
    tell(runs)
    warehouse.journal.empty_trash()


@contextmanager
def _one_at_a_time(journal: Journal) -> Iterator[None]:
    with journal.claim_soon(RUNS, "any model that is deleted"):
        yield


@contextmanager
def _claimed(journal: Journal, runs: Sequence[DoomedRun]) -> Iterator[None]:
    """So that nobody works on these runs meanwhile; each judge repeats itself alone."""
    with ExitStack() as claims:
        for model in sorted({run.model for run in runs}):  # of which several runs may go at once
            stages: tuple[Stream[Any], ...] = (PREDICTIONS, JUDGED, DIAGNOSES)
            for stage in stages:
                claims.enter_context(journal.claim_soon(stage, model))
        for judge in sorted({judge for run in runs for judge in run.judges}):
            claims.enter_context(journal.claim_soon(REJUDGED, judge))
        yield

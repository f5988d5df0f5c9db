"""Deletion of runs, in an order in which an interrupted deletion can be finished.

A run is moved to the trash first, beginning with its record, so that it never looks like one with
missing answers. Then the DuckDB file is built without it, the deletion is recorded in Dagster's
history, and the trash is emptied. The next deletion finishes an interrupted one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import duckdb

from eval_pipeline.errors import RunError
from eval_pipeline.journal import ATTEMPTS, DIAGNOSES, JUDGED, PREDICTIONS, REJUDGED, RUNS, Journal
from eval_pipeline.journal.locks import running_run_ids
from eval_pipeline.results.queries import query
from eval_pipeline.results.runs import LATEST, FoundRun, find_runs
from eval_pipeline.results.warehouse import Warehouse


class RunKey(NamedTuple):
    """What names a run of one model."""

    model: str
    run_id: str


Tell = Callable[[Sequence[RunKey]], None]
"""Records elsewhere what was deleted."""


class DoomedRun(NamedTuple):
    """A run to delete, with the counts of its records; the columns of `summaries/doomed_runs`."""

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
    """Return the runs, which have one id, with the counts of their records."""
    given = {"run_id": runs[0].run_id, "models": [run.model for run in runs]}
    return [DoomedRun(*row) for row in query(db, "summaries/doomed_runs", given).fetchall()]


def prunable_runs(warehouse: Warehouse, before: datetime) -> list[DoomedRun]:
    """Return the runs opened before then that no published number rests on."""
    warehouse.publish()
    with warehouse.reading() as db:
        found = query(db, "summaries/prunable_runs", {"before": before}).fetchall()
        by_id = groupby((FoundRun(*row) for row in found), key=attrgetter("run_id"))
        return [doomed for _, runs in by_id for doomed in what_would_go(db, list(runs))]


def in_words(runs: Sequence[DoomedRun]) -> Iterator[str]:
    """Yield sentences that say what would be deleted."""
    ids = dict.fromkeys(run.run_id[:8] for run in runs)
    yield f"Run{'s' if len(ids) > 1 else ''} {', '.join(ids)} would be deleted for good:"
    for run in runs:
        yield f"  {_described(run)}"
        if run.carried_to:
            keep = ", ".join(run_id[:8] for run_id in run.carried_to)
            yield f"    Copies that other runs took over from it stay there: {keep}."
    usd = sum(run.cost_usd for run in runs)
    unknown = " or more" if any(run.costs_unknown for run in runs) else ""
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


def delete_runs(warehouse: Warehouse, runs: Sequence[DoomedRun], tell: Tell) -> None:
    """Delete the runs, unless a launch is at work on them."""
    journal = warehouse.journal
    with _one_at_a_time(journal), _claimed(journal, runs):
        for run in runs:
            if is_at_work(journal, *run.key):
                raise RunError(
                    f"Nothing was changed: run {run.run_id[:8]} is at work. "
                    "Interrupt it (Ctrl-C, or in Dagster's UI) or wait for its end."
                )
        _remove(warehouse, [run.key for run in runs], tell)


def is_at_work(journal: Journal, model: str, run_id: str) -> bool:
    """Return whether an active launch opened the run, or asks its model and may continue it."""
    return any(
        launch == run_id or journal.exists(ATTEMPTS, model, launch)
        for launch in running_run_ids(journal.root)
    )


def finish_deletions(warehouse: Warehouse, tell: Tell) -> list[RunKey]:
    """Delete the rest of the runs whose deletion was interrupted, and return them."""
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
    """Return the runs of that name; none if its runs are those whose deletion just `finished`."""
    model, _, begins = name.rpartition("@")
    if finished and begins == LATEST:  # by now that would be another one
        return []
    warehouse.publish()
    try:
        with warehouse.reading() as db:
            return what_would_go(db, find_runs(db, name))
    except RunError:
        if any(run.run_id.startswith(begins) and model in ("", run.model) for run in finished):
            return []
        raise


def _remove(warehouse: Warehouse, runs: Sequence[RunKey], tell: Tell) -> None:
    for run in runs:
        warehouse.journal.trash_run(*run)
    warehouse.publish()
    tell(runs)
    warehouse.journal.empty_trash()


def _one_at_a_time(journal: Journal) -> AbstractContextManager[None]:
    return journal.claim_soon(RUNS, "any model that is deleted")


@contextmanager
def _claimed(journal: Journal, runs: Sequence[DoomedRun]) -> Iterator[None]:
    """Keep every stage from working on these runs; repeated judging is locked by judge."""
    with ExitStack() as claims:
        for model in sorted({run.model for run in runs}):  # of which several runs may go at once
            claims.enter_context(journal.claim_soon(PREDICTIONS, model))
            claims.enter_context(journal.claim_soon(JUDGED, model))
            claims.enter_context(journal.claim_soon(DIAGNOSES, model))
        for judge in sorted({judge for run in runs for judge in run.judges}):
            claims.enter_context(journal.claim_soon(REJUDGED, judge))
        yield

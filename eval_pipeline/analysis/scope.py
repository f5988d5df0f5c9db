"""Which runs are analysed, and why others are not."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import duckdb

from eval_pipeline.analysis.failures import (
    Failure,
    find_failed,
    find_latest,
    to_analyse,
)
from eval_pipeline.results.runs import FoundRun, Row, State, run_rows

NOT_THE_MODEL_S = "which says nothing about the model"


class PassedOver(NamedTuple):
    """Why a run is not analysed, in a sentence; and whether it may be once more is done."""

    sentence: str
    is_early: bool


class Scope(NamedTuple):
    """Runs that have something to be looked into, as rows, and what is said of the others."""

    runs: Sequence[Row]
    failures: Sequence[Failure]
    passed_over: Sequence[PassedOver]

    @property
    def incomplete(self) -> list[str]:
        """Of which of these runs more may turn out wrong, in sentences."""
        return [
            f"{_named(run)} is not complete, so more may turn out wrong: {run['next_step']}"
            for run in self.runs
            if run["next_step"]
        ]


def chosen_runs(
    db: duckdb.DuckDBPyConnection, name: str | None, models: Sequence[str] = ()
) -> list[FoundRun]:
    """The runs of that name, or the latest of each model and experiment.

    Only those that `models` mean: ids, parts of them, or patterns such as `demo/*`.
    """
    return find_latest(db, models) if name is None else find_failed(db, name, models)


def scope_of(
    db: duckdb.DuckDBPyConnection, runs: Sequence[FoundRun], at_work: Collection[str]
) -> Scope:
    """What is to be looked into in these runs; `at_work` are launches whose process is alive."""
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
    """Why there is nothing yet that could be wrong."""
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
    """Whether more is to come: the launch of a run that is complete may still count, say."""
    return run["state"] is State.RUNNING


def _named(run: Row) -> str:
    return f"{run['model']}, run {run['run_id'][:8]}"

"""What failed in runs: each failure with what is known of why, as rows and as one document."""

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import duckdb

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.item_prompt import Chosen
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import (
    LATEST,
    FoundRun,
    Row,
    failed_replies,
    find_runs,
    rows_of,
    run_rows,
)
from eval_pipeline.text import unknown

WRONG = "wrong"
ABOUT_THE_RUN = ("run_id", "model", "experiment", "simulated", "benchmark_version")
LEFT_OUT = {*ABOUT_THE_RUN, "alike"}
RUN = (*ABOUT_THE_RUN, "scope", "samples", "opened_at", "judge", "judge_version", "state")
STANDING = ("planned", "answered", "judged", "correct", "accuracy", "accuracy_low", "accuracy_high")
NONE_FAILED: Row = {
    "failed": {"no answer": 0, "no verdict": 0, WRONG: 0},
    "steps": {},
    "classifications": {},
    "unclassified": 0,
    "overridden": 0,
}


class Failure(NamedTuple):
    """A wrong reply and the verdict on it: what an analyst can look into."""

    run_id: str
    model: str
    experiment: str
    simulated: bool
    benchmark_version: str
    suite: str
    item_id: str
    sample: int
    category: str
    prediction_id: str
    judge: str
    judge_version: str
    failed_step: str | None
    reason: str
    extracted_answer: str | None

    @property
    def run(self) -> tuple[str, str]:
        """Return the id of its run and its model."""
        return self.run_id, self.model

    @property
    def verdict(self) -> tuple[str, str, str]:
        """Return what names its verdict within the run."""
        return self.prediction_id, self.judge, self.judge_version


def chosen_runs(
    db: duckdb.DuckDBPyConnection, name: str | None, models: Sequence[str] = ()
) -> list[FoundRun]:
    """Return the runs of that name (see `find_runs`), or the latest of each model and experiment.

    Only those that `models` match: ids, parts of them, or patterns such as `demo/*`. The latest
    run is then the latest of such a model.
    """
    if name is not None and not models:
        return find_runs(db, name)
    found = [FoundRun.of(row) for row in run_rows(db, (), latest=True)]
    if not found:
        raise RunError("There are no runs yet: evals run")
    where, noun = "", "run of a model"
    if name is not None:
        meant = _all_meant(models, [run.model for run in found], noun)
        newest = next(run.run_id for run in found if run.model in meant)
        found = find_runs(db, newest if name == LATEST else name)
        where, noun = f" in run {found[0].run_id[:8]}", "model"
    meant = _all_meant(models, [run.model for run in found], noun, where=where)
    return [run for run in found if not models or run.model in meant]


def _all_meant(
    named: Sequence[str], known: Collection[str], noun: str, *, where: str = ""
) -> set[str]:
    """Return the models of these ids, else those with a name in the id, or of such a pattern."""
    meant: set[str] = set()
    for name in named:
        wanted = name.casefold()
        found = {name}.intersection(known) or {
            model
            for model in known
            if wanted in model.casefold() or fnmatchcase(model.casefold(), wanted)
        }
        if not found:
            raise RunError(unknown(noun, name, sorted(set(known)), where=where))
        meant |= found
    return meant


def failures_of_item(db: duckdb.DuckDBPyConnection, chosen: Chosen) -> list[Row]:
    """Return what went wrong with one item, sample by sample."""
    given = {"run_id": chosen.run_id, "model": chosen.model, **chosen.key._asdict()}
    return rows(query(db, "summaries/item_failures", given))


def to_analyse(db: duckdb.DuckDBPyConnection, runs: Sequence[FoundRun]) -> list[Failure]:
    """Return the wrong replies of these runs: those that say something about the model."""
    given = {"run_ids": [run.run_id for run in runs], "models": [run.model for run in runs]}
    return [Failure(*row) for row in query(db, "summaries/to_analyse", given).fetchall()]


def classified(failure: Mapping[str, Any]) -> str:
    """Return the classification of a failure, and whether a person has set it."""
    if failure["classification"] is None:
        return "not classified"
    if not failure["overridden"]:
        return str(failure["classification"])
    analyst = failure["analyst_classification"]
    instead = f", the analyst: {analyst}" if analyst else ""
    return f"{failure['classification']} (said by a person{instead})"


def as_json(
    db: duckdb.DuckDBPyConnection,
    runs: Sequence[FoundRun],
    *,
    at_work: Collection[str] = (),
    judges: Collection[str] = (),
) -> Row:
    """Run, totals and failures; of runs of several models, which have one id, one of each.

    `at_work` and `judges` are as in `rows_of`.
    """
    found = rows_of(db, at_work, runs, judges)
    failures = failed_replies(db, found)
    given = {"run_ids": [run.run_id for run in runs], "models": [run.model for run in runs]}
    totals = {_name(row): row for row in rows(query(db, "summaries/failure_totals", given))}
    documents = [
        {
            "run": {name: run[name] for name in RUN},
            "totals": {name: run[name] for name in STANDING}
            | {name: totals.get(_name(run), NONE_FAILED)[name] for name in NONE_FAILED},
            "failures": [
                {name: value for name, value in one.items() if name not in LEFT_OUT}
                for one in failures
                if _name(one) == _name(run)
            ],
        }
        for run in found
    ]
    return documents[0] if len(documents) == 1 else {"runs": documents}


def documents_of(document: Row) -> list[Row]:
    """What `as_json` says of each run."""
    return list(document.get("runs", [document]))


def _name(row: Row) -> tuple[str, str]:
    return row["run_id"], row["model"]

"""How models and runs stand: rows of the results, each run with its state and what to do next."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any

import duckdb

from eval_pipeline.closest import unknown
from eval_pipeline.options import Judge
from eval_pipeline.results.finding import FoundRun, runs_to_fix
from eval_pipeline.results.queries import query, rows
from eval_pipeline.runs import RunError

Row = dict[str, Any]
"""One row of a query, by the names of its columns."""
JUDGED_BY = ("run_id", "model", "judge", "judge_version")


class State(StrEnum):
    """How far a run is."""

    COMPLETE = "complete"
    RUNNING = "running"
    UNFINISHED = "unfinished"
    FAILED = "failed items"
    TO_JUDGE = "to judge"


def named_judges(judge: Judge) -> tuple[str, ...]:
    """Who judges answers by the settings, under the names that their verdicts have."""
    # As Grader names them, which to load takes the clients of all gateways.
    if judge.rules == "only":
        return ("rules",)
    return tuple(f"rules+{one}" if judge.rules == "first" else one for one in judge.models)


def model_rows(db: duckdb.DuckDBPyConnection) -> list[Row]:
    """Every model of the catalog with its latest run, the selected ones first."""
    return rows(query(db, "summaries/models"))


def chosen_models(models: Sequence[Row], part: str | None, *, everything: bool) -> list[Row]:
    """The selected ones, or all; if a part of the id is named, all that have it."""
    wanted = (part or "").casefold()
    return [
        row
        for row in models
        if (everything or part or row["selected"]) and wanted in row["model"].casefold()
    ]


def run_rows(
    db: duckdb.DuckDBPyConnection,
    at_work: Collection[str],
    *,
    judges: Collection[str] = (),
    model: str | None = None,
    latest: bool = False,
) -> list[Row]:
    """Every run, the newest first, or the latest of each model and experiment.

    `at_work` are the ids of launches whose process is alive, `judges` are those that the settings
    name (see `named_judges`), `model` is a part of a model's id.
    """
    found = _run_rows(db, at_work, judges, model=model, latest=latest)
    if model is not None and not found:
        known = {row["model"] for row in _run_rows(db, (), (), latest=True)}
        raise RunError(unknown("run of a model", model, sorted(known)))
    return found


def rows_of(
    db: duckdb.DuckDBPyConnection,
    at_work: Collection[str],
    runs: Sequence[FoundRun],
    judges: Collection[str] = (),
) -> list[Row]:
    """These runs, which all have one id, with their categories and the steps of their code."""
    (run_id,) = {run.run_id for run in runs}
    meant = {run.model for run in runs}
    found = _run_rows(db, at_work, judges, run_id=run_id)
    return [{**row, **_details(db, row)} for row in found if row["model"] in meant]


def other_rows_to_fix(
    db: duckdb.DuckDBPyConnection,
    at_work: Collection[str],
    shown: Sequence[Row],
    judges: Collection[str] = (),
) -> list[Row]:
    """The runs besides these that `evals fix` would go on with: older ones of another scope."""
    to_fix = {(run.run_id, run.model) for run in runs_to_fix(db, judges, at_work)}
    others = to_fix - {_name(row) for row in shown}
    found = _run_rows(db, at_work, judges) if others else []
    return [row for row in found if _name(row) in others]


def failed_replies(
    db: duckdb.DuckDBPyConnection, runs: Sequence[Mapping[str, Any]], most: int | None = None
) -> list[Row]:
    """What of these runs has no answer, no verdict, or was found wrong.

    Of each run and way to go wrong the first `most`; `alike` tells how many there are.
    """
    run_ids, models = [run["run_id"] for run in runs], [run["model"] for run in runs]
    given = {"run_ids": run_ids, "models": models, "most": most}
    return rows(query(db, "summaries/failed_replies", given))


def state_of(run: Mapping[str, Any]) -> State:
    """The first of what is left to do in it."""
    unasked = run["planned"] - run["answered"] - run["failed"]
    left = {
        State.UNFINISHED: unasked,
        State.FAILED: run["failed"],
        State.TO_JUDGE: run["to_judge"] or run["undecided"],
    }
    first = next((state for state, number in left.items() if number), State.COMPLETE)
    return State.RUNNING if run["at_work"] and first is not State.COMPLETE else first


def next_step(run: Mapping[str, Any]) -> str | None:
    """The command that does what is left to do; None if there is none."""
    if run.get("closed"):
        return None
    name = run["run_id"][:8]
    match state_of(run):
        case State.UNFINISHED:
            return f"evals run --resume {name}"
        case State.FAILED:
            return f"evals fix {name}"
        case State.TO_JUDGE if run["to_judge"]:
            return f"evals fix {name} --judge"
    return None


def _run_rows(
    db: duckdb.DuckDBPyConnection,
    at_work: Collection[str],
    judges: Collection[str],
    *,
    run_id: str | None = None,
    model: str | None = None,
    latest: bool = False,
) -> list[Row]:
    lists = {"at_work": list(at_work), "judges": list(judges)}
    given = {"run_id": run_id, "model": model, "latest": latest, **lists}
    found = rows(query(db, "summaries/run_states", given))
    return [{**row, "state": state_of(row), "next_step": next_step(row)} for row in found]


def _name(run: Row) -> tuple[str, str]:
    return run["run_id"], run["model"]


def _details(db: duckdb.DuckDBPyConnection, run: Row) -> Row:
    given = {name: run[name] for name in JUDGED_BY}
    parts = ("categories", "steps")
    return {part: rows(query(db, f"summaries/run_{part}", given)) for part in parts}

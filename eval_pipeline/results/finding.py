"""Which run is meant: people name one by the first characters of its id, or as the latest."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import duckdb

from eval_pipeline.results.queries import query
from eval_pipeline.runs import RunError

LATEST = "latest"


class FoundRun(NamedTuple):
    """A run of one model; a launch for several models opens one for each, all with its id."""

    run_id: str
    model: str
    experiment: str
    opened_at: datetime

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "FoundRun":
        """From a row that has these among others."""
        return cls(*(row[field] for field in cls._fields))


def find_runs(db: duckdb.DuckDBPyConnection, name: str) -> list[FoundRun]:
    """The runs of that id: `latest`, the first characters, or `model@` before either."""
    model, _, begins = name.rpartition("@")
    known = _runs(db, "" if begins == LATEST else begins, model or None)
    ids = list(dict.fromkeys(run.run_id for run in known))
    if begins == LATEST:
        ids = ids[:1]
    if not begins or not ids:
        raise RunError(f"There is no run {name!r}; {_latest(db)}")
    if len(ids) > 1:
        several = ", ".join(run_id[:12] for run_id in ids[:5])
        raise RunError(f"{name!r} may be any of {len(ids)} runs ({several}): name more of its id.")
    return [run for run in known if run.run_id == ids[0]]


def runs_to_fix(
    db: duckdb.DuckDBPyConnection, judges: Collection[str] = (), at_work: Collection[str] = ()
) -> list[FoundRun]:
    """The latest run of each model, experiment and scope, if it lacks replies or verdicts.

    Verdicts are those of `judges`, under the names that the settings give them. What the launches
    `at_work` are busy with is left to them.
    """
    given = {"judges": list(judges), "at_work": list(at_work)}
    return [FoundRun(*row) for row in query(db, "summaries/to_fix", given).fetchall()]


def _runs(db: duckdb.DuckDBPyConnection, begins: str, model: str | None) -> list[FoundRun]:
    found = query(db, "summaries/runs_named", {"begins": begins, "model": model})
    return [FoundRun(*row) for row in found.fetchall()]


def _latest(db: duckdb.DuckDBPyConnection) -> str:
    ids = dict.fromkeys(run.run_id[:8] for run in _runs(db, "", None))
    return f"the latest are {', '.join(list(ids)[:5])}." if ids else "there are none yet: evals run"

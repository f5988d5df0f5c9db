"""Find runs by name, read how far each is, and count what a Dagster run has done."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from eval_pipeline.errors import MendableError, RunError
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, FileCompactedError, Journal, Stream
from eval_pipeline.journal.files import JSONL
from eval_pipeline.records.base import Record
from eval_pipeline.results.build import load
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.schema import create_schema
from eval_pipeline.settings.sections import Judge
from eval_pipeline.text import unknown

LATEST = "latest"


class FoundRun(NamedTuple):
    """A run of one model; a launch for several models opens one for each, all with its id."""

    run_id: str
    model: str
    experiment: str
    opened_at: datetime

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "FoundRun":
        """Return the run of a row with these columns among others."""
        return cls(*(row[field] for field in cls._fields))


def find_runs(db: duckdb.DuckDBPyConnection, name: str) -> list[FoundRun]:
    """Return the runs of a name: `latest`, the start of an id, or `model@` before either."""
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


Row = dict[str, Any]
"""One row of a query, by the names of its columns."""
JUDGED_BY = ("run_id", "model", "judge", "judge_version")


class State(StrEnum):
    """The state of a run."""

    COMPLETE = "complete"
    RUNNING = "running"
    UNFINISHED = "unfinished"
    FAILED = "failed items"
    TO_JUDGE = "to judge"


def named_judges(judge: Judge) -> tuple[str, ...]:
    """Return the judges that the settings name, as their verdicts name them."""
    # The same names as Grader's, which would load the clients of all gateways.
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
    """Return the replies of these runs without an answer or a verdict, and the wrong ones.

    Of each run and way to go wrong the first `most`; `alike` is their number.
    """
    run_ids, models = [run["run_id"] for run in runs], [run["model"] for run in runs]
    given = {"run_ids": run_ids, "models": models, "most": most}
    return rows(query(db, "summaries/failed_replies", given))


def state_of(run: Mapping[str, Any]) -> State:
    """Return the state of a run: the first thing that is left to do."""
    unasked = run["planned"] - run["answered"] - run["failed"]
    left = {
        State.UNFINISHED: unasked,
        State.FAILED: run["failed"],
        State.TO_JUDGE: run["to_judge"] or run["undecided"],
    }
    first = next((state for state, number in left.items() if number), State.COMPLETE)
    return State.RUNNING if run["at_work"] and first is not State.COMPLETE else first


def next_step(run: Mapping[str, Any]) -> str | None:
    """Return the command that does what is left to do, or None."""
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


TRIES = 3
FRUGAL = {"threads": "1", "preserve_insertion_order": "false"}
WRITTEN: tuple[Stream[Any], ...] = (PREDICTIONS, JUDGED)

log = logging.getLogger(__name__)


class Asked(Record):
    """The scope of a Dagster run: its id and its parts', the models, and the time (UTC).

    If it only judged, it `predicted` nothing: replies of that time are not its own.
    """

    run_ids: tuple[str, ...]
    models: tuple[str, ...] | None
    since: datetime
    until: datetime
    predicted: bool


class Ended(Record):
    """The evaluation of a model in counts by outcome."""

    model: str
    planned: int
    predicted: str
    judged: str
    cost_usd: float
    costs_unknown: int


def read_ended(journal: Journal, asked: Asked) -> tuple[Ended, ...]:
    """Count the run's outcomes from the journal, also of a killed run; nothing if unreadable.

    Nothing is published for it: that could take longer than Dagster waits for a sensor.
    """
    for _ in range(TRIES):
        try:
            return _count(journal, asked)
        except (FileCompactedError, FileNotFoundError):  # a file was compacted meanwhile
            continue
        except (duckdb.Error, MendableError, OSError) as error:
            log.warning("The counts can not be read now: %s", error)
            return ()
    log.warning("The counts can not be read now: files come and go.")
    return ()


def _count(journal: Journal, asked: Asked) -> tuple[Ended, ...]:
    files = _files(journal, asked)
    with duckdb.connect(config={**FRUGAL}) as db:
        create_schema(db)
        load(db, RUNS, files[RUNS])
        for stream in WRITTEN:
            load(db, stream, files[stream], as_of=asked.until)
        found = rows(query(db, "summaries/run_outcomes", asked.model_dump()))
    return tuple(Ended.model_validate(row) for row in found)


def _files(journal: Journal, asked: Asked) -> Mapping[Stream[Any], list[Path]]:
    """Return the files of evaluations that the run opened, or that were written since it began."""
    models = journal.parts(RUNS) if asked.models is None else asked.models
    found = {
        stream: [path for model in models for path in journal.files(stream, model)]
        for stream in (RUNS, *WRITTEN)
    }
    began = asked.since.replace(tzinfo=UTC).timestamp()
    written = [path for stream in WRITTEN for path in found[stream]]
    own = {_evaluation(path, journal) for path in found[RUNS] if path.stem in asked.run_ids}
    own |= {_evaluation(path, journal) for path in written if path.stat().st_mtime >= began}
    return {
        stream: [path for path in paths if _evaluation(path, journal) in own]
        for stream, paths in found.items()
    }


def _evaluation(path: Path, journal: Journal) -> tuple[str, str]:
    """Model and run, as files spell them: a run is a file, its replies are in a folder."""
    _, model, run, *_ = path.relative_to(journal.root).parts
    return model, run.removesuffix(JSONL)

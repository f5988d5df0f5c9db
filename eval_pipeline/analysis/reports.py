"""A report about each run that was analysed, written where people find it."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import duckdb

from eval_pipeline.analysis.failures import WRONG, failures_of
from eval_pipeline.analysis.patterns import patterns_of
from eval_pipeline.analysis.records import Classification
from eval_pipeline.analysis.report import ReportError, Written, edited_in, write_report
from eval_pipeline.analysis.report.paths import known_report
from eval_pipeline.discovery import look_up
from eval_pipeline.environment import SettingsError
from eval_pipeline.finding import FoundRun
from eval_pipeline.journal import Journal
from eval_pipeline.overview import Row, run_rows
from eval_pipeline.records import Model
from eval_pipeline.settings import SETTINGS_FILE, Settings


class Reported(NamedTuple):
    """A run with its report; none where nothing in it could be explained."""

    run: Row
    counts: dict[str, int]
    written: Written | None
    error: str | None = None


def analyst_of(settings: Settings, journal: Journal) -> Model:
    """The model that looks into failures."""
    if settings.analysis.model is None:
        raise SettingsError(
            f"Nobody looks into failures: name a model under [analysis] in {SETTINGS_FILE}."
        )
    (found,) = look_up(journal, [settings.analysis.model])
    return found


def write_reports(
    db: duckdb.DuckDBPyConnection, settings: Settings, runs: Sequence[Row], when: datetime
) -> list[Reported]:
    """One report per run in which anything is explained: others would tell nothing.

    The runs are looked up again: while an analyst was asked, more may have been judged. One that
    can not be written does not keep the others from being written.
    """
    now = {(row["run_id"], row["model"]): row for row in run_rows(db, ())}
    meant = [now[name] for run in runs if (name := (run["run_id"], run["model"])) in now]
    return [_reported(db, settings, run, when) for run in meant]


def _reported(
    db: duckdb.DuckDBPyConnection, settings: Settings, run: Row, when: datetime
) -> Reported:
    failures = failures_of(db, [FoundRun.of(run)])
    told = counts(failures)
    if not any(one["classification"] for one in failures):
        return Reported(run, told, None)
    by = (run["run_id"], run["model"], run["judge"], run["judge_version"])
    try:
        written = write_report(settings, run, failures, patterns_of(db, *by), when)
    except ReportError as error:
        return Reported(run, told, None, str(error))
    return Reported(run, told, written)


def fail_if_not_written(reported: Sequence[Reported]) -> None:
    """Raises what kept reports from being written, after all others are."""
    if errors := [one.error for one in reported if one.error]:
        raise ReportError("\n".join(errors))


def reports_on(
    db: duckdb.DuckDBPyConnection, settings: Settings, runs: Sequence[FoundRun]
) -> list[Row]:
    """For each run how many of its failures are whose, and where its report is, if there is one."""
    simulated = {(row["run_id"], row["model"]) for row in run_rows(db, ()) if row["simulated"]}
    told = []
    for run in runs:
        failures = failures_of(db, [run])
        path = known_report(settings.reports, run.run_id, run.model)
        about = {
            "run_id": run.run_id,
            "model": run.model,
            "experiment": run.experiment,
            "simulated": (run.run_id, run.model) in simulated,
        }
        where = {"path": str(path) if path else None, "kept": list(edited_in(path)) if path else []}
        told.append({**about, **counts(failures), **where})
    return told


def counts(failures: Sequence[Row]) -> dict[str, int]:
    """How many failures of a run are whose."""
    said = [one["classification"] for one in failures if one["went"] == WRONG]
    named = {str(one): said.count(one) for one in Classification}
    return {"wrong": len(said), **named, "unexplained": said.count(None)}

"""Metadata that assets show in the UI: counts, tokens, cost, tables and plots."""

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
from tabulate import tabulate

from eval_pipeline.analysis.analyse import Scope
from eval_pipeline.analysis.report.paths import edited_copies
from eval_pipeline.analysis.report.write import Reported
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.evaluation.catalog import known_models
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.progress import Stage, under_way
from eval_pipeline.evaluation.workers import StageProgress
from eval_pipeline.journal.files import swap_in
from eval_pipeline.records.base import now
from eval_pipeline.records.diagnosis import Classification
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.results.charts import plot
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.tables.reliability import Report
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings
from eval_pipeline.text import plain

Metadata = dict[str, int | float | str | dg.MetadataValue[Any]]
MOST_ROWS = 200
MOST_IN_CHARTS = 50
DIGITS = 6


def table(db: duckdb.DuckDBPyConnection, name: str) -> dg.MarkdownMetadataValue:
    """A query file's rows as a table."""
    return markdown(rows(query(db, name).limit(MOST_ROWS)))


def markdown(lines: Sequence[Mapping[str, object]]) -> dg.MarkdownMetadataValue:
    """Lines as a table; a column that a line does not have is 0 there. Texts stay as they are."""
    if not lines:
        return listed([])
    columns = dict.fromkeys(name for line in lines for name in line)
    cells = [[_cell(line.get(name, 0)) for name in columns] for line in lines]
    # The id of a run may look like a number, such as 123456e7.
    texts = [
        place
        for place, column in enumerate(zip(*cells, strict=True))
        if any(isinstance(cell, str) for cell in column)
    ]
    text = tabulate(cells, list(columns), tablefmt="pipe", floatfmt=".3f", disable_numparse=texts)
    return dg.MetadataValue.md(text)


def _cell(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else _as_it_is(str(value))


def _as_it_is(text: str) -> str:
    """In one line and not as Markdown: a server's words must not become pictures or rows."""
    return plain(" ".join(text.split()))


def plots(
    db: duckdb.DuckDBPyConnection, folder: Path, *names: str
) -> dict[str, dg.MarkdownMetadataValue]:
    """Write the charts into the folder as SVG, and return them for the UI: the best models only."""
    for name, chart in plot(db, *names).items():
        swap_in(folder / f"{name}.svg", chart.svg().encode())
    shown = plot(db, *names, most=MOST_IN_CHARTS)
    return {f"plot_{name}": dg.MetadataValue.md(chart.markdown()) for name, chart in shown.items()}


def listed(texts: Iterable[str]) -> dg.MarkdownMetadataValue:
    """A list of names or sentences, which stay as they are; an empty one says so."""
    return dg.MetadataValue.md("\n".join(f"- {_as_it_is(text)}" for text in texts) or "none")


def numbers(db: duckdb.DuckDBPyConnection, *names: str) -> dict[str, int | float]:
    """Those of the results' numbers, to be followed over time; what is not known is left out."""
    (found,) = rows(query(db, "summaries/in_numbers").project(", ".join(names)))
    return {
        name: round(value, DIGITS)
        for name, value in found.items()
        if isinstance(value, int | float)
    }


def tallied(tallies: Sequence[StageProgress]) -> Metadata:
    """What a launch of a stage did, in all and for each model."""
    by_model = [
        {
            "model": tally.model,
            "pending": tally.planned,
            "done": tally.asked,
            **{str(outcome): count for outcome, count in tally.outcomes.items()},
            "estimated_usd": tally.estimated_usd or 0.0,
            "cost_usd": tally.cost_usd,
            "stopped": tally.stopped or "",
        }
        for tally in tallies
    ]
    return {
        "launch_pending": sum(tally.planned for tally in tallies),
        "launch_done": sum(tally.asked for tally in tallies),
        "launch_input_tokens": sum(tally.input_tokens for tally in tallies),
        "launch_output_tokens": sum(tally.output_tokens for tally in tallies),
        "launch_estimated_usd": round(sum(one.estimated_usd or 0.0 for one in tallies), DIGITS),
        "launch_cost_usd": round(sum(tally.cost_usd for tally in tallies), DIGITS),
        "budget_reached": any(tally.budget_reached for tally in tallies),
        "warnings": listed(warning for tally in tallies for warning in tally.warnings),
        "models": markdown(by_model),
    }


class StageProgressList(list[StageProgress]):
    """How far each model is, shown in the UI and at the terminal while a stage runs."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        super().__init__()
        self._context = context

    def run(
        self,
        work: Coroutine[Any, Any, list[StageProgress]],
        settings: Settings,
        warehouse: WarehouseResource,
        *,
        judges: Sequence[str] = (),
    ) -> list[StageProgress]:
        """Run the stage that counts on this board, and publish its results in any case."""

        def describe() -> Stage:
            known = known_models(warehouse.journal).values()
            simulated = {model.id for model in known if model.simulated}
            return Stage(self, judges, settings.budget, simulated)

        try:
            with under_way(describe):
                return run_async(work, meanwhile=self.show)
        finally:  # results from before an interruption are published too
            warehouse.publish()

    def show(self) -> None:
        """One observation for all models: Dagster's event log is not for single requests."""
        busy = [tally.progress() for tally in self if tally.planned]
        metadata = {
            "done": sum(tally.asked for tally in self),
            "planned": sum(tally.planned for tally in self),
            "cost_usd": sum(tally.cost_usd for tally in self),
            "models": markdown(busy),
        }
        context = self._context
        one = context.partition_keys if context.has_partition_key else []
        partition = one[0] if len(one) == 1 else None
        context.log_event(
            dg.AssetObservation(context.asset_key, partition=partition, metadata=metadata)
        )


def fail_if_nobody_could(tallies: Sequence[StageProgress]) -> None:
    """Fails the step if every model had to be given up; some of many are told in the metadata."""
    if tallies and all(tally.failed for tally in tallies):
        reasons = dict.fromkeys(tally.stopped or "" for tally in tallies)
        raise dg.Failure(" ".join(reasons), metadata=tallied(tallies))


def described(db: duckdb.DuckDBPyConnection, table: str) -> Metadata:
    """The table or view of that name, under the keys that Dagster shows tables by."""
    of_table = duckdb.ColumnExpression("relation") == duckdb.ConstantExpression(table)
    found = query(db, "summaries/schema").filter(of_table).project('"column", "type", meaning')
    columns = [dg.TableColumn(name, kind, meaning) for name, kind, meaning in found.fetchall()]
    return {
        "dagster/table_name": f"main.{table}",
        "dagster/row_count": len(db.table(table)),
        "dagster/column_schema": dg.MetadataValue.table_schema(dg.TableSchema(columns)),
    }


_ON_THE_WAY = (Outcome.RATE_LIMITED, Outcome.TIMEOUT, Outcome.SERVER_ERROR)
OF_REPLIES = (
    Outcome.OK,
    Outcome.REFUSED,
    Outcome.TRUNCATED,
    Outcome.TRUNCATED_THINKING,
    Outcome.CONTENT_FILTER,
    Outcome.EMPTY,
    *_ON_THE_WAY,
)
OF_VERDICTS = (Outcome.OK, Outcome.JUDGE_UNPARSABLE, *_ON_THE_WAY)


def _outcomes(row: Mapping[str, Any], common: Sequence[Outcome]) -> Metadata:
    """Return a stage's numbers, what failed, and how much ended how.

    There is a number also for common outcomes that did not occur: so it is plotted.
    """
    failures, outcomes = row["failures"], {**dict.fromkeys(common, 0), **row["outcomes"]}
    numbers = {
        name: round(value, DIGITS) if isinstance(value, float) else value
        for name, value in row.items()
        if value is not None and name not in {"failures", "outcomes"}
    }
    counts = {f"outcome_{outcome}": count for outcome, count in outcomes.items()}
    return {**numbers, **counts, "failures": markdown(failures)}


def how_asking_went(
    db: duckdb.DuckDBPyConnection, tallies: Sequence[StageProgress], experiment: str, launch: Launch
) -> dict[str, Metadata]:
    """For each model its run as a whole, and what this launch did about it."""
    models = [tally.model for tally in tallies]
    continued = [*filter(None, [launch.continue_run]), *launch.continue_runs.values()]
    given = {"models": models, "experiment": experiment, "continued": continued}
    found = {row.pop("model"): row for row in rows(query(db, "summaries/asked", given))}
    kept = dict(db.table("predictions").aggregate("model, count(*)", "model").fetchall())
    shown = described(db, "predictions")
    return {
        tally.model: {
            **(_outcomes(found[tally.model], OF_REPLIES) if tally.model in found else {}),
            **tallied([tally]),
            **shown,
            "dagster/partition_row_count": kept.get(tally.model, 0),
        }
        for tally in tallies
    }


def how_judging_went(
    db: duckdb.DuckDBPyConnection, tallies: Sequence[StageProgress], models: Sequence[str]
) -> Metadata:
    """The latest runs (of these models, if any) as a whole, and what this launch did about them."""
    (row,) = rows(query(db, "summaries/verdicts", {"models": list(models)}))
    return {**_outcomes(row, OF_VERDICTS), **tallied(tallies)}


def how_analysing_went(reported: Sequence[Reported], scope: Scope) -> Metadata:
    """How many failures are whose, in which runs, and where the reports are."""
    lines = [one.counts for one in reported]
    written = [one.path for one in reported if one.path is not None]
    numbers = ("wrong", *map(str, Classification), "unexplained")
    return {
        "runs_analysed": len(reported),
        "reports": len(written),
        **{name: sum(line.get(name, 0) for line in lines) for name in numbers},
        "written": listed(map(str, written)),
        "edited_copies": listed(str(copy) for path in written for copy in edited_copies(path)),
        "by_run": markdown(
            [
                {"model": one.run["model"], "run": one.run["run_id"][:8], **one.counts}
                for one in reported
            ]
        ),
        "passed_over": listed(one.sentence for one in scope.passed_over),
    }


REPORT = "judge_reliability.md"
MOST_WARNINGS = 10


def write_report(
    db: duckdb.DuckDBPyConnection,
    settings: Settings,
    tallies: Sequence[StageProgress],
    warnings: Sequence[str],
) -> Metadata:
    """Write the report on the judges' reliability; return its tables, warnings and path."""
    more = [warning for tally in tallies for warning in tally.warnings]
    report, path = Report.of(db, [*warnings, *more]), settings.reports / REPORT
    report.write(path, now())
    tables = {name: dg.MetadataValue.md(table) for name, table in report.tables().items()}
    return {
        "warnings": listed(report.warnings),
        "report": dg.MetadataValue.path(path),
        **{name.replace(" ", "_"): table for name, table in tables.items()},
    }


def own_family(db: duckdb.DuckDBPyConnection) -> dg.MarkdownMetadataValue:
    """A sentence for each judge that grades models of its own vendor."""
    rows = Report.of(db, []).rows
    sentences = dict.fromkeys(row["warning"] for row in rows if row["warning"])
    return listed(list(sentences)[:MOST_WARNINGS])

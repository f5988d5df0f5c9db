"""Metadata that assets show in the UI: counts, tokens, cost, tables and plots."""

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

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
from eval_pipeline.records.base import Record, now
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
    known = {name: value for name, value in found.items() if isinstance(value, int | float)}
    return {name: rounded(value) for name, value in known.items()}


@overload
def rounded(value: int | float) -> int | float: ...
@overload
def rounded(value: int | float | str) -> int | float | str: ...
def rounded(value: int | float | str) -> int | float | str:
    """A number to digits that people can read; anything else as it is."""
    return round(value, DIGITS) if isinstance(value, float) else value


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
        "launch_estimated_usd": rounded(sum(tally.estimated_usd or 0.0 for tally in tallies)),
        "launch_cost_usd": rounded(sum(tally.cost_usd for tally in tallies)),
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


SCHEMA = "main"


def described(
    db: duckdb.DuckDBPyConnection, table: str
) -> dict[str, str | int | dg.TableSchemaMetadataValue]:
    """The table or view of that name, under the keys that Dagster shows tables by."""
    return {
        "dagster/table_name": f"{SCHEMA}.{table}",
        "dagster/row_count": len(db.table(table)),
        "dagster/column_schema": dg.MetadataValue.table_schema(_columns(db, table)),
    }


def rows_by_model(
    db: duckdb.DuckDBPyConnection, table: str, models: Sequence[str]
) -> dict[str, int]:
    """How many rows of the table each model has."""
    counted = dict(db.table(table).aggregate("model, count(*)", "model").fetchall())
    return {model: counted.get(model, 0) for model in models}


def _columns(db: duckdb.DuckDBPyConnection, table: str) -> dg.TableSchema:
    of_table = duckdb.ColumnExpression("relation") == duckdb.ConstantExpression(table)
    found = query(db, "summaries/schema").filter(of_table).project('"column", "type", meaning')
    return dg.TableSchema(
        [
            dg.TableColumn(name, type=kind, description=meaning)
            for name, kind, meaning in found.fetchall()
        ]
    )


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


class Went(Record):
    """How a stage went: its numbers, how much ended how, and what did not end well."""

    numbers: dict[str, int | float | str | None]
    outcomes: dict[Outcome, int]
    failures: tuple[dict[str, int | str], ...]

    @classmethod
    def of(cls, row: Mapping[str, object]) -> "Went":
        """From a row of a summary, by column."""
        apart = {name: row[name] for name in ("outcomes", "failures")}
        rest = {name: value for name, value in row.items() if name not in apart}
        return cls.model_validate({"numbers": rest, **apart})

    def told(self, common: Sequence[Outcome]) -> Metadata:
        """A number for each outcome, also for common ones that did not occur: so it is plotted."""
        outcomes = {**dict.fromkeys(common, 0), **self.outcomes}
        return {
            **{name: rounded(value) for name, value in self.numbers.items() if value is not None},
            **{f"outcome_{outcome}": count for outcome, count in outcomes.items()},
            "failures": markdown(self.failures),
        }


def how_asking_went(
    db: duckdb.DuckDBPyConnection, tallies: Sequence[StageProgress], experiment: str, launch: Launch
) -> dict[str, Metadata]:
    """For each model its run as a whole, and what this launch did about it."""
    models = [tally.model for tally in tallies]
    continued = [*filter(None, [launch.continue_run]), *launch.continue_runs.values()]
    given = {"models": models, "experiment": experiment, "continued": continued}
    found = {row.pop("model"): row for row in rows(query(db, "summaries/asked", given))}
    kept = rows_by_model(db, "predictions", models)
    shown = described(db, "predictions")
    return {
        tally.model: {
            **(Went.of(found[tally.model]).told(OF_REPLIES) if tally.model in found else {}),
            **tallied([tally]),
            **shown,
            "dagster/partition_row_count": kept[tally.model],
        }
        for tally in tallies
    }


def how_judging_went(
    db: duckdb.DuckDBPyConnection, tallies: Sequence[StageProgress], models: Sequence[str]
) -> Metadata:
    """The latest runs (of these models, if any) as a whole, and what this launch did about them."""
    (row,) = rows(query(db, "summaries/verdicts", {"models": list(models)}))
    return {**Went.of(row).told(OF_VERDICTS), **tallied(tallies)}


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
            [{**_named(one), **line} for one, line in zip(reported, lines, strict=True)]
        ),
        "passed_over": listed(one.sentence for one in scope.passed_over),
    }


def _named(reported: Reported) -> dict[str, str]:
    return {"model": reported.run["model"], "run": reported.run["run_id"][:8]}


REPORT = "judge_reliability.md"
MOST_WARNINGS = 10


def write_report(
    warehouse: WarehouseResource,
    settings: Settings,
    tallies: Sequence[StageProgress],
    warnings: Sequence[str],
) -> Metadata:
    """Write the report on the judges' reliability; return its tables, warnings and path."""
    more = [warning for tally in tallies for warning in tally.warnings]
    with warehouse.get_connection() as db:
        report = Report.of(db, [*warnings, *more])
    report.write(settings.reports / REPORT, now())
    return {
        "warnings": listed(report.warnings),
        "report": dg.MetadataValue.path(settings.reports / REPORT),
        **{
            name.replace(" ", "_"): dg.MetadataValue.md(table)
            for name, table in report.tables().items()
        },
    }


def own_family(warehouse: WarehouseResource) -> dg.MarkdownMetadataValue:
    """A sentence for each judge that grades models of its own vendor."""
    with warehouse.get_connection() as db:
        rows = Report.of(db, []).rows
    sentences = dict.fromkeys(row["warning"] for row in rows if row["warning"])
    return listed(list(sentences)[:MOST_WARNINGS])

"""What an asset tells the UI: counts, tokens, cost, tables."""

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import dagster as dg
import duckdb
from tabulate import tabulate

from eval_pipeline.evaluation.catalog import known_models
from eval_pipeline.journal import Journal
from eval_pipeline.journal.files import swap_in
from eval_pipeline.progress import Stage, under_way
from eval_pipeline.results.charts import plot
from eval_pipeline.results.queries import query, rows
from eval_pipeline.runtime import run_async
from eval_pipeline.settings import Settings
from eval_pipeline.stages.workers import Tally
from eval_pipeline.untrusted import plain

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


def tallied(tallies: Sequence[Tally]) -> Metadata:
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


class Board(list[Tally]):
    """How far each model is, shown in the UI and at the terminal while a stage runs."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        super().__init__()
        self._context = context

    def run(
        self,
        work: Coroutine[Any, Any, list[Tally]],
        settings: Settings,
        journal: Journal,
        *,
        judges: Sequence[str] = (),
    ) -> list[Tally]:
        """Runs the stage that counts on this board."""

        def describe() -> Stage:
            known = known_models(journal).values()
            simulated = {model.id for model in known if model.simulated}
            return Stage(self, judges, settings.budget, simulated)

        with under_way(describe):
            return run_async(work, meanwhile=self.show)

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


def fail_if_nobody_could(tallies: Sequence[Tally]) -> None:
    """Fails the step if every model had to be given up; some of many are told in the metadata."""
    if tallies and all(tally.failed for tally in tallies):
        reasons = dict.fromkeys(tally.stopped or "" for tally in tallies)
        raise dg.Failure(" ".join(reasons), metadata=tallied(tallies))

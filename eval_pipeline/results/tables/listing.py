"""Tables of suites, items, experiments, models and versions."""

import json
from collections.abc import Iterable, Sequence

from eval_pipeline.gateways.catalog import MILLION
from eval_pipeline.results.tables.format import (
    Cell,
    FittedTable,
    Row,
    accuracy,
    all_simulated,
    cell,
    in_brackets,
    minute,
    named,
    number,
    one_line,
    whole,
)
from eval_pipeline.suites.listing import OfferedExperiment, OfferedItem, OfferedSuite
from eval_pipeline.text import printable


def suites_table(offered: Iterable[OfferedSuite]) -> FittedTable:
    """Every suite with its categories."""
    columns = ("suite", "kind", "category", "items", "text only")
    table = FittedTable("Suites", *columns, right=columns[3:], prose=("suite", "category"))
    for suite in offered:
        table.add(cell(suite.suite), suite.kind, "(all)", str(suite.items), str(suite.text_items))
        for one in suite.categories:
            table.add("", "", cell(one.category), str(one.items), str(one.text_items))
    return table


def items_table(offered: Iterable[OfferedItem], longest: int) -> FittedTable:
    """One row per item, with how its question begins."""
    columns = ("item", "category", "kind", "image", "question")
    table = FittedTable(
        "Items",
        *columns,
        prose=("item", "category", "question"),
        dropped_first=("image", "kind"),
    )
    for one in offered:
        name = cell(f"{one.suite}/{one.item_id}")
        image = "yes" if one.input == "image" else "no"
        begins = cell(one_line(one.question, longest))
        table.add(name, cell(one.category), one.kind, image, begins)
    return table


def experiments_table(offered: Iterable[OfferedExperiment]) -> FittedTable:
    """Every experiment with what it varies."""
    columns = ("experiment", "what it varies")
    table = FittedTable("Experiments", *columns, prose=columns)
    for one in offered:
        chosen = " (chosen)" if one.is_chosen else ""
        said = ", ".join(f"{name} = {json.dumps(value)}" for name, value in one.varies.items())
        table.add(cell(f"{one.experiment}{chosen}"), cell(said or "nothing"))
    return table


def models_table(rows: Sequence[Row]) -> FittedTable:
    """Prices and abilities of models, and how their latest runs went."""
    simulated = all_simulated(rows)
    table = FittedTable(
        "SIMULATED models" if simulated else "Models",
        *("model", "gateway", "in", "out", "context", "images", "web", "latest run", "accuracy"),
        right=("in", "out", "context", "accuracy"),
        prose=("gateway", "latest run"),
        dropped_first=("gateway", "context", "web", "images"),
        caption="in, out: US dollars per million tokens. Accuracy in the latest run with its "
        "95 % interval. Times are UTC.",
    )
    for row in rows:
        table.add(
            named(row["model"], _remarks(row, all_simulated=simulated)),
            cell(row["gateway"]),
            _per_million(row["prompt_price"]),
            _per_million(row["completion_price"]),
            whole(row["context_length"]),
            "yes" if row["sees_images"] else "no",
            "yes" if row["web_search"] else "no",
            _latest(row),
            _accuracy(row),
        )
    return table


def due_table(rows: Iterable[tuple[str, ...]]) -> FittedTable:
    """Return a table of the models with whether they are due, and why."""
    table = FittedTable("Due to be evaluated", "model", "due", "when", "reason", prose=("reason",))
    for model, due, when, reason in rows:
        table.add(named(model), due, when, cell(reason))
    return table


def versions_table(rows: Iterable[Row]) -> FittedTable:
    """Return a table of every benchmark version, the latest first."""
    columns = ("version", "name", "state", "items", "loaded", "runs")
    table = FittedTable("Benchmark versions", *columns, prose=("name", "state"))
    for row in rows:
        table.add(*(cell(row[column]) for column in columns))
    return table


def _per_million(price: float | None) -> str:
    return number(None if price is None else price * MILLION, "{:.4g}")


def _remarks(row: Row, *, all_simulated: bool) -> str:
    return in_brackets(
        "simulated" if row["simulated"] and not all_simulated else "",
        "" if row["selected"] else "not selected",
        "" if row["listed"] else "no longer listed",
        "nobody answers for it" if row["kept_out_because"] else "",
    )


def _latest(row: Row) -> Cell:
    if row["run_id"] is None:
        return Cell("never")
    special = (
        "" if row["experiment"] == "default" else row["experiment"],
        "" if row["scope"] == "full" else row["scope"],
    )
    return minute(row["opened_at"]).followed_by(printable(in_brackets(*special)))


def _accuracy(row: Row) -> Cell:
    return accuracy(row).followed_by(f" of {row['judged']}" if row["judged"] else "")

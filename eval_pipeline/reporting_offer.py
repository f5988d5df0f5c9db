"""What there is to run, as people read it: suites, items, experiments and models in tables."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from eval_pipeline.cli.output import printable
from eval_pipeline.news import MILLION
from eval_pipeline.offer import OfferedExperiment, OfferedItem, OfferedSuite
from eval_pipeline.reporting import number

LONGEST_CELL = 300
INTERVAL = len("(15% to 28%)")


def a_table(
    title: str,
    *columns: str,
    right: Sequence[str] = (),
    caption: str = "",
    dense: bool = False,
) -> Table:
    """An empty table; a dense one has room for many columns in a narrow terminal."""
    table = Table(
        title=Text(printable(title), style="table.title"),
        caption=caption or None,
        box=SIMPLE,
        show_edge=False,
        padding=0 if dense else (0, 1, 0, 0),
    )
    for name in columns:
        table.add_column(
            name,
            overflow="fold",
            justify="right" if name in right else "left",
            min_width=INTERVAL if name == "accuracy" else None,
        )
    return table


def cell(text: object) -> Text:
    """What somebody else may have had a hand in, as it is: no markup, nothing to be obeyed."""
    return Text(printable(str(text)))


def one_line(text: str, longest: int = LONGEST_CELL) -> str:
    """The words of a text without its line breaks, cut where it is long."""
    words = " ".join(text[: 4 * longest].split())
    return words if len(words) <= longest else f"{words[: longest - 2]} …"


def minute(moment: datetime | None) -> str:
    """A time to the minute."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def accuracy(row: Mapping[str, Any]) -> str:
    """A share with its 95 % interval, if anything was judged."""
    if row["accuracy"] is None:
        return "-"
    low, high = row["accuracy_low"], row["accuracy_high"]
    return f"{row['accuracy']:.1%} ({low:.0%} to {high:.0%})"


def suites_table(offered: Iterable[OfferedSuite]) -> Table:
    """Every suite with its categories."""
    table = a_table(
        "Suites", "suite", "kind", "category", "items", "text only", right=("items", "text only")
    )
    for suite in offered:
        table.add_row(
            cell(suite.suite), suite.kind, "(all)", str(suite.items), str(suite.text_items)
        )
        for one in suite.categories:
            table.add_row("", "", cell(one.category), str(one.items), str(one.text_items))
    return table


def items_table(offered: Iterable[OfferedItem], longest: int) -> Table:
    """One row per item, with how its question begins."""
    table = a_table("Items", "item", "category", "kind", "image", "question")
    for one in offered:
        name = cell(f"{one.suite}/{one.item_id}")
        image = "yes" if one.input == "image" else "no"
        begins = cell(one_line(one.question, longest))
        table.add_row(name, cell(one.category), one.kind, image, begins)
    return table


def experiments_table(offered: Iterable[OfferedExperiment]) -> Table:
    """Every experiment with what it varies."""
    table = a_table("Experiments", "experiment", "what it varies")
    for one in offered:
        chosen = " (chosen)" if one.is_chosen else ""
        said = ", ".join(f"{name} = {json.dumps(value)}" for name, value in one.varies.items())
        table.add_row(cell(f"{one.experiment}{chosen}"), cell(said or "nothing"))
    return table


def models_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Prices and abilities of models, and how their latest runs went."""
    simulated = bool(rows) and all(row["simulated"] for row in rows)
    table = a_table(
        "SIMULATED models" if simulated else "Models",
        *("model", "gateway", "in", "out", "context", "images", "web", "latest run", "accuracy"),
        right=("in", "out", "context", "accuracy"),
        caption="in, out: US dollars per million tokens. Accuracy in the latest run with its "
        "95 % interval. Times are UTC.",
        dense=True,
    )
    for row in rows:
        table.add_row(
            cell(row["model"] + _remarks(row, all_simulated=simulated)),
            cell(row["gateway"]),
            _per_million(row["prompt_price"]),
            _per_million(row["completion_price"]),
            "-" if row["context_length"] is None else f"{row['context_length']:,}",
            "yes" if row["sees_images"] else "no",
            "yes" if row["web_search"] else "no",
            cell(_latest(row)),
            accuracy(row) + (f" of {row['judged']}" if row["judged"] else ""),
        )
    return table


def _per_million(price: float | None) -> str:
    return number(None if price is None else price * MILLION, "{:.4g}")


def _remarks(row: Mapping[str, Any], *, all_simulated: bool) -> str:
    made = [
        "simulated" if row["simulated"] and not all_simulated else "",
        "" if row["selected"] else "not selected",
        "" if row["listed"] else "no longer listed",
        "nobody answers for it" if row["kept_out_because"] else "",
    ]
    said = ", ".join(filter(None, made))
    return f" ({said})" if said else ""


def _latest(row: Mapping[str, Any]) -> str:
    if row["run_id"] is None:
        return "never"
    special = [
        "" if row["experiment"] == "default" else row["experiment"],
        "" if row["scope"] == "full" else row["scope"],
    ]
    said = ", ".join(filter(None, special))
    return minute(row["opened_at"]) + (f" ({said})" if said else "")

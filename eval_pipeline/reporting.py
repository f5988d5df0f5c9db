"""Rows as people read them: the leaderboard in a terminal, the schema as a page."""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import duckdb
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from eval_pipeline.coding.records import STEPS
from eval_pipeline.queries import apply_migrations, query
from eval_pipeline.stats.intervals import LEVEL, Interval

if TYPE_CHECKING:  # loading these takes a moment, and most commands do without
    import pandas as pd

    from eval_pipeline.side_by_side import SideBySide

OTHERWISE_JUDGED = ", with another prompt or limit than its official verdicts"
_MARKUP = re.compile(r"([\\`*_\[\]<>|#~&])")
CAPTION = (
    "In brackets the 95 % interval; # is the range of ranks that the data allow. Models that share "
    "a letter can not be told apart. Calibration error: lower is better. 3x140 are three runs of "
    "140 items. USD: per run."
)


def leaderboard_tables(rows: "pd.DataFrame") -> Iterator[Table]:
    """The leaderboard, one table per judge, who is named; simulated models are called so."""
    for judge, board in rows.groupby("judge", sort=False):
        yield _leaderboard_table(board, str(judge))


def _leaderboard_table(rows: "pd.DataFrame", judge: str) -> Table:
    """Narrow enough for any terminal."""
    simulated = bool(rows["simulated"].all())
    of_whom = " of SIMULATED models (their skill is invented)" if simulated else ""
    title = f"Leaderboard{of_whom}, judged by {escape(judge)}"
    table = Table(title=title, caption=CAPTION, box=SIMPLE, show_edge=False, pad_edge=False)
    table.add_column("#", justify="right", min_width=2, no_wrap=True)
    table.add_column("model", overflow="fold")
    for name in ("accuracy", "ties", "calib.", "items", "USD"):
        table.add_column(name, justify="left" if name == "ties" else "right", no_wrap=True)
    for row in rows.to_dict("records"):
        table.add_row(
            rank_range(row["rank_low"], row["rank_high"]),
            escape(row["model"] + remarks(row, all_simulated=simulated)),
            f"{row['accuracy']:.1%} ({row['accuracy_low']:.0%} to {row['accuracy_high']:.0%})",
            row["ties"],
            number(row["calibration_error"], "{:.3f}"),
            f"{row['runs']}x{row['judged']}" if row["runs"] > 1 else str(row["judged"]),
            number(row["cost_usd"], "{:.4f}"),
        )
    return table


def steps_table(rows: "pd.DataFrame") -> Table:
    """Where answers in code failed, model by model."""
    simulated = bool(rows["simulated"].all())
    title = "Code" + (" of SIMULATED models" if simulated else "")
    caption = "how many answers failed first at which step"
    table = Table(title=title, caption=caption, box=SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", overflow="fold")
    for name in ("passed", *STEPS):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows.to_dict("records"):
        table.add_row(
            escape(row["model"] + remarks(row, all_simulated=simulated)),
            f"{row['passed']}/{row['graded']}",
            *(str(row[step]) for step in STEPS),
        )
    return table


def rank_range(low: int, high: int) -> str:
    """The places that the data allow."""
    return str(low) if low == high else f"{low}-{high}"


def comparison_lines(found: "SideBySide") -> list[str]:
    """What two sides being compared comes to, in sentences."""
    one, paired = found.compared, found.compared.paired
    better = found.a if paired.difference > 0 else found.b
    p_value = paired.p_value if found.corrected is None else found.corrected
    lines = [
        f"A: {found.a.name}: {one.accuracy_a:.1%}",
        f"B: {found.b.name}: {one.accuracy_b:.1%}",
        f"A - B: {_points(paired.difference)} points{_within(paired.interval)} on "
        f"{_counted(paired.items, 'item')} that both were scored on by {found.judge.judge}"
        + ("" if found.is_official else OTHERWISE_JUDGED),
        f"A scored higher on {paired.better}, B on {paired.worse} of them.",
        f"p = {paired.p_value:.2g} ({_TESTS[paired.test]})"
        + (
            ""
            if found.corrected is None
            else f"; {found.corrected:.2g} corrected for {_counted(found.pairs, 'pair')} (Holm)"
        ),
    ]
    if (detectable := paired.detectable(found.pairs or 1)) is not None:
        lines.append(
            f"A true difference of {detectable * 100:.1f} points would be found in 80 % of such "
            "comparisons; do not expect a smaller one to show."
        )
    certain = p_value < LEVEL
    lines.append(f"{better.name} is better." if certain else "They can not be told apart.")
    return lines


def _within(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f" (95 % interval {_points(interval.low)} to {_points(interval.high)})"


def differences_table(found: "SideBySide", most: int) -> Table:
    """The items on which they differ, those that A won first."""
    left = max(0, len(found.differences) - most)
    table = Table(
        title="Items on which they differ",
        caption=f"{left} more; all with --items {len(found.differences)}" if left else None,
        box=SIMPLE,
    )
    for name in ("item", "category"):
        table.add_column(name, overflow="fold")
    for name in ("A", "B"):
        table.add_column(name, justify="right")
    for one in found.differences[:most]:
        name = f"{one.suite}/{one.item_id}"
        table.add_row(escape(name), escape(one.category), f"{one.score_a:g}", f"{one.score_b:g}")
    return table


_TESTS = {"mcnemar": "exact McNemar test", "sign_flip": "sign-flip test"}


def _counted(number: int | None, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _points(share: float) -> str:
    return f"{share * 100:+.1f}"


def remarks(row: Mapping[Hashable, Any], *, all_simulated: bool) -> str:
    """What must be known of a row besides the model's name."""
    made = [
        "simulated" if row["simulated"] and not all_simulated else "",
        "text only" if row["scope"] == "text" else "",
        "" if row["experiment"] == "default" else row["experiment"],
    ]
    said = ", ".join(filter(None, made))
    return f" ({said})" if said else ""


def versions_table(rows: "pd.DataFrame") -> Table:
    """Every benchmark version, the latest first."""
    table = Table(title="Benchmark versions", box=SIMPLE, show_edge=False, pad_edge=False)
    for name in rows.columns:
        table.add_column(name, overflow="fold", no_wrap=name != "name")
    for row in rows.itertuples(index=False):
        table.add_row(*(escape(str(cell)) for cell in row))
    return table


def due_table(rows: Iterable[tuple[str, ...]]) -> Table:
    """Which models are due and why or why not."""
    table = Table(title="Due to be evaluated", box=SIMPLE, show_edge=False, pad_edge=False)
    for name in ("model", "due", "when", "reason"):
        table.add_column(name, overflow="fold", no_wrap=name in ("due", "when"))
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def plain(text: str) -> str:
    """A text of somebody else's that is to be read as it is, not as Markdown."""
    return _MARKUP.sub(r"\\\1", text)


def schema_page() -> str:
    """Every table and view with its columns, from the database's own comments."""
    with duckdb.connect() as db:
        apply_migrations(db)
        columns = query(db, "schema").df()
    lines = [
        "# The tables and views of `data/evals.duckdb`",
        "",
        "Generated by `make docs` from the comments in the database; do not edit.",
        "",
    ]
    for (name, about), described in columns.groupby(["relation", "about"], sort=True):
        lines += [f"## {name}", "", f"{about}", "", "| column | type | meaning |", "|---|---|---|"]
        lines += [
            f"| `{row.column}` | {row.type} | {row.meaning} |" for row in described.itertuples()
        ]
        lines.append("")
    return "\n".join(lines)


def number(value: float | None, form: str) -> str:
    """A number if there is one."""
    return "-" if value is None or value != value else form.format(value)  # noqa: PLR0124  (NaN)

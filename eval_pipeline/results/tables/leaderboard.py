"""The leaderboard: in a terminal, and as a page in Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path

import duckdb
from tabulate import tabulate

from eval_pipeline.journal import translate_os_errors
from eval_pipeline.journal.files import swap_in
from eval_pipeline.records.coding import STEPS
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.tables.format import (
    FittedTable,
    Row,
    accuracy,
    all_simulated,
    named,
    number,
    rank_range,
    remarks,
    titled,
    usd,
)
from eval_pipeline.text import plain

CAPTION = (
    "In brackets the 95 % interval; # is the range of ranks that the data allow. Models that share "
    "a letter can not be told apart. Calibration error: lower is better. 3x140 are three runs of "
    "140 items. USD: per run."
)


def leaderboard_tables(found: Sequence[Row]) -> Iterator[FittedTable]:
    """Yield the leaderboard, one table per judge; simulated models are called so."""
    for judge, board in groupby(found, key=lambda row: row["judge"]):
        yield _leaderboard_table(list(board), judge)


def _leaderboard_table(board: Sequence[Row], judge: str) -> FittedTable:
    simulated = all_simulated(board)
    of_whom = " of SIMULATED models (their skill is invented)" if simulated else ""
    table = FittedTable(
        f"Leaderboard{of_whom}, judged by {judge}",
        *("#", "model", "accuracy", "ties", "calib.", "items", "USD"),
        right=("#", "accuracy", "calib.", "items", "USD"),
        dropped_first=("calib.", "USD"),
        caption=CAPTION,
    )
    for row in board:
        table.add(
            rank_range(row["rank_low"], row["rank_high"]),
            named(row["model"], remarks(row, all_simulated=simulated)),
            accuracy(row),
            row["ties"],
            number(row["calibration_error"], "{:.3f}"),
            _items(row),
            usd(row["cost_usd"]),
        )
    return table


def _items(row: Row) -> str:
    return f"{row['runs']}x{row['judged']}" if row["runs"] > 1 else str(row["judged"])


def steps_table(found: Sequence[Row]) -> FittedTable:
    """Return a table of where answers in code failed, model by model."""
    columns = ("model", "passed", *STEPS)
    table = FittedTable(
        titled("Code", found),
        *columns,
        right=columns[1:],
        caption="how many answers failed first at which step",
    )
    for row in found:
        table.add(
            named(row["model"], remarks(row, all_simulated=all_simulated(found))),
            f"{row['passed']}/{row['graded']}",
            *(str(row[step]) for step in STEPS),
        )
    return table


PLOTS = {
    "accuracy": "Accuracy with its 95 % interval",
    "accuracy_and_cost": "Accuracy and cost",
    "calibration": "Stated confidence and accuracy",
    "categories": "Accuracy by category",
}
HOW_TO_READ = (
    "In brackets stands the 95 % interval; # is the range of ranks that the data allow. Models "
    "that share a letter under ties can not be told apart. Calibration error: lower is better. "
    "3x140 items are three runs of 140. USD are per run."
)
HOW_TO_RENEW = (
    "`evals job metrics_only` computes everything anew and writes this page, and nobody is asked "
    "anything; `evals run` first asks the selected models what is missing. Every number is in "
    "`data/evals.duckdb`, in the view `leaderboard`."
)


def leaderboard_page(
    db: duckdb.DuckDBPyConnection, when: datetime, pictures: Sequence[str] = ()
) -> str:
    """The whole report; pictures are named as in `PLOTS` and stand beside it in plots/."""
    found = rows(query(db, "summaries/leaderboard"))
    parts = ["# Leaderboard", f"As of {when:%Y-%m-%d %H:%M} UTC. {_version(db)}"]
    if any(row["simulated"] for row in found):
        whose = "All models" if all_simulated(found) else "Models that are called simulated"
        parts.append(
            f"**{whose} are SIMULATED: their skill is invented, and their scores say nothing "
            "about any real model.**"
        )
    for judge, board in groupby(found, key=lambda row: row["judge"]):
        parts += [f"## Judged by {plain(judge)}", _table(board)]
    parts.append(HOW_TO_READ if found else "No run is complete yet.")
    parts += ["## Left out", _left_out(db)]
    if pictures:
        parts += ["## Plots", *(f"![{PLOTS[name]}](plots/{name}.svg)" for name in pictures)]
    return "\n\n".join([*parts, "## How to renew this page", HOW_TO_RENEW]) + "\n"


def write_leaderboard(db: duckdb.DuckDBPyConnection, path: Path, when: datetime) -> None:
    """Puts the page in place as a whole, with those plots that are there."""
    plots = path.parent / "plots"
    pictures = [name for name in PLOTS if (plots / f"{name}.svg").exists()]
    page = leaderboard_page(db, when, pictures)
    with translate_os_errors(path):
        swap_in(path, page.encode())


def _version(db: duckdb.DuckDBPyConnection) -> str:
    published = query(db, "summaries/versions").filter("state = 'on the leaderboard'")
    found = published.project("version, name, items").fetchone()
    if found is None:
        return "No benchmark version is loaded yet."
    version, name, items = found
    named = f" ({plain(name)})" if name else ""
    return f"Benchmark version {version}{named}, {items} items."


def _table(board: Iterable[Row]) -> str:
    cells = [
        [
            rank_range(row["rank_low"], row["rank_high"]),
            plain(row["model"] + remarks(row, all_simulated=False)),
            f"{row['accuracy']:.1%} ({row['accuracy_low']:.1%} to {row['accuracy_high']:.1%})",
            row["ties"],
            number(row["calibration_error"], "{:.3f}"),
            _items(row),
            number(row["cost_usd"], "{:.4f}"),
            number(row["mean_latency_s"], "{:.1f}"),
        ]
        for row in board
    ]
    columns = ["#", "model", "accuracy", "ties", "calib. error", "items", "USD", "mean latency, s"]
    return tabulate(cells, columns, tablefmt="pipe", disable_numparse=True)


def _left_out(db: duckdb.DuckDBPyConnection) -> str:
    found = query(db, "summaries/left_out").fetchall()
    if not found:
        return "Nobody."
    cells = [[plain(" ".join(cell.split())) for cell in row] for row in found]
    columns = ["model", "experiment", "run", "why"]
    return tabulate(cells, columns, tablefmt="pipe", disable_numparse=True)

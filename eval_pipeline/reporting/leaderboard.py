"""The leaderboard in a terminal, and where answers in code failed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eval_pipeline.coding.records import STEPS
from eval_pipeline.results.tables.format import (
    FittedTable,
    accuracy,
    named,
    number,
    rank_range,
    remarks,
    usd,
)

if TYPE_CHECKING:  # loading it takes a moment, and most commands do without
    import pandas as pd

CAPTION = (
    "In brackets the 95 % interval; # is the range of ranks that the data allow. Models that share "
    "a letter can not be told apart. Calibration error: lower is better. 3x140 are three runs of "
    "140 items. USD: per run."
)


def leaderboard_tables(rows: "pd.DataFrame") -> Iterator[FittedTable]:
    """The leaderboard, one table per judge, who is named; simulated models are called so."""
    for judge, board in rows.groupby("judge", sort=False):
        yield _leaderboard_table(board, str(judge))


def _leaderboard_table(rows: "pd.DataFrame", judge: str) -> FittedTable:
    simulated = bool(rows["simulated"].all())
    of_whom = " of SIMULATED models (their skill is invented)" if simulated else ""
    table = FittedTable(
        f"Leaderboard{of_whom}, judged by {judge}",
        *("#", "model", "accuracy", "ties", "calib.", "items", "USD"),
        right=("#", "accuracy", "calib.", "items", "USD"),
        dropped_first=("calib.", "USD"),
        caption=CAPTION,
    )
    for row in rows.to_dict("records"):
        table.add(
            rank_range(row["rank_low"], row["rank_high"]),
            named(row["model"], remarks(row, all_simulated=simulated)),
            accuracy(row),
            row["ties"],
            number(row["calibration_error"], "{:.3f}"),
            f"{row['runs']}x{row['judged']}" if row["runs"] > 1 else str(row["judged"]),
            usd(row["cost_usd"]),
        )
    return table


def steps_table(rows: "pd.DataFrame") -> FittedTable:
    """Where answers in code failed, model by model."""
    simulated = bool(rows["simulated"].all())
    columns = ("model", "passed", *STEPS)
    table = FittedTable(
        "Code" + (" of SIMULATED models" if simulated else ""),
        *columns,
        right=columns[1:],
        caption="how many answers failed first at which step",
    )
    for row in rows.to_dict("records"):
        table.add(
            named(row["model"], remarks(row, all_simulated=simulated)),
            f"{row['passed']}/{row['graded']}",
            *(str(row[step]) for step in STEPS),
        )
    return table

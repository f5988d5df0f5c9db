"""Who is how good: each model's accuracy with its interval, best first."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eval_pipeline.plots.drawing import (
    BLUE,
    GREY,
    INK,
    NOTHING,
    as_percent,
    beside,
    blank,
    drawing,
    saying,
    settled,
    span,
)
from eval_pipeline.plots.labels import prepared, shown, titled

_NOTE = "Point: accuracy. Line: its 95 % interval. Rank: the places the model may truly have."
_TIED = "\nModels that share a letter can not be told apart."
_NUMBERS = ("accuracy", "accuracy_low", "accuracy_high", "rank_low", "rank_high", "judged")
_TALL = 25
_LONGEST_TIES = 24
# How far to the right of the panel each column of numbers ends, in points.
_COLUMNS = {"accuracy": 42, "judged": 82, "rank": 118}


@drawing()
def accuracy_plot(rows: pd.DataFrame) -> Figure:
    """A point and an interval per row, best first, with rank range and letters of tied groups."""
    title = titled("Accuracy", rows)
    rows = prepared(rows, *_NUMBERS)
    if rows["accuracy"].isna().all():
        return saying(NOTHING, title=title)
    rows = rows.sort_values(["accuracy", "label"], ascending=[False, True], ignore_index=True)
    note = _NOTE + (_TIED if rows["ties"].fillna("").ne("").any() else "")
    figure = blank(9.5, 1.9 + 0.2 * len(rows), title=title, note=note)
    panel = figure.subplots()
    _draw_intervals(panel, rows)
    _write_columns(panel, rows)
    _name_rows(panel, rows)
    return settled(figure)


def _draw_intervals(panel: Axes, rows: pd.DataFrame) -> None:
    panel.hlines(rows.index, rows["accuracy_low"], rows["accuracy_high"], color=BLUE, linewidth=1.6)
    fills = ["white" if simulated else BLUE for simulated in rows["simulated"]]
    panel.scatter(rows["accuracy"], rows.index, s=30, c=fills, edgecolors=BLUE, zorder=3)
    panel.set_xlim(*span(rows[["accuracy", "accuracy_low", "accuracy_high"]]))
    panel.xaxis.set_major_formatter(as_percent)


def _write_columns(panel: Axes, rows: pd.DataFrame) -> None:
    columns = {
        "accuracy": [_percent(value) for value in rows["accuracy"]],
        "judged": [_whole(value) for value in rows["judged"]],
        "rank": [_range(*ends) for ends in zip(rows["rank_low"], rows["rank_high"], strict=True)],
    }
    for name, cells in columns.items():
        for down, words in enumerate([name, *cells], start=-1):
            beside(panel, words, at=_COLUMNS[name], down=down, ha="right", color=_ink(down))
    for down, words in enumerate(_aligned(rows["ties"]), start=0):
        beside(panel, words, at=132, down=down, family="monospace")
    beside(panel, "tied", at=132, down=-1, color=_ink(-1))


def _name_rows(panel: Axes, rows: pd.DataFrame) -> None:
    panel.set_yticks(rows.index, rows["label"])
    panel.set_ylim(len(rows) - 0.4, -1.4)
    panel.tick_params(axis="y", length=0)
    panel.spines["left"].set_visible(False)
    # In a tall figure nobody sees the axis at the bottom from the top.
    panel.tick_params(axis="x", top=len(rows) > _TALL, labeltop=len(rows) > _TALL)


def _aligned(ties: pd.Series) -> list[str]:
    """Each letter in a column of its own, so that a tied group is a vertical line of letters."""
    told = [str(letters) if isinstance(letters, str) else "" for letters in ties]
    known = sorted(set("".join(told)))
    if len(known) > _LONGEST_TIES or not all(letter.isalpha() for letter in known):
        return [shown(letters, _LONGEST_TIES) for letters in told]
    return ["".join(one if one in letters else " " for one in known).rstrip() for letters in told]


def _ink(down: int) -> str:
    return GREY if down < 0 else INK


def _percent(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.1%}"  # noqa: RUF001


def _whole(value: float) -> str:
    return "" if pd.isna(value) else f"{value:,.0f}"


def _range(low: float, high: float) -> str:
    if pd.isna(low) or pd.isna(high):
        return ""
    return f"{low:.0f}" if low == high else f"{low:.0f}–{high:.0f}"  # noqa: RUF001

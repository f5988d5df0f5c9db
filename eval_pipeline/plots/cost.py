"""What accuracy costs: each model's accuracy against its cost, and who is worth the money."""

from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from eval_pipeline.plots.drawing import (
    BLUE,
    GREY,
    INK,
    NOTHING,
    PEARL,
    SILVER,
    as_percent,
    blank,
    drawing,
    saying,
    settled,
    span,
)
from eval_pipeline.plots.labels import listed, prepared, titled
from eval_pipeline.stats.pareto import pareto_front

_NOTE = "Blue, the Pareto front: nobody is at least as good for less, nor better for as much."
_REAL = " Simulated models are left out of this comparison."
_NUMBERS = ("accuracy", "accuracy_low", "accuracy_high", "cost_usd")
_LARGE_SPREAD, _MANY_DECADES = 20, 1000
# Of the key, in inches.
_LINE = 0.165
# Where its columns are, as shares of its width; names come last, for they may be of any length.
_COLUMNS = ((0.04, "right"), (0.19, "right"), (0.35, "right"), (0.39, "left"))


@drawing()
def cost_plot(rows: pd.DataFrame) -> Figure:
    """Accuracy against cost with the Pareto front; who has no known cost is named, not drawn."""
    title = titled("Accuracy and cost", rows)
    rows = prepared(rows, *_NUMBERS).dropna(subset=["accuracy"])
    if rows.empty:
        return saying(NOTHING, title=title)
    rows = rows.sort_values(["accuracy", "label"], ascending=[False, True], ignore_index=True)
    placed = np.isfinite(rows["cost_usd"]) & (rows["cost_usd"] > 0)
    left_out = _left_out(rows[~placed])
    if not placed.any():
        return saying("No costs are known", title=title, note=left_out)
    return _drawn(_with_front(rows[placed].reset_index(drop=True)), title, left_out)


def _left_out(rows: pd.DataFrame) -> str:
    free = rows["cost_usd"] == 0
    groups = {"Cost nothing": rows[free], "Cost unknown": rows[~free]}
    sentences = [
        f"{why}, so not drawn: {listed(group['label'])}."
        for why, group in groups.items()
        if len(group)
    ]
    return "\n".join(line for said in sentences for line in wrap(said, 120, break_on_hyphens=False))


def _with_front(rows: pd.DataFrame) -> pd.DataFrame:
    """Invented skill must not push real models off the front."""
    candidates = rows if rows["simulated"].all() else rows[~rows["simulated"]]
    front = pareto_front(list(candidates["cost_usd"]), list(candidates["accuracy"]))
    return rows.assign(in_front=rows.index.isin(candidates.index[front]))


def _drawn(rows: pd.DataFrame, title: str, left_out: str) -> Figure:
    mixed = rows["simulated"].any() and not rows["simulated"].all()
    note = _NOTE + (_REAL if mixed else "") + ("\n" + left_out if left_out else "")
    height = max(4.4, 1.3 + _LINE * len(rows)) + 0.13 * note.count("\n")
    figure = blank(11, height, title=title, note=note)
    panel, key = figure.subplots(1, 2, width_ratios=[1.7, 1])
    _draw_points(panel, rows)
    _scale(panel, rows)
    _write_key(key, rows, lines=int((height - 1.3) / _LINE))
    return settled(figure)


def _draw_points(panel: Axes, rows: pd.DataFrame) -> None:
    front = rows[rows["in_front"]].sort_values(["cost_usd", "accuracy"])
    intervals = rows["cost_usd"], rows["accuracy_low"], rows["accuracy_high"]
    colours = [BLUE if in_front else SILVER for in_front in rows["in_front"]]
    panel.vlines(*intervals, colors=colours, linewidth=1)
    panel.plot(front["cost_usd"], front["accuracy"], drawstyle="steps-post", color=BLUE)
    _number_points(panel, rows[~rows["in_front"]], PEARL, INK, layer=3)
    _number_points(panel, front, BLUE, "white", layer=4)


def _number_points(panel: Axes, rows: pd.DataFrame, fill: str, ink: str, *, layer: int) -> None:
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6.5}
    for number, x, y in zip(rows.index + 1, rows["cost_usd"], rows["accuracy"], strict=True):
        panel.scatter(x, y, s=110, c=fill, edgecolors="white", zorder=layer)
        panel.text(x, y, str(number), color=ink, zorder=layer, **middle)


def _scale(panel: Axes, rows: pd.DataFrame) -> None:
    panel.set_xlabel("cost in USD")
    panel.set_ylabel("accuracy, with its 95 % interval")
    panel.set_ylim(*span(rows[["accuracy", "accuracy_low", "accuracy_high"]]))
    panel.yaxis.set_major_formatter(as_percent)
    panel.margins(x=0.06)
    if rows["cost_usd"].max() > _LARGE_SPREAD * rows["cost_usd"].min():
        panel.set_xscale("log")
        panel.set_xlabel("cost in USD (log scale)")
        panel.xaxis.set_major_locator(LogLocator(subs=_steps(rows["cost_usd"])))
        panel.xaxis.set_minor_formatter(NullFormatter())
    panel.xaxis.set_major_formatter(lambda cost, _place: f"${cost:,.10g}")


def _steps(costs: pd.Series) -> tuple[float, ...]:
    return (1.0,) if costs.max() > _MANY_DECADES * costs.min() else (1.0, 2.0, 5.0)


def _write_key(key: Axes, rows: pd.DataFrame, *, lines: int) -> None:
    key.set_axis_off()
    key.set(xlim=(0, 1), ylim=(lines, -1.5))
    _write_line(key, -1, ("", "accuracy", "cost", "model"), color=GREY)
    for place, row in enumerate(rows.to_dict("records")):
        look = {"color": BLUE, "weight": "bold"} if row["in_front"] else {}
        numbers = str(place + 1), f"{row['accuracy']:.1%}", _dollars(row["cost_usd"])
        _write_line(key, place, (*numbers, row["label"]), **look)


def _write_line(key: Axes, down: int, cells: tuple[str, ...], **look: str) -> None:
    for (at, side), words in zip(_COLUMNS, cells, strict=True):
        key.text(at, down, words, ha=side, va="center", fontsize=7, **look)  # type: ignore[arg-type]


def _dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 1 else f"${cost:.2g}"

"""Do models know what they know: how often they are right against how sure they said they are."""

from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eval_pipeline.plots.drawing import (
    BLUE,
    GREY,
    INK,
    NOTHING,
    as_percent,
    blank,
    drawing,
    saying,
    settled,
)
from eval_pipeline.plots.labels import Subject, best_first, prepared, titled

_TITLE = "Reliability"
_NOTE = (
    "Dashed: right as often as it says. Points below it: too sure of itself.\n"
    "Line: 95 % interval. Size of a point: how many answers."
)
_NUMBERS = ("mean_confidence", "accuracy", "accuracy_low", "accuracy_high", "size")
_MOST = 30
_ACROSS = 5
_LONGEST = 26


@drawing()
def reliability_plot(bins: pd.DataFrame) -> Figure:
    """A small panel per model, best first: a point per bin of confidence, sized by its count."""
    title = titled(_TITLE, bins)
    bins = prepared(bins, *_NUMBERS, longest=_LONGEST, gap="\n")
    bins = bins.dropna(subset=["mean_confidence", "accuracy"])
    bins = bins[bins["size"] > 0]
    if bins.empty:
        return saying(NOTHING, title=title)
    subjects = best_first(bins, counted="size")
    more = len(subjects) - _MOST
    note = _NOTE + (f"\nThe best {_MOST} are shown; left out: {more}." if more > 0 else "")
    return _drawn(subjects[:_MOST], title, note)


def _drawn(subjects: list[Subject], title: str, note: str) -> Figure:
    across = min(_ACROSS, len(subjects))
    down = ceil(len(subjects) / across)
    width = max(6.5, 2.1 * across)
    figure = blank(width, 1.2 + down * min(3.8, 0.95 * width / across), title=title, note=note)
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    largest = max(float(subject.rows["size"].max()) for subject in subjects)
    for panel, subject in zip(grid.flat, subjects, strict=False):
        _draw_panel(panel, subject, largest)
    for panel in grid.flat[len(subjects) :]:
        panel.set_axis_off()
    _name_axes(grid, len(subjects))
    return settled(figure)


def _draw_panel(panel: Axes, subject: Subject, largest: float) -> None:
    bins = subject.rows.sort_values("mean_confidence")
    sure = bins["mean_confidence"]
    panel.plot([0, 1], [0, 1], color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
    panel.vlines(sure, bins["accuracy_low"], bins["accuracy_high"], color=BLUE, linewidth=1)
    panel.scatter(
        sure,
        bins["accuracy"],
        s=(6 + 70 * bins["size"] / largest).to_numpy(),
        c=BLUE,
        edgecolors="white",
        linewidths=0.6,
        zorder=3,
    )
    panel.set_title(subject.label, fontsize=7.5, color=INK, loc="left")


def _name_axes(grid: np.ndarray, used: int) -> None:
    across = grid.shape[1]
    for place, panel in enumerate(grid.flat[:used]):
        panel.set_aspect("equal")
        panel.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
        panel.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        panel.xaxis.set_major_formatter(as_percent)
        panel.yaxis.set_major_formatter(as_percent)
        # The last panel of each column has the labels, also where the last row is not full.
        if place + across >= used:
            panel.tick_params(labelbottom=True)
            panel.set_xlabel("stated confidence")
        if place % across == 0:
            panel.set_ylabel("accuracy")

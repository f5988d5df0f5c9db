"""Who is good at what: a heat map of models and categories."""

from collections.abc import Sequence
from math import ceil, floor

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from eval_pipeline.plots.drawing import (
    NOTHING,
    SILVER,
    as_percent,
    blank,
    drawing,
    saying,
    settled,
)
from eval_pipeline.plots.labels import Subject, best_first, fitting, prepared, titled

_NOTE = "In the cells: accuracy in percent; hatched: nothing judged. n: how many were judged."
_LONGEST = 30
# Of a cell, and the height of the scale of colours, in inches.
_WIDE, _HIGH = 0.46, 0.22
_SCALE = 2.2
# The luminance at which black and white stand out equally well (WCAG's contrast ratio).
_EVEN_CONTRAST, _GAMMA = 0.179, 2.2


@drawing()
def category_plot(cells: pd.DataFrame) -> Figure:
    """A heat map of accuracy, models best first; what was not judged stays without a colour."""
    title = titled("Accuracy by category", cells)
    cells = prepared(cells, "accuracy", "judged").dropna(subset=["accuracy"])
    cells = cells[cells["judged"] > 0]
    if cells.empty:
        return saying(NOTHING, title=title)
    cells = cells.assign(category=cells["category"].fillna("no category").astype(str))
    subjects = best_first(cells, counted="judged")
    categories = sorted(cells["category"].unique())
    values = _table(subjects, categories)
    headings = [_heading(name, cells) for name in categories]
    width = max(7.5, 5.2 + _WIDE * len(categories))
    height = 1.4 + 0.045 * max(map(len, headings)) + _HIGH * len(subjects)
    figure = blank(width, height, title=title, note=_NOTE)
    panel = figure.subplots()
    mesh = _draw_cells(panel, values)
    _name_sides(panel, headings, [subject.label for subject in subjects])
    _draw_scale(figure, mesh, high=_HIGH * len(subjects))
    return settled(figure)


def _table(subjects: list[Subject], categories: list[str]) -> np.ndarray:
    values = np.full((len(subjects), len(categories)), np.nan)
    places = {name: place for place, name in enumerate(categories)}
    for down, subject in enumerate(subjects):
        if subject.rows["category"].duplicated().any():
            raise ValueError(
                f"{subject.label} has several rows for one category: "
                "pass the rows of one run and one judge, and name the experiment."
            )
        for name, accuracy in zip(subject.rows["category"], subject.rows["accuracy"], strict=True):
            values[down, places[name]] = accuracy
    return values


def _heading(category: str, cells: pd.DataFrame) -> str:
    judged = cells.loc[cells["category"] == category, "judged"]
    least, most = int(judged.min()), int(judged.max())
    return f"{fitting(category, _LONGEST)} (n {least if least == most else f'{least} to {most}'})"


def _draw_cells(panel: Axes, values: np.ndarray) -> QuadMesh:
    low, high = floor(np.nanmin(values) * 10) / 10, ceil(np.nanmax(values) * 10) / 10
    mesh = panel.pcolormesh(
        np.ma.masked_invalid(values),
        cmap="cividis",
        vmin=min(low, 0.9),
        vmax=max(high, low + 0.1),
        edgecolors="white",
        linewidth=0.8,
    )
    panel.patch.set(hatch="/////", edgecolor=SILVER, facecolor="white")
    for (down, across), value in np.ndenumerate(values):
        if not np.isnan(value):
            panel.text(
                across + 0.5,
                down + 0.5,
                f"{100 * value:.0f}",
                ha="center",
                va="center",
                fontsize=7,
                color=readable_on(list(mesh.to_rgba(value)[:3])),
            )
    return mesh


def _draw_scale(figure: Figure, mesh: QuadMesh, *, high: float) -> None:
    bar = figure.colorbar(
        mesh,
        ax=figure.axes,
        format=as_percent,
        shrink=min(1.0, _SCALE / high),
        anchor=(0, 1),
        aspect=15,
        pad=0.02,
    )
    bar.outline.set_visible(False)


def readable_on(colour: Sequence[float]) -> str:
    """Black or white, whichever stands out more from the colour."""
    luminance = np.dot([0.2126, 0.7152, 0.0722], np.asarray(colour) ** _GAMMA)
    return "black" if luminance > _EVEN_CONTRAST else "white"


def _name_sides(panel: Axes, headings: list[str], models: list[str]) -> None:
    panel.set_xticks(
        np.arange(len(headings)) + 0.5, headings, rotation=40, ha="left", rotation_mode="anchor"
    )
    panel.set_yticks(np.arange(len(models)) + 0.5, models)
    panel.invert_yaxis()
    panel.xaxis.tick_top()
    panel.tick_params(length=0)
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)

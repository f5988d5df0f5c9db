"""How every figure looks, and the one lock under which all of them are drawn."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

# From the palette of Okabe and Ito, which colour-blind people can tell apart.
BLUE = "#0072B2"
INK, GREY, SILVER, PEARL = "#222222", "#666666", "#C4C4C4", "#E6E6E6"
NOTHING = "Nothing judged yet"
LEAST_SPAN = 0.1

_LOOK: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 8,
    "grid.color": "#EBEBEB",
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",  # words stay words: searchable, and in the reader's own fonts
    "svg.hashsalt": "eval_pipeline",
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a model's name is a dollar sign
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
}
# Both the settings of matplotlib and the filters of warnings belong to the whole process.
_LOCK = RLock()


@contextmanager
def drawing() -> Iterator[None]:
    """The look of all figures, whatever the user's own settings, one thread at a time."""
    with _LOCK, warnings.catch_warnings(), style.context(["default", _LOOK]):
        # Names may be in any script; what the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        # Names of the strangest signs may still leave no room: then they are cut at the edge.
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        yield


def blank(width: float, height: float, *, title: str, note: str = "") -> Figure:
    """An empty figure of that many inches, its title above and its note below."""
    pad = 0.12
    layout = ConstrainedLayoutEngine(w_pad=pad, h_pad=pad)
    figure = Figure(figsize=(width, height), layout=layout)
    at_left: dict[str, Any] = {"x": pad / width, "ha": "left"}
    figure.suptitle(title, fontsize=11, fontweight="bold", **at_left)
    if note:
        figure.supxlabel(note, fontsize=7.5, color=GREY, **at_left)
    return figure


def saying(words: str, *, title: str, note: str = "") -> Figure:
    """A figure without data, which says why there is none."""
    figure = blank(9, 2.2 + 0.13 * note.count("\n"), title=title, note=note)
    panel = figure.subplots()
    panel.set_axis_off()
    panel.text(0.5, 0.5, words, ha="center", va="center", fontsize=11, color=GREY)
    return settled(figure)


def settled(figure: Figure) -> Figure:
    """The figure with its layout fixed, so that drawing it again gives the same picture."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def span(values: pd.DataFrame) -> tuple[float, float]:
    """Limits around shares of one: all of them with some air, within 0 to 1, never too narrow."""
    low, high = float(values.min().min()), float(values.max().max())
    air = max(0.06 * (high - low), (LEAST_SPAN - (high - low)) / 2, 0.01)
    return max(low - air, -0.02), min(high + air, 1.02)


def as_percent(value: float, _position: object = None) -> str:
    """A share of one as a tick's label."""
    return f"{value:.1%}".replace(".0%", "%")


def beside(panel: Axes, words: str, *, at: float, down: float, **look: Any) -> None:
    """Words `at` points to the right of the panel, `down` in its own units."""
    panel.annotate(
        words,
        (1, down),
        xycoords=("axes fraction", "data"),
        xytext=(at, 0),
        textcoords="offset points",
        va="center_baseline",
        annotation_clip=False,
        **look,
    )

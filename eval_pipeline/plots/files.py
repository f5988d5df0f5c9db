"""Figures as bytes, as Markdown and as files; the same figure gives the same bytes."""

import re
from base64 import b64encode
from collections.abc import Mapping
from io import BytesIO
from math import sqrt
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from PIL import Image

from eval_pipeline.journal.files import swap_in
from eval_pipeline.plots.drawing import drawing
from eval_pipeline.plots.labels import shown

_SHARP, _CLEAR, _FAINT = 144, 110, 20
_COLOURS = 128
# Of a side: the renderer takes no more than 65,535.
_MOST_PIXELS = 60_000
_LONGEST_TITLE = 200
# What a page of Dagster carries without becoming slow.
_MOST_CHARACTERS = 150_000


def png(figure: Figure) -> bytes:
    """The figure as PNG, sharp enough to print."""
    return _pixels(figure, _SHARP)


@drawing()
def svg(figure: Figure) -> bytes:
    """The figure as SVG, its words kept as words."""
    figure.set_dpi(_SHARP)  # of the scale of colours, the only part that is not made of lines
    undated = {"Date": None, "Creator": None}
    content = BytesIO()
    FigureCanvasSVG(figure).print_svg(content, metadata=undated)  # type: ignore[no-untyped-call]
    return content.getvalue()


def as_markdown(figure: Figure, title: str) -> str:
    """The figure as a Markdown image that needs no file, small enough for a page's metadata."""
    dpi = _CLEAR
    while len(picture := b64encode(_few_colours(figure, dpi))) > _MOST_CHARACTERS and dpi > _FAINT:
        dpi = max(_FAINT, int(0.95 * dpi * sqrt(_MOST_CHARACTERS / len(picture))))
    caption = re.sub(r"([\\`*_\[\]<>()!&])", r"\\\1", shown(title, _LONGEST_TITLE))
    return f"![{caption}](data:image/png;base64,{picture.decode()})"


def write_plots(folder: Path, figures: Mapping[str, Figure]) -> list[Path]:
    """Write name.png and name.svg for each figure; readers see the old file or the new one."""
    written = []
    for name, figure in figures.items():
        for ending, content in (("png", png(figure)), ("svg", svg(figure))):
            written.append(folder / f"{name}.{ending}")
            swap_in(written[-1], content)
    return written


def _few_colours(figure: Figure, dpi: int) -> bytes:
    small = BytesIO()
    with Image.open(BytesIO(_pixels(figure, dpi))) as picture:
        # The other ways of choosing colours turn a rare yellow cell into a grey one.
        reduced = picture.convert("RGB").quantize(
            _COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    reduced.save(small, format="png", optimize=True)
    return small.getvalue()


@drawing()
def _pixels(figure: Figure, dpi: int) -> bytes:
    figure.set_dpi(min(dpi, _MOST_PIXELS / figure.get_size_inches().max()))
    content = BytesIO()
    # Not through savefig, which draws everything twice; the layout is settled already.
    unsigned = {"Software": None}
    FigureCanvasAgg(figure).print_png(content, metadata=unsigned)  # type: ignore[no-untyped-call]
    return content.getvalue()

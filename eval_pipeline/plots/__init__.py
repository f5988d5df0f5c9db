"""Pictures of the results: pure functions from rows to figures, and figures as bytes and files.

Loading this takes a moment, for it loads matplotlib: import it where pictures are made.
"""

from eval_pipeline.plots.accuracy import accuracy_plot
from eval_pipeline.plots.categories import category_plot
from eval_pipeline.plots.cost import cost_plot
from eval_pipeline.plots.files import as_markdown, png, svg, write_plots
from eval_pipeline.plots.reliability import reliability_plot

__all__ = [
    "accuracy_plot",
    "as_markdown",
    "category_plot",
    "cost_plot",
    "png",
    "reliability_plot",
    "svg",
    "write_plots",
]

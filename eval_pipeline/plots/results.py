"""The four plots people expect, from the results as they are in DuckDB."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import duckdb
from matplotlib.figure import Figure

from eval_pipeline.plots.accuracy import accuracy_plot
from eval_pipeline.plots.categories import category_plot
from eval_pipeline.plots.cost import cost_plot
from eval_pipeline.plots.reliability import reliability_plot
from eval_pipeline.results.queries import query, query_text

if TYPE_CHECKING:
    import pandas as pd

_PLOTS: Mapping[str, tuple[str, "Callable[[pd.DataFrame], Figure]"]] = {
    "accuracy": ("leaderboard", accuracy_plot),
    "accuracy_and_cost": ("leaderboard", cost_plot),
    "calibration": ("reliability", reliability_plot),
    "categories": ("categories", category_plot),
}


def plot(db: duckdb.DuckDBPyConnection, *names: str) -> dict[str, Figure]:
    """The plots of these names, of the models on the leaderboard."""
    db.execute(f"create or replace temp view plotted as {query_text('plots/leaderboard')}")
    figures = {}
    for name in names:
        rows, draw = _PLOTS[name]
        figures[name] = draw(query(db, f"plots/{rows}").df())
    return figures

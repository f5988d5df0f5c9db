"""The tables that are computed from others, in SQL and, between two queries, in numpy."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import duckdb

from eval_pipeline.results.queries import clear, run_file

DERIVED = (
    "metrics",
    "pass_at_k",
    "calibration_bins",
    "comparisons",
    "leaderboard_entries",
    "leaderboard_slices",
    "judge_reliability",
)
# Of what changes without the long streams, the derived tables that show it; of the rest, all do.
SHOWN_IN: Mapping[str, Sequence[str]] = {
    "sightings": (),
    "attempts": (),
    "rejudged": ("judge_reliability",),
    "labels": ("judge_reliability",),
    "diagnoses": (),
    "reclassified": (),
}


class _Preparation(NamedTuple):
    """The steps before a table: a file that makes temporary tables, and a function that fills some.

    The latter only if there is something to compute: it loads numpy, which takes time and memory.
    """

    file: str
    needed_if_any: str
    compute: Callable[[duckdb.DuckDBPyConnection], None]


def _measure(connection: duckdb.DuckDBPyConnection) -> None:
    from eval_pipeline.results.metrics import measure  # noqa: PLC0415

    measure(connection)


def _compare(connection: duckdb.DuckDBPyConnection) -> None:
    from eval_pipeline.results.comparisons import compare_entries  # noqa: PLC0415

    compare_entries(connection)


def _measure_judges(connection: duckdb.DuckDBPyConnection) -> None:
    from eval_pipeline.results.reliability import measure_judges  # noqa: PLC0415

    measure_judges(connection)


_PREPARATIONS = {
    "metrics": _Preparation("scores", "item_scores", _measure),
    "comparisons": _Preparation("entries", "entries", _compare),
    "judge_reliability": _Preparation("judges", "judges_at_work", _measure_judges),
}


# Without any of these rows a table is empty, and finding that out by its queries takes far longer.
_MADE_OF = {
    "metrics": "runs",
    "pass_at_k": "metrics where samples > 1",
    "calibration_bins": "metrics where with_confidence > 0",
    "comparisons": "metrics where complete",
    "leaderboard_entries": "metrics where complete",
    "leaderboard_slices": "leaderboard_entries",
    "judge_reliability": "judged",
}


def derive(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Fill a derived table from those before it in DERIVED."""
    clear(connection, [table])
    if not connection.execute(f"from {_MADE_OF[table]} limit 1").fetchone():
        return
    if preparation := _PREPARATIONS.get(table):
        run_file(connection, f"derive/{preparation.file}")
        if connection.table(preparation.needed_if_any).limit(1).fetchone():
            preparation.compute(connection)
    run_file(connection, f"derive/{table}")

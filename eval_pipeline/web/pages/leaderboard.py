"""The leaderboard: of everything, of a suite or category, or of an older benchmark version."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from eval_pipeline.interop.remote.messages import encode_segment, parse_hashed
from eval_pipeline.results.charts import cost_chart
from eval_pipeline.results.queries import query, rows
from eval_pipeline.web.routes import NotThereError, Page, Parts, Row, View

FILTERS = ("experiment", "vendor", "provider")
"""What rows can be narrowed to, by the names of their columns."""
SORTED_BY = {
    "model": "model",
    "accuracy": "accuracy",
    "calibration": "calibration_error",
    "cost": "cost_usd",
    "speed": "latency_p50_s",
    "runs": "runs",
    "date": "opened_at",
}
"""The columns by which rows can be sorted."""
DESCENDING = "desc"


@dataclass(frozen=True)
class Board:
    """The models that were asked the same in the same way, judged by one judge, best first."""

    judge: str
    experiment: str
    scope: str
    rows: Sequence[Row]

    @property
    def simulated(self) -> bool:
        return all(row["simulated"] for row in self.rows)


def leaderboard(view: View, at: Parts) -> Page:
    """Show the published version; of one suite or category only if one is named."""
    suite, category = at.get("suite"), at.get("category")
    slices = rows(query(view.db, "viewer/slices"))
    if suite is not None:
        suite, category = _slice(slices, suite, category)
    found = leaderboard_rows(view, suite, category)
    title = " / ".join(filter(None, ("Leaderboard", suite, category)))
    return Page(
        "leaderboard.html",
        title,
        {
            **_shown(view, found),
            "slices": slices,
            "suite": suite,
            "category": category,
            "version": published_version(view),
            "left_out": left_out(view) if suite is None else [],
            "is_old": False,
        },
    )


def leaderboard_rows(
    view: View, suite: str | None = None, category: str | None = None
) -> list[Row]:
    """Return the leaderboard of everything, or of a suite or category."""
    return rows(query(view.db, "viewer/leaderboard", {"suite": suite, "category": category}))


def _slice(slices: Sequence[Row], suite: str, category: str | None) -> tuple[str, str | None]:
    """Return the slice of the parts of an address."""
    for one in slices:
        if _matches(category, one["category"]) and _matches(suite, one["suite"]):
            return one["suite"], one["category"]
    raise NotThereError("The leaderboard has no such suite or category.")


def _matches(part: str | None, name: str | None) -> bool:
    if part is None or name is None or parse_hashed(part) is None:
        return part == name
    return part == encode_segment(name)


def old_leaderboard(view: View, at: Parts) -> Page:
    """Show the leaderboard of one benchmark version."""
    about = find_version(view, at["version"])
    found = rows(query(view.db, "viewer/old_leaderboard", {"version": at["version"]}))
    title = f"Benchmark version {about['name'] or at['version'][:12]}"
    whole: Row = {"slices": [], "suite": None, "category": None, "left_out": []}
    return Page(
        "leaderboard.html",
        title,
        {**_shown(view, found), **whole, "version": about, "is_old": True},
    )


def versions(view: View, at: Parts) -> Page:
    """Show every benchmark version, the latest first."""
    return Page("versions.html", "Benchmark versions", {"versions": all_versions(view)})


def left_out(view: View) -> list[Row]:
    """Return the runs that are not on the leaderboard, with the reasons."""
    found = rows(query(view.db, "summaries/left_out"))
    for row in found:
        given = {"begins": row["run"], "model": row["model"]}
        row["run_id"] = rows(query(view.db, "summaries/runs_named", given))[0]["run_id"]
    return found


def all_versions(view: View) -> list[Row]:
    """Return every benchmark version, the latest first."""
    return rows(query(view.db, "summaries/versions_in_full"))


def published_version(view: View) -> Row | None:
    """Return the benchmark version that the leaderboard is of."""
    return next((one for one in all_versions(view) if one["is_published"]), None)


def find_version(view: View, name: str) -> Row:
    """Return the benchmark version of that name."""
    for one in all_versions(view):
        if one["benchmark_version"] == name:
            return one
    raise NotThereError(f"There is no benchmark version {name}.")


def _shown(view: View, found: Sequence[Row]) -> dict[str, Any]:
    floor = view.settings.web.preliminary_below
    for row in found:
        row["preliminary"] = row["judged"] < floor
        row["hidden"] = not all(
            view.asked.get(name) in (None, "", row[name] or "") for name in FILTERS
        )
    groups = groupby(found, key=itemgetter("judge", "experiment", "scope"))
    boards = [
        Board(judge, experiment, scope, _sorted(view, list(group)))
        for (judge, experiment, scope), group in groups
    ]
    # One chart says enough: of whom most models are compared with.
    largest = max(boards, key=lambda board: len(board.rows), default=None)
    return {
        "boards": boards,
        "choices": {name: sorted({row[name] or "" for row in found} - {""}) for name in FILTERS},
        "drawn": largest and cost_chart(largest.rows, view.run_links(largest.rows)),
        "asked": view.asked,
        "floor": floor,
        "simulated": any(row["simulated"] for row in found),
    }


def _sorted(view: View, found: list[Row]) -> list[Row]:
    column = SORTED_BY.get(view.asked.get("sort", ""))
    if column is None:
        return found

    def value(row: Row) -> Any:
        return row[column].casefold() if column == "model" else row[column]

    known = [row for row in found if row[column] is not None]
    unknown = [row for row in found if row[column] is None]
    return [*sorted(known, key=value, reverse=view.asked.get("order") == DESCENDING), *unknown]

"""The leaderboard: of everything, of a suite or category, or of an older benchmark version."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from eval_pipeline.interop.remote.messages import encode_segment, parse_hashed
from eval_pipeline.results.charts import cost_chart
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.svg import Chart
from eval_pipeline.web import routes
from eval_pipeline.web.routes import NotThereError, Page, Parts, Row, View

FILTERS = ("experiment", "vendor", "provider")
"""What rows can be narrowed to, by the names of their columns."""
SORTED_BY: dict[str, Callable[[Row], Any]] = {
    "model": lambda row: row["model"].casefold(),
    "accuracy": lambda row: row["accuracy"],
    "calibration": lambda row: row["calibration_error"],
    "cost": lambda row: row["cost_usd"],
    "speed": lambda row: row["latency_p50_s"],
    "runs": lambda row: row["runs"],
    "date": lambda row: row["opened_at"],
}
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
    found = rows(query(view.db, "viewer/leaderboard", {"suite": suite, "category": category}))
    title = " / ".join(filter(None, ("Leaderboard", suite, category)))
    return Page(
        "leaderboard.html",
        title,
        {
            **_shown(view, found),
            "slices": slices,
            "suite": suite,
            "category": category,
            "version": next((one for one in all_versions(view) if one["is_published"]), None),
            "left_out": left_out(view) if suite is None else [],
            "is_old": False,
        },
    )


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
    version = at["version"]
    about = next((one for one in all_versions(view) if one["benchmark_version"] == version), None)
    if about is None:
        raise NotThereError(f"There is no benchmark version {version}.")
    found = rows(query(view.db, "viewer/old_leaderboard", {"version": version}))
    return Page(
        "leaderboard.html",
        f"Benchmark version {about['name'] or version[:12]}",
        {
            **_shown(view, found),
            **{"slices": [], "suite": None, "category": None, "left_out": []},
            "version": about,
            "is_old": True,
        },
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


def _shown(view: View, found: Sequence[Row]) -> dict[str, Any]:
    floor = view.settings.web.preliminary_below
    for row in found:
        row["preliminary"] = row["judged"] < floor
        row["hidden"] = not all(
            view.asked.get(name) in (None, "", row[name] or "") for name in FILTERS
        )
    boards = list(_boards(view, found))
    # One chart says enough: of whom most models are compared with.
    largest = max(boards, key=lambda board: len(board.rows), default=None)
    return {
        "boards": boards,
        "choices": {name: sorted({row[name] or "" for row in found} - {""}) for name in FILTERS},
        "drawn": largest and _drawn(view, largest),
        "asked": view.asked,
        "floor": floor,
        "simulated": any(row["simulated"] for row in found),
    }


def _drawn(view: View, board: Board) -> Chart:
    to_runs = [view.links.to(routes.run_path(row["run_id"], row["model"])) for row in board.rows]
    return cost_chart(board.rows, to_runs)


def _boards(view: View, found: Sequence[Row]) -> Iterator[Board]:
    for (judge, experiment, scope), group in groupby(
        found, key=lambda row: (row["judge"], row["experiment"], row["scope"])
    ):
        yield Board(judge, experiment, scope, _sorted(view, list(group)))


def _sorted(view: View, found: list[Row]) -> list[Row]:
    by = SORTED_BY.get(view.asked.get("sort", ""))
    if by is None:
        return found
    known = [row for row in found if by(row) is not None]
    descending = view.asked.get("order") == DESCENDING
    return [
        *sorted(known, key=by, reverse=descending),
        *(row for row in found if by(row) is None),
    ]

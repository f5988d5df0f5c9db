"""Models: all of them, and one with its history, profile, calibration, failures and reports."""

import re
from collections.abc import Collection

from eval_pipeline.analysis.report.paths import (
    ReportError,
    folder_of,
    notes_of,
    read_text,
    reports_in,
)
from eval_pipeline.results.charts import calibration_chart, history_chart
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import model_rows, run_rows
from eval_pipeline.web.markup import markdown
from eval_pipeline.web.pages.leaderboard import leaderboard_rows
from eval_pipeline.web.routes import NotThereError, Page, Parts, Row, View, find_model

MOST_RECURRING = 50
LARGEST_REPORT = 1_000_000
_COMMENT = re.compile(r"^<!--.*-->$", re.MULTILINE)


def models(view: View, at: Parts) -> Page:
    """Show the whole catalog, models with results first."""
    found = model_rows(view.db)
    found.sort(key=lambda row: (row["run_id"] is None, not row["selected"], row["model"]))
    simulated = any(row["simulated"] for row in found if row["run_id"] is not None)
    return Page("models.html", "Models", {"models": found, "simulated": simulated})


def model(view: View, at: Parts) -> Page:
    """Show one model over all its runs."""
    about, runs = described(view, at["model"], ())
    name = about["model"]
    ranked = [row for row in leaderboard_rows(view) if row["model"] == name]
    stands = ranked[0] if ranked else {"experiment": view.settings.experiment}
    asked = {"model": name, "experiment": stands["experiment"]}
    of_run = {one: stands.get(one) for one in ("run_id", "model", "judge", "judge_version")}
    bins = rows(query(view.db, "viewer/bins", of_run))
    recurring = query(view.db, "viewer/recurring", {"model": name, "most": MOST_RECURRING})
    return Page(
        "model.html",
        name,
        {
            "about": about,
            "runs": runs,
            "ranked": ranked,
            "profile": rows(query(view.db, "viewer/profile", asked)),
            "history": history_chart(runs, view.run_links(runs)),
            "calibration": calibration_chart(bins) if bins else None,
            "recurring": rows(recurring),
            "reports": reports_of(view, name),
            "simulated": about["simulated"],
        },
    )


def described(view: View, part: str, at_work: Collection[str]) -> tuple[Row, list[Row]]:
    """Return the model of a part of an address, and its runs."""
    name = find_model(view, part)
    found = rows(query(view.db, "viewer/model", {"model": name}))
    if not found:
        raise NotThereError(f"There is no model {name}.")
    return found[0], [run for run in run_rows(view.db, at_work) if run["model"] == name]


def reports_of(view: View, name: str) -> list[Row]:
    """Return the reports on the model's runs, the latest first."""
    try:
        found = list(reports_in(folder_of(view.settings.reports, name)))
    except ReportError:
        return []
    return [
        {"run_id": run_id, "name": path.name, "path": path, "model": name}
        for path, run_id in reversed(found)
    ]


def report(view: View, at: Parts) -> Page:
    """Show the report on why items of a run failed."""
    run_id, name = at["run_id"], find_model(view, at["model"])
    found = next((one for one in reports_of(view, name) if one["run_id"] == run_id), None)
    if found is None:
        raise NotThereError("There is no report on that run: evals analyze writes one.")
    texts = (read_text(path, LARGEST_REPORT) for path in (found["path"], notes_of(found["path"])))
    text = "\n\n".join(_COMMENT.sub("", text) for text in texts if text)
    shown = {"report": markdown(text, 2 * LARGEST_REPORT, breaks=False), "file": found["name"]}
    shown |= {"run_id": run_id, "model": name}
    return Page("report.html", f"Report on run {run_id[:8]} of {name}", shown)

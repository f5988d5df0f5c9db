"""Runs: all of them page by page, one as a whole, and lists of its items."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import Any

from eval_pipeline.analysis.report.paths import known_report
from eval_pipeline.records.coding import STEPS
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import FoundRun, rows_of, run_rows
from eval_pipeline.web import routes
from eval_pipeline.web.live import Progress
from eval_pipeline.web.routes import (
    NotThereError,
    Page,
    Parts,
    Row,
    View,
    find_model,
    parse_page_number,
)

RUNS_A_PAGE = 50
ITEMS_A_PAGE = 100
MOST_CELLS = 5_000
"""Of more items there are only the counts: nobody sees so many squares."""
SHOWN = {
    "all": "all items",
    "failed": "not right",
    "infrastructure": "infrastructure failures",
    "disagreed": "judges disagree",
    "truncated": "cut off",
}
WENT = ("right", "partly", "wrong", "no verdict", "no answer", "not asked")


def runs(view: View, at: Parts) -> Page:
    """List runs, active ones first, then the newest first."""
    page = parse_page_number(at.get("page", "1"))
    at_work = view.tail.at_work() if page == 1 and not view.links.static else []
    found = run_rows(view.db, [one.run_id for one in at_work])
    shown, pages = page_of(found, page)
    return _list("Runs" if page == 1 else f"Runs, page {page}", shown, at_work, page, pages)


def launch(view: View, at: Parts) -> Page:
    """List the runs that one launch opened, one of each model."""
    run_id = at["run_id"]
    found = [run for run in run_rows(view.db, ()) if run["run_id"] == run_id]
    if not found:
        raise NotThereError(f"There is no run {run_id}.")
    return _list(f"Run {run_id[:8]}", found)


def _list(
    title: str,
    found: Sequence[Row],
    at_work: Sequence[Progress] = (),
    page: int = 1,
    pages: int = 1,
) -> Page:
    shown = {"runs": found, "at_work": at_work, "page": page, "pages": pages}
    return Page("runs.html", title, {**shown, "simulated": any(run["simulated"] for run in found)})


def run(view: View, at: Parts) -> Page:
    """Show one run: outcomes of replies by item, failed steps of code, and its progress."""
    run_id, model = at["run_id"], find_model(view, at["model"])
    progress = None if view.links.static else view.tail.of(run_id, model)
    about = _about(view, run_id, model)
    if about is None:
        if progress is None:
            raise NotThereError(f"There is no run {run_id} of {model}.")
        shown = {"progress": progress, "simulated": progress.simulated}
        return Page("run_at_work.html", f"Run {run_id[:8]} of {model}", shown)
    items = _items(view, about, "all", MOST_CELLS, 0)
    found = items[0]["found"] if items else 0
    return Page(
        "run.html",
        f"Run {run_id[:8]} of {model}",
        {
            "run": about,
            "progress": progress if progress and progress.at_work else None,
            "outcomes": outcomes(view, about),
            "categories": _categories(items) if found <= MOST_CELLS else [],
            "counts": _counts(view, about, items),
            "shown": SHOWN,
            "went": WENT,
            "steps": STEPS,
            "has_report": known_report(view.settings.reports, run_id, model) is not None,
            "ui": view.settings.automation.ui_url,
            "simulated": about["simulated"],
        },
    )


def items(view: View, at: Parts) -> Page:
    """List the items of a run, all or some, a page at a time."""
    run_id, model, show = at["run_id"], find_model(view, at["model"]), at["show"]
    page = parse_page_number(at["page"])
    about = _about(view, run_id, model)
    if about is None or show not in SHOWN:
        raise NotThereError(f"There is no such list of items of run {run_id}.")
    found = _items(view, about, show, ITEMS_A_PAGE, (page - 1) * ITEMS_A_PAGE)
    if not found and page > 1:
        raise NotThereError("The list is not that long.")
    return Page(
        "items.html",
        f"{SHOWN[show].capitalize()} in run {run_id[:8]} of {model}",
        {
            "run": about,
            "entries": found,
            "make": lambda page: routes.items_path(run_id, model, show, page),
            "show": show,
            "shown": SHOWN,
            "page": page,
            "pages": _pages(found[0]["found"] if found else 0, ITEMS_A_PAGE),
            "simulated": about["simulated"],
        },
    )


def pages_of_items(view: View, run_id: str, model: str) -> Iterator[tuple[str, int]]:
    """Yield every list of items of a run, page by page."""
    about = _about(view, run_id, model)
    for show in SHOWN if about else ():
        for page in range(1, _pages(_count(view, about or {}, show), ITEMS_A_PAGE) + 1):
            yield show, page


def outcomes(view: View, about: Row) -> list[Row]:
    """Return how many replies of a run have which outcome."""
    return rows(query(view.db, "viewer/outcomes", _name(about)))


def _about(view: View, run_id: str, model: str) -> Row | None:
    found = rows(query(view.db, "summaries/run_described", {"run_id": run_id, "model": model}))
    return rows_of(view.db, (), [FoundRun.of(found[0])])[0] if found else None


def _items(view: View, about: Row, show: str, most: int, skipped: int) -> list[Row]:
    by = {name: about[name] for name in ("judge", "judge_version")}
    given = {**_name(about), **by, "show": show, "most": most, "skipped": skipped}
    return rows(query(view.db, "viewer/run_items", given))


def _count(view: View, about: Row, show: str) -> int:
    first = _items(view, about, show, 1, 0)
    return first[0]["found"] if first else 0


def _counts(view: View, about: Row, items: Sequence[Row]) -> dict[str, int]:
    """Return the length of each list, counted from the items if they are complete."""
    if items and items[0]["found"] > len(items):
        return {name: _count(view, about, name) for name in SHOWN}
    others = [name for name in SHOWN if name not in ("all", "failed")]
    failed = sum(one["went"] != "right" for one in items)
    return {"all": len(items), "failed": failed} | {
        name: sum(one[name] for one in items) for name in others
    }


def _categories(items: Sequence[Row]) -> list[Row]:
    """Return each category with its items and a summary of their states."""
    found = []
    for (suite, name), group in groupby(items, key=itemgetter("suite", "category")):
        cells = list(group)
        counts = Counter(cell["went"] for cell in cells)
        summary = ", ".join(f"{counts[word]} {word}" for word in WENT if counts[word])
        found.append({"suite": suite, "name": name, "cells": cells, "summary": summary})
    return found


def _name(about: Row) -> dict[str, Any]:
    return {"run_id": about["run_id"], "model": about["model"]}


def page_of(found: Sequence[Row], page: int) -> tuple[Sequence[Row], int]:
    """Return the runs of one page of the list, and how many pages it has."""
    shown = found[(page - 1) * RUNS_A_PAGE : page * RUNS_A_PAGE]
    if not shown and page > 1:
        raise NotThereError("The list is not that long.")
    return shown, _pages(len(found), RUNS_A_PAGE)


def _pages(found: int, size: int) -> int:
    return max(1, ceil(found / size))

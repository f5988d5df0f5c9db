"""Two or more models: how they differ item by item, and by how much more than chance."""

from collections.abc import Sequence
from typing import Any

from eval_pipeline.errors import RunError
from eval_pipeline.results.comparisons import SideBySide, compare_sides
from eval_pipeline.results.queries import query, rows
from eval_pipeline.web.pages.leaderboard import leaderboard_rows
from eval_pipeline.web.routes import Page, Parts, Row, View, find_model

MOST_DIFFERENCES = 200
FEWEST, MOST = 2, 12
MOST_PAIRS = 2_000
"""So many pages are written for two models each: 60 models make 1,770 of them."""


def compare(view: View, at: Parts) -> Page:
    """What was chosen side by side, and the form to choose with."""
    distinct = list(dict.fromkeys(filter(None, view.asked.getlist("m"))))
    chosen = distinct[:MOST]
    known = _known(view)
    shown: dict[str, Any] = {"known": known, "chosen": chosen, "trouble": "", "pair": None}
    if view.links.static:
        shown["listed"] = pairs(view)
    if len(chosen) == FEWEST:
        try:
            return _pair(view, chosen, shown)
        except RunError as error:
            shown["trouble"] = str(error)
    if len(chosen) > FEWEST:
        shown |= _several(view, chosen)
    if len(distinct) > MOST:
        limit = f"The first {MOST} of {len(distinct)} models are compared; choose at most {MOST}."
        shown["trouble"] = f"{limit} {shown['trouble']}".strip()
    shown["simulated"] = any(row["simulated"] for row in known if row["model"] in chosen)
    return Page("compare.html", "Compare", shown)


def pair(view: View, at: Parts) -> Page:
    """Two models on a page of their own."""
    chosen = [find_model(view, at["one"]), find_model(view, at["other"])]
    return _pair(view, chosen, {"known": _known(view), "chosen": chosen, "trouble": ""})


def two_sides(view: View, one: str, other: str) -> SideBySide:
    """Compare two models or runs, by the experiment and judge of the address if it names them."""
    experiment = view.asked.get("experiment") or view.settings.experiment
    judge = view.asked.get("judge") or None
    return compare_sides(view.db, one, other, experiment=experiment, judge=judge)


def pairs(view: View) -> list[tuple[str, str]]:
    """Every two models of the leaderboard that have a page of their own among static files."""
    found = rows(query(view.db, "viewer/pairs", {"models": None}))
    distinct = dict.fromkeys((row["model_a"], row["model_b"]) for row in found)
    return list(distinct)[:MOST_PAIRS]


def _known(view: View) -> list[Row]:
    return list({row["model"]: row for row in leaderboard_rows(view)}.values())


def _pair(view: View, chosen: Sequence[str], shown: dict[str, Any]) -> Page:
    found = two_sides(view, *chosen)
    gained = [one for one in found.differences if one.score_a > one.score_b]
    lost = [one for one in found.differences if one.score_a < one.score_b]
    return Page(
        "compare.html",
        " and ".join(chosen),
        {
            **shown,
            "pair": found,
            "gained": gained[:MOST_DIFFERENCES],
            "lost": lost[:MOST_DIFFERENCES],
            "more": max(len(gained), len(lost)) > MOST_DIFFERENCES,
            "most": MOST_DIFFERENCES,
            "simulated": found.a.simulated or found.b.simulated,
        },
    )


def _several(view: View, chosen: Sequence[str]) -> dict[str, Any]:
    """Each against each, as the table of comparisons has them."""
    found = rows(query(view.db, "viewer/pairs", {"models": list(chosen)}))
    cells = {(row["model_a"], row["model_b"]): row for row in found}
    cells |= {(row["model_b"], row["model_a"]): _mirrored(row) for row in found}
    missing = [name for name in chosen if not any(name in pair for pair in cells)]
    trouble = f"Not on the leaderboard: {', '.join(missing)}." if missing else ""
    return {"cells": cells, "trouble": trouble}


def _mirrored(row: Row) -> Row:
    low, high = row["difference_low"], row["difference_high"]
    return {
        **row,
        "difference": -row["difference"],
        "difference_low": None if high is None else -high,
        "difference_high": None if low is None else -low,
        "better": row["worse"],
        "worse": row["better"],
    }

"""Which page stands at which address."""

from collections.abc import Callable, Mapping

from eval_pipeline.viewer.making import find_model
from eval_pipeline.viewer.page import NotThereError, Page, View
from eval_pipeline.viewer.pages import compare, items, leaderboard, models, runs

Parts = Mapping[str, str]
"""What the parts of an address in braces are, as `links.meant` has them."""
MOST_DIGITS = 9
RUN = "/runs/{run_id}/{model}/"


def number(text: str) -> int:
    """The number of a page in an address."""
    if not (text.isdecimal() and text.isascii() and len(text) <= MOST_DIGITS and int(text) > 0):
        raise NotThereError("There is no such page.")
    return int(text)


def _leaderboard(view: View, at: Parts) -> Page:
    return leaderboard.leaderboard(view, at.get("suite"), at.get("category"))


def _version(view: View, at: Parts) -> Page:
    return leaderboard.old_leaderboard(view, at["version"])


def _model(view: View, at: Parts) -> Page:
    return models.model(view, find_model(view, at["model"]))


def _report(view: View, at: Parts) -> Page:
    return models.report(view, at["run_id"], find_model(view, at["model"]))


def _runs(view: View, at: Parts) -> Page:
    return runs.runs(view, number(at.get("page", "1")))


def _launch(view: View, at: Parts) -> Page:
    return runs.launch(view, at["run_id"])


def _run(view: View, at: Parts) -> Page:
    return runs.run(view, at["run_id"], find_model(view, at["model"]))


def _items(view: View, at: Parts) -> Page:
    model = find_model(view, at["model"])
    return runs.items(view, at["run_id"], model, at["show"], number(at["page"]))


def _reply(view: View, at: Parts) -> Page:
    model = find_model(view, at["model"])
    return items.reply(view, at["run_id"], model, at["suite"], at["item_id"])


def _item(view: View, at: Parts) -> Page:
    return items.item(view, at["suite"], at["item_id"])


def _compare(view: View, at: Parts) -> Page:
    del at
    return compare.compare(view, view.asked.getlist("m"))


def _pair(view: View, at: Parts) -> Page:
    return compare.pair(view, find_model(view, at["one"]), find_model(view, at["other"]))


PAGES: Mapping[str, Callable[[View, Parts], Page]] = {
    "/": _leaderboard,
    "/leaderboard/{suite}/": _leaderboard,
    "/leaderboard/{suite}/{category}/": _leaderboard,
    "/versions/": lambda view, _: leaderboard.versions(view),
    "/versions/{version}/": _version,
    "/models/": lambda view, _: models.models(view),
    "/models/{model}/": _model,
    "/runs/": _runs,
    "/history/{page}/": _runs,
    "/runs/{run_id}/": _launch,
    RUN: _run,
    f"{RUN}report/": _report,
    f"{RUN}items/{{show}}/{{page}}/": _items,
    f"{RUN}item/{{suite}}/{{item_id}}/": _reply,
    "/items/{suite}/{item_id}/": _item,
    "/compare/": _compare,
    "/compare/{one}/{other}/": _pair,
}

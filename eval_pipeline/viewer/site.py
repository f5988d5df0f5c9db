"""`evals site build`: the same pages as files, for any server of files, or for none."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.errors import MendableError
from eval_pipeline.results.queries import query, rows
from eval_pipeline.settings import Settings
from eval_pipeline.viewer import links
from eval_pipeline.viewer.links import INDEX, Links
from eval_pipeline.viewer.making import Maker
from eval_pipeline.viewer.page import NotThereError, Page, Row, View
from eval_pipeline.viewer.pages import compare, items, leaderboard, models, runs
from eval_pipeline.viewer.rendering import render, static_files

LIST = ".evals-site"
"""Names the files that were written: no other one is ever replaced or removed."""
MOST_REPLIES = 5_000
"""Of more replies there are no pages of their own unless somebody wants them."""
PER_LIST = 1_000


class SiteError(MendableError):
    """The pages can not be written there; the message says why."""


class Built(NamedTuple):
    """How many files were written, and whether items have pages of their own."""

    files: int
    with_items: bool


def build(settings: Settings, folder: Path, *, with_items: bool | None = None) -> Built:
    """Writes every page; those of items only if they are not too many, unless it is said."""
    maker = Maker(settings)
    with maker.look(Links("", static=True)) as view:
        (replies,) = query(view.db, "viewer/replies").fetchone() or (0,)
        leaves = replies <= MOST_REPLIES if with_items is None else with_items
        site = _Site(folder)
        for name, content in static_files().items():
            site.write(f"static/{name}", content)
        for path, page in _pages(view, leaves=leaves):
            at = Links(path, static=True, leaves=leaves)
            site.write(f"{path}{INDEX}", render(page, at).encode())
        for path, image in _images(view) if leaves else ():
            site.write(path, image)
    site.finish()
    return Built(len(site.written), leaves)


class _Site:
    """The folder: what is ours in it, and what was written now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._list = folder / LIST
        self._old = self._known()
        self.written: set[str] = set()

    def write(self, path: str, content: bytes) -> None:
        file = self._folder / path
        if path not in self._old and path not in self.written and file.exists():
            raise SiteError(
                f"{file} is in the way: it was not written by `evals site build`, "
                "which replaces only what it wrote itself. Name another folder."
            )
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        except OSError as error:
            raise SiteError(f"{file} can not be written: {error.strerror}.") from None
        self.written.add(path)
        if len(self.written) % PER_LIST == 1:  # so that a build that was killed can be repeated
            self._note(self._old | self.written)

    def finish(self) -> None:
        """Removes what an earlier build wrote and this one did not."""
        self._note(self.written)
        for path in self._old - self.written:
            (self._folder / path).unlink(missing_ok=True)

    def _known(self) -> set[str]:
        if not self._list.is_file():
            return set()
        named = self._list.read_text("utf-8", "replace").splitlines()
        # Somebody may have had a hand in the list: it must not lead out of the folder.
        return {path for path in named if ".." not in path.split("/") and not path.startswith("/")}

    def _note(self, paths: set[str]) -> None:
        self._list.write_text("".join(f"{path}\n" for path in sorted(paths)), "utf-8")


def _pages(view: View, *, leaves: bool) -> Iterator[tuple[str, Page]]:
    """Every page with its path; each is made as it is seen from there."""
    yield from _overviews(view)
    known = [row["model"] for row in models.models(view).shown["models"]]
    for model in known:
        at = _at(view, links.model_path(model))
        yield at.links.path, models.model(at, model)
        for one in models.reports_of(view, model):
            at = _at(view, links.report_path(one["run_id"], model))
            yield at.links.path, models.report(at, one["run_id"], model)
    every_run = rows(query(view.db, "summaries/runs_named", {"begins": "", "model": None}))
    for run in every_run:
        yield from _run(view, run, leaves=leaves)
    for run_id in dict.fromkeys(run["run_id"] for run in every_run):
        at = _at(view, links.run_path(run_id))
        yield at.links.path, runs.launch(at, run_id)
    for names in compare.pairs(view):
        at = _at(view, links.pair_path(*names))
        yield at.links.path, compare.pair(at, *names)
    for item in rows(query(view.db, "viewer/all_items")) if leaves else ():
        at = _at(view, links.item_path(item["suite"], item["item_id"]))
        yield at.links.path, items.item(at, item["suite"], item["item_id"])


def _overviews(view: View) -> Iterator[tuple[str, Page]]:
    at = _at(view, "")
    first = leaderboard.leaderboard(at)
    yield "", first
    for one in first.shown["slices"]:
        at = _at(view, links.slice_path(one["suite"], one["category"]))
        yield at.links.path, leaderboard.leaderboard(at, one["suite"], one["category"])
    yield "versions/", leaderboard.versions(_at(view, "versions/"))
    for version in leaderboard.all_versions(view):
        at = _at(view, links.version_path(version["benchmark_version"]))
        yield at.links.path, leaderboard.old_leaderboard(at, version["benchmark_version"])
    yield "models/", models.models(_at(view, "models/"))
    yield "compare/", compare.compare(_at(view, "compare/"), ())
    page = pages = 1
    while page <= pages:
        made = runs.runs(_at(view, links.runs_path(page)), page)
        yield links.runs_path(page), made
        page, pages = page + 1, made.shown["pages"]


def _run(view: View, run: Row, *, leaves: bool) -> Iterator[tuple[str, Page]]:
    run_id, model = run["run_id"], run["model"]
    at = _at(view, links.run_path(run_id, model))
    yield at.links.path, runs.run(at, run_id, model)
    if not leaves:
        return
    for show, page in runs.pages_of_items(view, run_id, model):
        at = _at(view, links.items_path(run_id, model, show, page))
        yield at.links.path, runs.items(at, run_id, model, show, page)
    given = {"run_id": run_id, "models": [model]}
    for one in rows(query(view.db, "summaries/planned_items", given)):
        at = _at(view, links.reply_path(run_id, model, one["suite"], one["item_id"]))
        yield at.links.path, items.reply(at, run_id, model, one["suite"], one["item_id"])


def _images(view: View) -> Iterator[tuple[str, bytes]]:
    for item in rows(query(view.db, "viewer/all_items")):
        if item["form"] is not None:
            name = item["suite"], item["item_id"], item["form"]
            try:
                yield links.image_path(*name), items.image(view, *name)
            except NotThereError:  # one that browsers could not show either
                continue


def _at(view: View, path: str) -> View:
    """The same results, seen from there."""
    at = Links(path, static=True)
    return View(view.db, view.settings, view.journal, view.follower, at)

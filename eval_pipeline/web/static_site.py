"""Builds the static site of `evals site build`: the same pages as files, for any file server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.errors import MendableError
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import model_rows, run_rows
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web import routes
from eval_pipeline.web.app import find_page
from eval_pipeline.web.cache import PageRenderer
from eval_pipeline.web.pages import compare, items, leaderboard, models, runs
from eval_pipeline.web.routes import INDEX, Links, NotThereError, View
from eval_pipeline.web.templates import render, static_files

LIST = ".evals-site"
"""Lists the files that were written: no other file is ever replaced or removed."""
MOST_REPLIES = 5_000
"""With more replies items have no pages of their own by default."""
PER_LIST = 1_000


class SiteError(MendableError):
    """The pages can not be written there; the message says why."""


class Built(NamedTuple):
    """The number of files written, and whether items have pages of their own."""

    files: int
    with_items: bool


def build(settings: Settings, folder: Path, *, with_items: bool | None = None) -> Built:
    """Write every page; by default those of items only if they are not too many."""
    renderer = PageRenderer(settings)
    with renderer.look(Links("", static=True)) as view:
        (replies,) = query(view.db, "viewer/replies").fetchone() or (0,)
        leaves = replies <= MOST_REPLIES if with_items is None else with_items
        site = _Site(folder)
        for name, content in static_files().items():
            site.write(f"static/{name}", content)
        for path in _paths(view, leaves=leaves):
            make, parts = find_page(path)
            links = Links(path, static=True, leaves=leaves)
            page = make(replace(view, links=links), parts)
            site.write(f"{path}{INDEX}", render(page, links).encode())
        for path, image in _images(view) if leaves else ():
            site.write(path, image)
    site.finish()
    return Built(len(site.written), leaves)


class _Site:
    """The folder with the files of earlier builds and of this one."""

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
        """Remove the files that an earlier build wrote and this one did not."""
        self._note(self.written)
        for path in self._old - self.written:
            (self._folder / path).unlink(missing_ok=True)

    def _known(self) -> set[str]:
        if not self._list.is_file():
            return set()
        named = self._list.read_text("utf-8", "replace").splitlines()
        # The list may have been edited: it must not lead out of the folder.
        return {path for path in named if ".." not in path.split("/") and not path.startswith("/")}

    def _note(self, paths: set[str]) -> None:
        self._list.write_text("".join(f"{path}\n" for path in sorted(paths)), "utf-8")


def _paths(view: View, *, leaves: bool) -> Iterator[str]:
    """Yield the path of every page."""
    slices = rows(query(view.db, "viewer/slices"))
    yield from ("", "versions/", "models/", "compare/")
    yield from (routes.slice_path(one["suite"], one["category"]) for one in slices)
    for version in leaderboard.all_versions(view):
        yield routes.version_path(version["benchmark_version"])
    yield from map(routes.runs_path, range(1, runs.page_of(run_rows(view.db, ()), 1)[1] + 1))
    for row in model_rows(view.db):
        yield routes.model_path(row["model"])
        for report in models.reports_of(view, row["model"]):
            yield routes.report_path(report["run_id"], row["model"])
    every_run = rows(query(view.db, "summaries/runs_named", {"begins": "", "model": None}))
    for run in every_run:
        yield routes.run_path(run["run_id"], run["model"])
        yield from _paths_of_items(view, run["run_id"], run["model"]) if leaves else ()
    yield from map(routes.run_path, dict.fromkeys(run["run_id"] for run in every_run))
    yield from (routes.pair_path(*names) for names in compare.pairs(view))
    for item in rows(query(view.db, "viewer/all_items")) if leaves else ():
        yield routes.item_path(item["suite"], item["item_id"])


def _paths_of_items(view: View, run_id: str, model: str) -> Iterator[str]:
    for show, page in runs.pages_of_items(view, run_id, model):
        yield routes.items_path(run_id, model, show, page)
    given = {"run_id": run_id, "models": [model]}
    for one in rows(query(view.db, "summaries/planned_items", given)):
        yield routes.reply_path(run_id, model, one["suite"], one["item_id"])


def _images(view: View) -> Iterator[tuple[str, bytes]]:
    for item in rows(query(view.db, "viewer/all_items")):
        if item["form"] is not None:
            path = routes.image_path(item["suite"], item["item_id"], item["form"])
            try:
                yield path, items.image(view, item)
            except NotThereError:  # one that browsers could not show either
                continue

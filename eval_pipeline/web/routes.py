"""Addresses of pages, and the records that a page is made from and made into."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import duckdb
from starlette.datastructures import QueryParams

from eval_pipeline.errors import MendableError
from eval_pipeline.interop.remote.messages import encode_segment, parse_hashed
from eval_pipeline.journal import Journal
from eval_pipeline.results.queries import query
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.live import JournalTail

INDEX = "index.html"
MOST_DIGITS = 9
Row = dict[str, Any]
Parts = Mapping[str, str]
"""The parts of an address in braces, decoded."""


class NotThereError(MendableError):
    """There is no such model, run or item."""


class AskedError(MendableError):
    """The question after the ? of an address is incomplete."""


@dataclass(frozen=True)
class Links:
    """Relative addresses of pages from the page at `path`; static files name each index."""

    path: str
    static: bool = False
    leaves: bool = True
    """True if items have pages of their own."""

    @property
    def root(self) -> str:
        """From here to the first page."""
        return "../" * self.path.count("/") or "./"

    def to(self, path: str, **given: str | list[str] | None) -> str:
        """To a page (a path that ends in /, or is empty), or to a file."""
        asked = {name: value for name, value in given.items() if value}
        query = f"?{urlencode(asked, doseq=True)}" if asked else ""
        index = INDEX if self.static and (path.endswith("/") or not path) else ""
        # Pages below this one get short links: a page may have thousands of them.
        below = self.path and path.startswith(self.path)
        start = path.removeprefix(self.path) or "./" if below else f"{self.root}{path}"
        return f"{start}{index}{query}"


def _path(form: str) -> Callable[..., str]:
    """Return the function that puts encoded names into a path of this form."""
    return lambda *names: form.format(*map(encode_segment, names))


model_path = _path("models/{}/")
report_path = _path("runs/{}/{}/report/")
reply_path = _path("runs/{}/{}/item/{}/{}/")
item_path = _path("items/{}/{}/")
image_path = _path("items/{}/{}/image.{}")
version_path = _path("versions/{}/")
pair_path = _path("compare/{}/{}/")


def runs_path(page: int = 1) -> str:
    """A page of the list of all runs."""
    return "runs/" if page == 1 else f"history/{page}/"


def run_path(run_id: str, model: str | None = None) -> str:
    """The page of a run of one model; without one, of all that the launch opened."""
    return f"runs/{encode_segment(run_id)}/" + (f"{encode_segment(model)}/" if model else "")


def items_path(run_id: str, model: str, show: str, page: int = 1) -> str:
    """A page of the list of a run's replies."""
    return f"{run_path(run_id, model)}items/{show}/{page}/"


def slice_path(suite: str | None = None, category: str | None = None) -> str:
    """The leaderboard, or that of a suite, or of a category of it."""
    parts = [encode_segment(name) for name in (suite, category) if name is not None]
    return "".join(f"{part}/" for part in ("leaderboard", *parts)) if parts else ""


@dataclass(frozen=True)
class View:
    """The results at the moment, and the page they are read for."""

    db: duckdb.DuckDBPyConnection
    settings: Settings
    journal: Journal
    tail: JournalTail
    links: Links
    asked: QueryParams = field(default_factory=QueryParams)
    """The parameters after the ? of the address."""

    def run_links(self, runs: Sequence[Row]) -> list[str]:
        """Return the links from this page to runs."""
        return [self.links.to(run_path(run["run_id"], run["model"])) for run in runs]


@dataclass(frozen=True)
class Page:
    """A template with its values."""

    template: str
    title: str
    shown: Mapping[str, Any] = field(default_factory=dict)


def parse_page_number(text: str) -> int:
    """Return the number of a page in an address."""
    if not (text.isdecimal() and text.isascii() and len(text) <= MOST_DIGITS and int(text) > 0):
        raise NotThereError("There is no such page.")
    return int(text)


def find_model(view: View, part: str) -> str:
    """Return the model of a part of an address, also if it is the hash of a long name."""
    if (hashed := parse_hashed(part)) is None:
        return part
    found = query(view.db, "viewer/model_hashed", {"hash": hashed}).fetchone()
    if found is None:
        raise NotThereError("There is no such model.")
    return str(found[0])

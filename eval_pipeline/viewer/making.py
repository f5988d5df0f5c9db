"""Pages and documents from the results as they are now."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from starlette.datastructures import QueryParams

from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.results.queries import query
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings import Settings
from eval_pipeline.viewer.at_work import Follower
from eval_pipeline.viewer.kept import Answer, Kept
from eval_pipeline.viewer.links import Links, hash_in
from eval_pipeline.viewer.page import NotThereError, Page, View
from eval_pipeline.viewer.rendering import render

NOTHING_ASKED = QueryParams()
HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain"
PAGES_KEPT_S, DOCUMENTS_KEPT_S, TEXTS_KEPT_S = 10.0, 1.0, 300.0
"""For so long an answer may be old: reports and the journal change without the results' file."""
MakePage = Callable[[View], Page]
MakeDocument = Callable[[View], Any]


class Maker:
    """Makes what readers ask for, with a short look into the results each time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.journal = open_journal(settings)
        self.warehouse = Warehouse(settings.database, self.journal)
        self.follower = Follower(self.journal)
        self._kept = Kept(self.follower.is_busy)

    def page(
        self, path: str, make: MakePage, asked: QueryParams = NOTHING_ASKED, *, static: bool = False
    ) -> str:
        """The HTML of a page."""
        links = Links(path, static=static)
        with self.look(links, asked) as view:
            page = make(view)
        return render(page, links)

    @contextmanager
    def look(self, links: Links, asked: QueryParams = NOTHING_ASKED) -> Iterator[View]:
        """The results, read-only and only as long as it takes."""
        with self.warehouse.reading() as db:
            yield View(db, self.settings, self.journal, self.follower, links, asked)

    def kept_page(self, path: str, asked: QueryParams, make: MakePage) -> Answer:
        """The same as an answer, which may be as old as answers may be."""

        def answer() -> Answer:
            return Answer.of(self.page(path, make, asked).encode(), HTML)

        return self._kept.get((path, str(asked), self._state()), answer, PAGES_KEPT_S)

    def kept_document(self, path: str, asked: QueryParams, make: MakeDocument) -> Answer:
        """A document for programs."""

        def answer() -> Answer:
            with self.look(Links(path), asked) as view:
                return Answer.of(as_json(make(view)), JSON)

        return self._kept.get((path, str(asked), self._state()), answer, DOCUMENTS_KEPT_S)

    def kept_text(self, path: str, make: Callable[[View], str]) -> str:
        """A text that changes with the file of results alone."""

        def answer() -> Answer:
            with self.look(Links(path)) as view:
                return Answer.of(make(view).encode(), TEXT)

        return self._kept.get((path, self._state()), answer, TEXTS_KEPT_S).body.decode()

    def _state(self) -> tuple[int, ...] | None:
        """What changes when results are published."""
        try:
            found = self.settings.database.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


def as_json(value: object) -> bytes:
    """As programs read it: what JSON has no word for as text, and no number that is none."""
    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC
    return orjson.dumps(value, default=_plain, option=options | orjson.OPT_SERIALIZE_NUMPY)


def _plain(value: object) -> object:
    match value:
        case tuple():
            return list(value)
        case _:
            return str(value)


def find_model(view: View, part: str) -> str:
    """The model that a part of a path means, also if it stands for a long name."""
    if (hashed := hash_in(part)) is None:
        return part
    found = query(view.db, "viewer/model_hashed", {"hash": hashed}).fetchone()
    if found is None:
        raise NotThereError("There is no such model.")
    return str(found[0])

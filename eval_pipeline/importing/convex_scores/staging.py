"""The documents of an export on disk, so that a run can be had with all that belongs to it."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from eval_pipeline.importing.convex_scores.documents import (
    Document,
    EvalDocument,
    ModelDocument,
    RunDocument,
    StepDocument,
    VersionDocument,
)
from eval_pipeline.importing.convex_scores.reading import ScoresError
from eval_pipeline.journal.files import remove
from eval_pipeline.processes import is_running

D = TypeVar("D", bound=Document)
PREFIX = ".importing-"


class Staged:
    """Every document once: of two with one id the last counts."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        db.execute(
            "create table documents (kind text, id text, parent text, created real, body text, "
            "primary key (kind, id)) without rowid"
        )

    def add(self, kind: str, document: Document) -> None:
        """One more."""
        name, parent = _names(document)
        row = (kind, name, parent, document.created, document.model_dump_json(by_alias=False))
        self._db.execute("insert or replace into documents values (?, ?, ?, ?, ?)", row)

    def finish(self) -> None:
        """Those were all."""
        self._db.execute("create index parents on documents (kind, parent, created)")

    def models(self) -> dict[str, ModelDocument]:
        """By their id."""
        return {one.id: one for one in self._read("models", ModelDocument)}

    def versions(self) -> dict[str, VersionDocument]:
        """By their id, and by the hash that older runs have in its place."""
        found = self._read("benchmarkVersions", VersionDocument)
        return {name: one for one in found for name in (one.id, one.version)}

    def runs(self) -> Iterator[RunDocument]:
        """In the order in which they were opened."""
        return self._read("runs", RunDocument)

    def evals(self, run_id: str) -> list[EvalDocument]:
        """Those of a run, in their order."""
        return list(self._read("evals", EvalDocument, run_id))

    def steps(self, eval_id: str) -> list[StepDocument]:
        """Those of an eval, in their order."""
        return list(self._read("steps", StepDocument, eval_id))

    def _read(self, kind: str, of: type[D], parent: str = "") -> Iterator[D]:
        sql = "select body from documents where kind = ? and parent = ? order by created, id"
        for (body,) in self._db.execute(sql, (kind, parent)):
            yield of.model_validate_json(body)


def _names(document: Document) -> tuple[str, str]:
    """What a document is called, and to what it belongs."""
    match document:
        case StepDocument():
            return document.id or f"{document.eval_id}/{document.name}", document.eval_id
        case EvalDocument():
            return document.id, document.run_id
        case RunDocument() | ModelDocument() | VersionDocument():
            return document.id, ""
    raise TypeError(type(document))


@contextmanager
def staging(folder: Path) -> Iterator[Staged]:
    """A place for documents, gone with the block."""
    _remove_leftovers(folder)
    with (
        TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", dir=folder) as place,
        closing(sqlite3.connect(Path(place) / "documents.sqlite", isolation_level=None)) as db,
    ):
        db.execute("pragma journal_mode = off")
        db.execute("pragma synchronous = off")
        db.execute("begin")
        try:
            yield Staged(db)
        except sqlite3.Error as error:
            raise ScoresError(f"{folder}: there is no place for the documents ({error}).") from None


def _remove_leftovers(folder: Path) -> None:
    """What imports that were killed have left."""
    for left in folder.glob(f"{PREFIX}*"):
        if not is_running(int(left.name.removeprefix(PREFIX).partition("-")[0])):
            remove(left)

"""A scores export, line by line: a file of JSON lines, or a folder or archive of `convex export`.

Nothing in it is trusted: nothing is unpacked to disk, no name in an archive is used as a path, and
neither a line nor the whole may be larger than is sensible.
"""

import json
import os
import sqlite3
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple, TypeVar

import orjson
from pydantic import ValidationError

from eval_pipeline.errors import MendableError
from eval_pipeline.interop.convex_scores.documents import (
    TABLES,
    Document,
    EvalDocument,
    ModelDocument,
    RunDocument,
    StepDocument,
    VersionDocument,
    is_of_questions,
    table_of,
)
from eval_pipeline.journal.files import remove
from eval_pipeline.processes import is_running

DOCUMENTS = "documents.jsonl"
LONGEST_LINE = 16 * 1024 * 1024
MOST_BYTES = 16 * 1024**3
"""Of all lines together when they are unpacked."""
MOST_FILES = 100_000


class ScoresError(MendableError):
    """It can not be read at all; the message says why."""


class Line(NamedTuple):
    """One line: a document of a table, or why it is none; neither if it is of no use here."""

    place: str
    table: str | None = None
    document: Document | None = None
    wrong: str = ""
    of_questions: bool = False


def read_scores(path: Path) -> Iterator[Line]:
    """Every line of the tables that matter."""
    if path.is_dir():
        yield from _of_folder(path)
    elif zipfile.is_zipfile(path):
        with _explained(path), zipfile.ZipFile(path) as archive:
            yield from _of_archive(archive, path)
    elif path.suffix == ".zip" and path.is_file():
        raise ScoresError(f"{path}: this is no whole archive.")
    elif path.is_file():
        with path.open("rb") as file:
            yield from _lines(file, path.name, None, _Budget())
    else:
        raise ScoresError(f"{path}: there is no such file or folder.")


class _Budget:
    """How much may still be read."""

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ScoresError(f"More than {MOST_BYTES // 1024**3} GiB are not read.")


def _of_folder(path: Path) -> Iterator[Line]:
    found = [table for table in TABLES if (path / table / DOCUMENTS).is_file()]
    _refuse_nothing(found, path)
    budget = _Budget()
    for table in found:
        with (path / table / DOCUMENTS).open("rb") as file:
            yield from _lines(file, f"{table}/{DOCUMENTS}", table, budget)


def _of_archive(archive: zipfile.ZipFile, path: Path) -> Iterator[Line]:
    if len(archive.infolist()) > MOST_FILES:
        raise ScoresError(f"{path}: more than {MOST_FILES} files are not looked at.")
    names: dict[str, zipfile.ZipInfo] = {}
    # What components of a deployment keep is deeper down, however its tables are called.
    for one in sorted(archive.infolist(), key=lambda one: one.filename.count("/")):
        name = PurePosixPath(one.filename)
        if name.name == DOCUMENTS:
            names.setdefault(name.parent.name, one)
    found = [table for table in TABLES if table in names]
    _refuse_nothing(found, path)
    budget = _Budget()
    for table in found:
        with archive.open(names[table]) as file:
            yield from _lines(file, f"{table}/{DOCUMENTS}", table, budget)


def _refuse_nothing(found: list[str], path: Path) -> None:
    if "runs" not in found or "evals" not in found:
        raise ScoresError(
            f"{path}: there is no runs/{DOCUMENTS} and evals/{DOCUMENTS}; is it what "
            "`npx convex export --path` writes?"
        )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ScoresError(f"{path}: the archive can not be read ({error}).") from None


def _lines(file: IO[bytes], name: str, table: str | None, budget: _Budget) -> Iterator[Line]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        place = f"{name}, line {number}"
        budget.spend(len(line))
        if len(line) > LONGEST_LINE:
            yield Line(place, wrong=f"it is longer than {LONGEST_LINE // 1024**2} MiB")
            _skip_rest(file, line, budget)
        elif line.strip():
            yield _read(line, place, table)


def _skip_rest(file: IO[bytes], line: bytes, budget: _Budget) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(LONGEST_LINE)
        budget.spend(len(line))


def _read(line: bytes, place: str, table: str | None) -> Line:
    try:
        values = _values(line)
    except (ValueError, RecursionError):
        return Line(place, wrong="it is no JSON")
    if not isinstance(values, dict):
        return Line(place, wrong="it is no object")
    table, values = table or table_of(values), _unwrapped(values)
    if table is None and not {"_id", "_creationTime"} <= values.keys():
        return Line(place, wrong="nothing tells of which table it is")
    if table is None or table not in TABLES:
        return Line(place)
    if is_of_questions(values):
        return Line(place, table, of_questions=True)
    try:
        return Line(place, table, TABLES[table].model_validate(values))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, problem["loc"]))
        return Line(place, wrong=f"{field}: {problem['msg'].lower()}")


def _values(line: bytes) -> Any:
    """Halves of characters, which strict JSON does not know, are mended where texts are read."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line.decode("utf-8", "replace"))


def _unwrapped(values: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in ("document", "value", "doc"):
        if isinstance(inner := values.get(name), dict):
            return inner
    return values


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

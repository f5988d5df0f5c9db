"""A scores export, line by line: a file of JSON lines, or a folder or archive of `convex export`.

Nothing in it is trusted: nothing is unpacked to disk, no name in an archive is used as a path, and
neither a line nor the whole may be larger than is sensible.
"""

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import orjson
from pydantic import ValidationError

from eval_pipeline.errors import MendableError
from eval_pipeline.importing.convex_scores.documents import (
    TABLES,
    Document,
    is_of_questions,
    table_of,
)

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

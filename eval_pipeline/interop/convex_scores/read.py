"""Documents of a scores export: a file of JSON lines, or a folder or archive of `convex export`.

Nothing in it is trusted: nothing is unpacked to disk, no name in an archive is used as a path, and
neither a line nor the whole may be larger than is sensible. Fields came and went over time, so only
those are read that are needed.
"""

import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, Literal, NamedTuple, TypeVar

import orjson
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    WrapValidator,
)

from eval_pipeline.errors import MendableError
from eval_pipeline.records.base import Record, Text

DOCUMENTS = "documents.jsonl"
LONGEST_LINE = 16 * 1024 * 1024
MOST_BYTES = 16 * 1024**3
"""Of all lines together when they are unpacked."""
MOST_FILES = 100_000
F = TypeVar("F")


def _or_none(value: Any, validate: Any) -> Any:
    """Return None for a value that is not as expected."""
    try:
        return validate(value)
    except ValidationError:
        return None


Moment = Annotated[FiniteFloat, Field(gt=0, lt=1e14)]
"""Milliseconds since 1970."""
Amount = Annotated[Annotated[FiniteFloat, Field(ge=0, lt=1e12)] | None, WrapValidator(_or_none)]
Count = Annotated[Amount, AfterValidator(lambda one: None if one is None else round(one))]
Name = Annotated[Text, Field(min_length=1, max_length=200)]
Task = Annotated[Text, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}$")]
"""Category and name of an eval: it becomes the id of an item."""


class _Part(Record):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Tokens(_Part):
    """The tokens of a reply, and the cost in what the provider said itself, as `Usage` has them."""

    input_tokens: Count = Field(default=None, alias="inputTokens")
    output_tokens: Count = Field(default=None, alias="outputTokens")
    reasoning_tokens: Count = Field(
        default=None,
        validation_alias=AliasChoices(
            AliasPath("outputTokenDetails", "reasoningTokens"), "reasoningTokens"
        ),
    )
    cached_tokens: Count = Field(
        default=None,
        validation_alias=AliasChoices(
            AliasPath("inputTokenDetails", "cacheReadTokens"), "cachedInputTokens"
        ),
    )
    cost_usd: Amount = Field(default=None, validation_alias=AliasPath("raw", "cost"))


class Status(_Part):
    """The state of a run, an eval or a step; the other fields depend on it."""

    kind: Literal["pending", "running", "completed", "passed", "failed", "skipped"]
    took: Amount = Field(default=None, alias="durationMs")
    generating: Amount = Field(default=None, alias="generationDurationMs")
    reason: Text = Field(default="", alias="failureReason")
    usage: Annotated[Tokens | None, WrapValidator(_or_none)] = None


class Document(_Part):
    """One row of a table."""

    id: Name = Field(alias="_id")
    created: Moment = Field(alias="_creationTime")


class ModelDocument(Document):
    """A model; older runs name theirs themselves."""

    slug: Name
    display_name: Text = Field(default="", alias="formattedName")


class VersionDocument(Document):
    """A benchmark version: minted, reconstructed, or the placeholder for runs without one."""

    version: Name
    since: Amount = Field(default=None, alias="effectiveAt")
    evals: Amount = Field(default=None, alias="evalCount")
    provenance: Text = "minted"


class RunDocument(Document):
    """One evaluation of one model."""

    model_id: Name | None = Field(default=None, alias="modelId")
    model: Name | None = None
    display_name: Text = Field(default="", alias="formattedName")
    provider: Text = ""
    planned: tuple[Task, ...] = Field(default=(), alias="plannedEvals", max_length=100_000)
    version: Text | None = Field(default=None, alias="benchmarkVersion")
    status: Status
    experiment: Name | None = None


class EvalDocument(Document):
    """One task in one run."""

    run_id: Name = Field(alias="runId")
    path: Task = Field(alias="evalPath")
    status: Status
    text: Text | None = Field(default=None, alias="task")

    @property
    def task(self) -> str:
        """Category and name, as plans have them."""
        return self.path.removeprefix("./").removeprefix("evals/")


class StepDocument(Document):
    """One step of grading an eval."""

    eval_id: Name = Field(alias="evalId")
    name: Literal["filesystem", "install", "deploy", "tsc", "eslint", "tests"]
    status: Status


TABLES: Mapping[str, type[Document]] = {
    "models": ModelDocument,
    "benchmarkVersions": VersionDocument,
    "runs": RunDocument,
    "evals": EvalDocument,
    "steps": StepDocument,
}
_TABLE_OF_FIELD = {
    "plannedEvals": "runs",
    "runKey": "runs",
    "evalPath": "evals",
    "questionKey": "evals",
    "evalId": "steps",
    "slug": "models",
    "evalCount": "benchmarkVersions",
}
"""Fields that only one of the tables has."""


class ScoresError(MendableError):
    """The export cannot be read at all; the message says why."""


class Line(NamedTuple):
    """One line: a document, a run of questions, or why it is neither; all empty if irrelevant."""

    place: str
    document: Document | None = None
    wrong: str = ""
    is_run_of_questions: bool = False


def read_scores(path: Path) -> Iterator[Line]:
    """Yield every line of the tables that matter."""
    if path.is_dir():
        tables = {table: path / table / DOCUMENTS for table in TABLES}
        files = {table: file for table, file in tables.items() if file.is_file()}
        yield from _read_tables(path, files, lambda file: file.open("rb"))
    elif zipfile.is_zipfile(path):
        damage = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
        try:
            with zipfile.ZipFile(path) as archive:
                yield from _read_tables(path, _files_in(archive, path), archive.open)
        except damage as error:
            raise ScoresError(f"{path}: the archive cannot be read ({error}).") from None
    elif path.suffix == ".zip" and path.is_file():
        raise ScoresError(f"{path}: this is no whole archive.")
    elif path.is_file():
        with path.open("rb") as file:
            yield from _Reader().read(file, path.name, None)
    else:
        raise ScoresError(f"{path}: there is no such file or folder.")


def _files_in(archive: zipfile.ZipFile, path: Path) -> Mapping[str, zipfile.ZipInfo]:
    if len(archive.infolist()) > MOST_FILES:
        raise ScoresError(f"{path}: more than {MOST_FILES} files are not looked at.")
    files: dict[str, zipfile.ZipInfo] = {}
    # Components of a deployment are in deeper folders, and may have tables of the same names.
    for one in sorted(archive.infolist(), key=lambda one: one.filename.count("/")):
        name = PurePosixPath(one.filename)
        if name.name == DOCUMENTS:
            files.setdefault(name.parent.name, one)
    return files


def _read_tables(
    path: Path, files: Mapping[str, F], open_file: Callable[[F], IO[bytes]]
) -> Iterator[Line]:
    if not {"runs", "evals"} <= files.keys():
        raise ScoresError(
            f"{path}: there is no runs/{DOCUMENTS} and evals/{DOCUMENTS}; is it what "
            "`npx convex export --path` writes?"
        )
    reader = _Reader()
    for table in TABLES:
        if table in files:
            with open_file(files[table]) as file:
                yield from reader.read(file, f"{table}/{DOCUMENTS}", table)


class _Reader:
    """Reads lines of files, all files together up to a limit."""

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def read(self, file: IO[bytes], name: str, table: str | None) -> Iterator[Line]:
        number = 0
        while line := self._next(file, LONGEST_LINE + 1):
            number += 1
            place = f"{name}, line {number}"
            if len(line) > LONGEST_LINE:
                yield Line(place, wrong=f"it is longer than {LONGEST_LINE // 1024**2} MiB")
                while line and not line.endswith(b"\n"):
                    line = self._next(file, LONGEST_LINE)
            elif line.strip():
                yield _parse(line, place, table)

    def _next(self, file: IO[bytes], most: int) -> bytes:
        line = file.readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise ScoresError(f"More than {MOST_BYTES // 1024**3} GiB are not read.")
        return line


def _parse(line: bytes, place: str, table: str | None) -> Line:
    try:
        values = _json(line)
    except (ValueError, RecursionError):
        return Line(place, wrong="it is no JSON")
    if not isinstance(values, dict):
        return Line(place, wrong="it is no object")
    table = table or _table_of(values)
    if table is None and not {"_id", "_creationTime"} <= values.keys():
        return Line(place, wrong="nothing tells of which table it is")
    if table is None or table not in TABLES:
        return Line(place)
    if values.get("kind") == "decision":  # multiple choice shares the tables, and no field
        return Line(place, is_run_of_questions=table == "runs")
    try:
        return Line(place, TABLES[table].model_validate(values))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, problem["loc"]))
        return Line(place, wrong=f"{field}: {problem['msg'].lower()}")


def _json(line: bytes) -> Any:
    """Parse a line; the records replace halves of characters, which strict JSON refuses."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line.decode("utf-8", "replace"))


def _table_of(values: Mapping[str, Any]) -> str | None:
    """Return the table that a document names, or that its fields show."""
    for name in ("_table", "table", "tableName"):
        if isinstance(said := values.get(name), str):
            return said
    return next((table for field, table in _TABLE_OF_FIELD.items() if field in values), None)

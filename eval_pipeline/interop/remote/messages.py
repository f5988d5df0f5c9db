"""The contract of the API for remote runs: its paths, how names are encoded in them, its records.

Names of models, suites and items are untrusted: in a path they are letters, digits and a few signs,
and everything else is encoded as =XX, which has no meaning to servers and file systems.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache, reduce
from hashlib import md5
from typing import Any, Literal, TypeVar
from urllib.parse import quote, unquote

import orjson
from pydantic import Field, ValidationError

from eval_pipeline.errors import MendableError
from eval_pipeline.records.base import Record, now
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.text import printable

JSON, LINES = "application/json", "application/x-ndjson"
VERSIONS_PATH, RUNS_PATH = "/api/v1/benchmark-versions", "/api/v1/runs"
OF_A_RUN = f"{RUNS_PATH}/{{run_id}}/{{model}}"
MOST_RECORDS = 1000
"""In one batch."""
MOST_BYTES = 16 * 1024 * 1024
"""Of one request when it is unpacked, and of one item of a benchmark version."""
MOST_BYTES_OF_ITEMS = 512 * 1024 * 1024
"""Of a benchmark version with all its items, which go to disk one by one."""
MOST_ITEMS = 100_000
LONGEST_SEGMENT = 200
"""Characters: longer names are hashed, as file names are limited in length."""
HASHED = "=-"


class RefusedError(MendableError):
    """Something from elsewhere was refused and not written; the message has no paths or secrets."""

    def __init__(
        self, message: str, status: int = 422, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class BadPathError(ValueError):
    """A segment of a path that no name is encoded as."""


@lru_cache(maxsize=10_000)
def encode_segment(name: str) -> str:
    """Return a name as one segment of a path."""
    encoded = quote(name, safe="").replace("~", "%7E").replace("%", "=")
    if encoded.startswith("."):
        encoded = f"=2E{encoded[1:]}"
    if not encoded or len(encoded) > LONGEST_SEGMENT:
        # DuckDB's md5 is the same.
        return HASHED + md5(name.encode(), usedforsecurity=False).hexdigest()
    return encoded


def decode_segment(segment: str) -> str:
    """Return the name that a segment encodes; a hashed one is returned as it is."""
    if parse_hashed(segment) is not None:
        return segment
    try:
        name = unquote(segment.replace("=", "%"), errors="strict")
        if encode_segment(name) == segment:
            return name
    except UnicodeError:
        pass
    raise BadPathError(segment)


def parse_hashed(segment: str) -> str | None:
    """Return the hash in a segment that replaces a long name; None for any other segment."""
    return segment.removeprefix(HASHED) if segment.startswith(HASHED) else None


class RunToOpen(Record):
    """A run, and its model as the gateway described it."""

    run: Run
    sighting: Sighting | None = None


class Predictions(Record):
    """Replies of one run, in the order in which they came."""

    predictions: tuple[Prediction, ...] = Field(min_length=1, max_length=MOST_RECORDS)


class Judgements(Record):
    """Verdicts on replies of one run that were posted before."""

    judgements: tuple[Judgement, ...] = Field(min_length=1, max_length=MOST_RECORDS)


class KeptVersion(Record):
    """What became of a benchmark version; of `missing` suites the items have to be posted too."""

    state: Literal["new", "known", "incomplete"]
    missing: tuple[str, ...] = ()


class OpenedRun(Record):
    """Whether the run was opened now or had been before, with the same content."""

    state: Literal["new", "known"]


class Received(Record):
    """How many records came, and how many of them were not here before."""

    received: int
    new: int
    known: int


class ClosedRun(Record):
    """How many replies the run has set out to get, and what there is of it."""

    planned: int
    predictions: int
    judgements: int


class Refusal(Record):
    """Why nothing was written, in a sentence."""

    error: str


T = TypeVar("T")
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
CLOCKS_DIFFER_BY = timedelta(minutes=5)
# Sums of as many as anybody will ever send still fit into 64 bits.
LARGEST = 10**12
DEEPEST = 30
LONGEST_NAME = 200
LONGEST_SHOWN = 60
LONGEST_REASON = 400
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_SUITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_HASH = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(rf"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{{1,{LONGEST_NAME}}}")
_SPELLED = {
    **dict.fromkeys(("run_id", "carry_from", "carried_from", "failed_of"), _RUN_ID),
    **dict.fromkeys(("suite", "suites"), _SUITE),
    **dict.fromkeys(("suite_version", "benchmark_version"), _HASH),
    **dict.fromkeys(("id", "item_id", "prediction_id", "judge", "judge_version"), _NAME),
    **dict.fromkeys(("experiment", "category", "cluster", "gateway", "minted_as"), _NAME),
}
"""How names are written, wherever a record has a field that is called so."""


def parsed(content: bytes, validate: Callable[[Any], T], what: str = "") -> T:
    """Return the content as a record; refuse values that the journal must not have."""
    try:
        # Stricter than pydantic's own: no NaN, no half characters.
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise RefusedError(f"{_begin(what)}this is no JSON.") from None
    try:
        found = validate(value)
    except ValidationError as error:
        raise RefusedError(_explained(error, what)) from None
    if trouble := next(_troubles(found, what), None):
        raise RefusedError(trouble)
    return found


def _explained(error: ValidationError, what: str) -> str:
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = reduce(_within, problem["loc"], what)
    # It may repeat what was sent, however long that is.
    said = printable(problem["msg"].removeprefix("Value error, "))[:LONGEST_REASON]
    return f"{_begin(where)}{said}."


def _troubles(value: Any, where: str, field: str = "", depth: int = 0) -> Iterator[str]:
    match value:
        case _ if depth > DEEPEST:
            yield f"{_begin(where)}this is nested too deeply."
        case str() if field in _SPELLED and not _SPELLED[field].fullmatch(value):
            yield f"{_begin(where)}no {field} is written like this."
        case bool():
            return
        # The parameters of a run are any JSON.
        case int() | float() if field != "parameters" and not 0 <= value <= LARGEST:
            yield f"{_begin(where)}must be a number from 0 to {LARGEST}."
        case datetime():
            yield from _of_moment(value, where)
        case Record() | Mapping() | tuple() | list():
            for name, part, one in _parts(value, field):
                yield from _troubles(one, _within(where, part), name, depth + 1)


def _parts(value: Any, field: str) -> Iterator[tuple[str, str | int, Any]]:
    """What it is made of, each with the field it belongs to and its place."""
    match value:
        case Record():
            yield from ((name, name, one) for name, one in value)
        case ItemKey():
            yield from ((name, name, one) for name, one in value._asdict().items())
        case Mapping():
            yield from ((field, name, one) for name, one in value.items())
        case _:
            yield from ((field, place, one) for place, one in enumerate(value))


def _of_moment(moment: datetime, where: str) -> Iterator[str]:
    if moment.utcoffset():
        yield f"{_begin(where)}must be in UTC."
    elif not EARLIEST <= moment <= now() + CLOCKS_DIFFER_BY:
        yield f"{_begin(where)}must be between the year {EARLIEST:%Y} and now."


def _within(where: str, part: str | int) -> str:
    if isinstance(part, int):
        return f"{where}[{part}]"
    shown = printable(part)[:LONGEST_SHOWN]
    return f"{where}.{shown}" if where else shown


def _begin(where: str) -> str:
    return f"{where}: " if where else ""

"""What comes from elsewhere: strict JSON, whole records, names and numbers that can be kept.

Whatever gets past here goes to the journal, from which DuckDB builds its file: one line that DuckDB
can not read, or a sum that no column can hold, would spoil it for everybody.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from eval_pipeline.record import Record
from eval_pipeline.records import ItemKey, now
from eval_pipeline.remote.refusals import RefusedError
from eval_pipeline.untrusted import printable

T = TypeVar("T")
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
CLOCKS_DIFFER_BY = timedelta(minutes=5)
# Sums of as many as anybody will ever send still fit into 64 bits.
LARGEST = 10**12
DEEPEST = 30
LONGEST_NAME = 200
LONGEST_SHOWN = 60
LONGEST_REASON = 400
FREE = "parameters"
"""How a model was asked, which is kept as the JSON that it is."""
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


def parsed(content: bytes, form: TypeAdapter[T], what: str = "") -> T:
    """The content as what it has to be, with nothing in it that can not be kept."""
    try:
        # Stricter than pydantic's own: no NaN, no half characters.
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise RefusedError(f"{_begin(what)}this is no JSON.") from None
    try:
        found = form.validate_python(value)
    except ValidationError as error:
        raise RefusedError(_explained(error, what)) from None
    if trouble := next(_troubles(found, what), None):
        raise RefusedError(trouble)
    return found


def _explained(error: ValidationError, what: str) -> str:
    problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = what
    for part in problem["loc"]:
        where = _within(where, part)
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
        case int() | float() if field != FREE and not 0 <= value <= LARGEST:
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

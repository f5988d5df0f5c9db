"""The contract of the API for remote runs: its paths, how names are encoded in them, its records.

Names of models, suites and items are untrusted: in a path they are letters, digits and a few signs,
and everything else is encoded as =XX, which has no meaning to servers and file systems.
"""

import re
from functools import lru_cache
from hashlib import md5
from typing import Literal

from pydantic import Field

from eval_pipeline.record import Record
from eval_pipeline.records import Judgement, Prediction, Run, Sighting

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
_PLAIN = re.compile(r"[A-Za-z0-9_-]")
_ALL_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_ENCODED = re.compile(r"=([0-9A-F]{2})")


class BadPathError(ValueError):
    """A segment of a path that no name is encoded as."""


@lru_cache(maxsize=10_000)
def encode_segment(name: str) -> str:
    """Return a name as one segment of a path."""
    if len(name) <= LONGEST_SEGMENT and _ALL_PLAIN.fullmatch(name):
        return name
    encoded = "".join(
        one
        if _PLAIN.match(one) or (one == "." and place)
        else "".join(f"={byte:02X}" for byte in one.encode())
        for place, one in enumerate(name)
    )
    if not encoded or len(encoded) > LONGEST_SEGMENT:
        # DuckDB's md5 is the same.
        return HASHED + md5(name.encode(), usedforsecurity=False).hexdigest()
    return encoded


def decode_segment(segment: str) -> str:
    """Return the name that a segment encodes; a hashed one is returned as it is."""
    if parse_hashed(segment) is not None:
        return segment
    raw = _ENCODED.sub(lambda found: chr(int(found[1], 16)), segment)
    try:
        name = raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise BadPathError(segment) from None
    if encode_segment(name) != segment:
        raise BadPathError(segment)
    return name


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

"""What goes over the wire, each a record: nothing else is understood."""

from typing import Literal

from pydantic import Field

from eval_pipeline.record import Record
from eval_pipeline.records import Judgement, Prediction, Run, Sighting

MOST_RECORDS = 1000
"""In one batch."""
MOST_BYTES = 16 * 1024 * 1024
"""Of one request when it is unpacked, and of one item of a benchmark version."""
MOST_BYTES_OF_ITEMS = 512 * 1024 * 1024
"""Of a benchmark version with all its items, which go to disk one by one."""
MOST_ITEMS = 100_000


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

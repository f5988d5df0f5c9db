"""Records of runs: their plan, scope and mode."""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, Field, JsonValue

from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.base import Record
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import ModelId


class PlanFilter(Record):
    """Which items of the data set a run covers; the default is all of them.

    `max_samples` is how many items of each suite, not how often each of them is asked.
    """

    text_only: bool = False
    max_samples: int | None = Field(default=None, ge=1)
    suites: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    test_filter: str = ""

    @property
    def narrows(self) -> bool:
        """Whether it makes filtered runs; those without images are ranked, so they are none."""
        return bool(self.max_samples or self.suites or self.categories or self.test_filter)


class Scope(StrEnum):
    """How much of the benchmark a run covers."""

    FULL = "full"
    TEXT = "text"
    FILTERED = "filtered"


IMPORTED_FROM = "imported_from"
"""The parameter that only runs of other programs have, and which program that was."""
CLOSED = "closed"
"""The parameter of runs that are history: nobody here asks or judges anything in them."""
FAILED_THERE = "failed_there"
"""The parameter of runs that failed as a whole in another program: what it said of that."""


def foreign_request(program: str, *parts: JsonValue) -> str:
    """Stands for the hash of a request that another program made; no request of ours has it."""
    return f"{program}:{fingerprint(*parts)}"


def is_foreign(request_hash: str) -> bool:
    """Whether another program made that request, and paid for it."""
    return ":" in request_hash


def _as_several(run_ids: object) -> object:
    """Return the ids as several: older journals name one, or null."""
    return (run_ids or ()) if not isinstance(run_ids, str) else (run_ids,)


class Run(Record):
    """One evaluation of one model over a plan of items under one experiment."""

    run_id: str
    model: ModelId
    experiment: str
    benchmark_version: str
    plan: tuple[ItemKey, ...]
    plan_filter: PlanFilter
    scope: Scope
    parameters: dict[str, JsonValue]
    simulated: bool
    opened_at: AwareDatetime
    carry_from: Annotated[tuple[str, ...], BeforeValidator(_as_several)] = ()
    samples: int = Field(default=1, ge=1)
    # The run of which this one asks again what failed in it.
    failed_of: str | None = None

    @property
    def planned(self) -> int:
        """How many replies it sets out to get: each item is asked once per sample."""
        return len(self.plan) * self.samples

    @property
    def is_imported(self) -> bool:
        """Whether another program asked and judged."""
        return IMPORTED_FROM in self.parameters

    @property
    def is_closed(self) -> bool:
        """Whether nobody here goes on with it."""
        return CLOSED in self.parameters

    def matches(self, other: "Run") -> bool:
        """Whether continuing this run would give what `other` sets out to measure."""
        names = ("model", "experiment", "benchmark_version", "plan", "parameters", "samples")
        return all(getattr(self, name) == getattr(other, name) for name in names)


class Attempt(Record):
    """A launch that set out to evaluate a model, whatever came of it.

    `run_id` is the Dagster run that was launched; the run that it went on with may be an older one.
    """

    run_id: str
    model: ModelId
    experiment: str
    filtered: bool
    repair: bool
    began_at: AwareDatetime


class Mode(StrEnum):
    """What a materialization does with the work that is there already."""

    AUTO = "auto"
    RESUME = "resume"
    FIX = "fix"
    FRESH = "fresh"

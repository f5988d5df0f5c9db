"""Records of items, suites and benchmark versions."""

from typing import Annotated, Literal, NamedTuple

from pydantic import AwareDatetime, Field, TypeAdapter

from eval_pipeline.records.base import Record
from eval_pipeline.records.coding import CodingTask

PROTOCOL = 1
"""Raised when the code changes what a pass means in a way that no prompt or item shows."""


class ExamQuestion(Record):
    """One question of an exam suite, in the shape of Humanity's Last Exam."""

    kind: Literal["exam"] = "exam"
    suite: str
    id: str
    question: str
    image: str | None
    answer: str
    answer_type: Literal["exactMatch", "multipleChoice"]
    category: str
    rationale: str
    raw_subject: str
    cluster: str | None = None


Item = ExamQuestion | CodingTask


ITEM: TypeAdapter[Item] = TypeAdapter(Annotated[Item, Field(discriminator="kind")])
"""Reads an item of either kind."""


class ItemKey(NamedTuple):
    """What names an item across suites."""

    suite: str
    item_id: str


SuiteKind = Literal["exam", "coding"]


class SuiteVersion(Record):
    """A suite as it was loaded: its name and the hash of its items."""

    suite: str
    suite_version: str
    items: int
    kind: SuiteKind = "exam"


class BenchmarkVersion(Record):
    """One loading of the data set: what a pass meant from then on; published if it has a name."""

    benchmark_version: str
    suites: tuple[SuiteVersion, ...]
    answer_prompt_hash: str
    judge_prompt_hash: str
    protocol: int
    loaded_at: AwareDatetime
    minted_as: str | None = None

    @property
    def coding_suites(self) -> frozenset[str]:
        """The names of its suites of coding tasks."""
        return frozenset(one.suite for one in self.suites if one.kind == "coding")

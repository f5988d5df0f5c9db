"""What is found out about failures: an analyst's diagnosis of each, and where people differ."""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, ConfigDict, Field

from eval_pipeline.records.base import Record, Text
from eval_pipeline.records.model import ModelId
from eval_pipeline.records.prediction import ReplyFormat, ReplyRecord


class Classification(StrEnum):
    """Whose fault a failure is: the model's, the grader's, the task's, or one that is on record."""

    MODEL_FAULT = "MODEL_FAULT"
    OVERLY_STRICT = "OVERLY_STRICT"
    AMBIGUOUS_TASK = "AMBIGUOUS_TASK"
    KNOWN_GAP = "KNOWN_GAP"

    @property
    def is_unfair(self) -> bool:
        """Whether the model can not be blamed for the failure."""
        return self is not Classification.MODEL_FAULT


class Explanation(Record):
    """What the analyst has to reply about one failure; what else it says there is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    failed_step: Text | None
    error: Annotated[Text, Field(min_length=1)]
    classification: Classification
    reasoning: Annotated[Text, Field(min_length=1)]
    model_snippet: Text
    expected_snippet: Text
    # The entry of GAPS.txt that a KNOWN_GAP is about, word for word.
    gap: Text | None = None


class Diagnosis(ReplyRecord):
    """One failure as an analyst sees it, or why there is no explanation (see `reason`).

    It is about one verdict on one reply, in the light of the known faults of the item: where any
    of these is replaced, it no longer stands.
    """

    judge: str
    judge_version: str
    analyst: str
    analyst_version: str
    explanation: Explanation | None
    reason: str = ""
    reply_format: ReplyFormat | None = None
    raw_reply: str | None = None
    launch: str | None = None
    # Of the item's GAPS.txt as the analyst was shown it; None if there was nothing in it.
    gaps_hash: str | None = None

    @property
    def trouble(self) -> str:
        """Return a sentence with the analyst and its error."""
        return f"The analyst {self.analyst}: {self.reason}"


class Reclassification(Record):
    """What a person says a failure is, which wins; of all samples of the item, or of one."""

    run_id: str
    model: ModelId
    suite: str
    item_id: str
    sample: int | None = None
    # None leaves it to the analyst again.
    classification: Classification | None
    note: str
    classified_at: AwareDatetime

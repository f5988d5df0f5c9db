"""What the scores backend of convex-evals keeps, as far as it is needed: fields came and went."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    AliasPath,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    WrapValidator,
)

from eval_pipeline.records.base import Record, Text


def _or_nothing(value: Any, read: Any) -> Any:
    """What is not as expected is as good as not there."""
    try:
        return read(value)
    except ValidationError:
        return None


Moment = Annotated[FiniteFloat, Field(gt=0, lt=1e14)]
"""Milliseconds since 1970."""
Amount = Annotated[Annotated[FiniteFloat, Field(ge=0, lt=1e12)] | None, WrapValidator(_or_nothing)]
Name = Annotated[Text, Field(min_length=1, max_length=200)]


Task = Annotated[Text, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}$")]
"""Category and name of an eval: it becomes the id of an item."""


class Document(Record):
    """One row of one of its tables."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    created: Moment = Field(alias="_creationTime")


class Tokens(Record):
    """What a reply used; the cost is in what the provider said itself."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    sent: Amount = Field(default=None, alias="inputTokens")
    written: Amount = Field(default=None, alias="outputTokens")
    thought: Amount = Field(
        default=None,
        validation_alias=AliasChoices(
            AliasPath("outputTokenDetails", "reasoningTokens"), "reasoningTokens"
        ),
    )
    cached: Amount = Field(
        default=None,
        validation_alias=AliasChoices(
            AliasPath("inputTokenDetails", "cacheReadTokens"), "cachedInputTokens"
        ),
    )
    usd: Amount = Field(default=None, validation_alias=AliasPath("raw", "cost"))


class Status(Record):
    """How something stands; what it says besides depends on that."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    kind: Literal["pending", "running", "completed", "passed", "failed", "skipped"]
    took: Amount = Field(default=None, alias="durationMs")
    generating: Amount = Field(default=None, alias="generationDurationMs")
    reason: Text = Field(default="", alias="failureReason")
    usage: Annotated[Tokens | None, WrapValidator(_or_nothing)] = None


class ModelDocument(Document):
    """A model; older runs name theirs themselves."""

    id: Name = Field(alias="_id")
    slug: Name
    shown: Text = Field(default="", alias="formattedName")


class VersionDocument(Document):
    """A benchmark version: minted, reconstructed, or the one that stands for none."""

    id: Name = Field(alias="_id")
    version: Name
    since: Amount = Field(default=None, alias="effectiveAt")
    evals: Amount = Field(default=None, alias="evalCount")
    provenance: Text = "minted"


class RunDocument(Document):
    """One evaluation of one model."""

    id: Name = Field(alias="_id")
    model_id: Name | None = Field(default=None, alias="modelId")
    model: Name | None = None
    shown: Text = Field(default="", alias="formattedName")
    provider: Text = ""
    planned: tuple[Task, ...] = Field(default=(), alias="plannedEvals", max_length=100_000)
    version: Text | None = Field(default=None, alias="benchmarkVersion")
    status: Status
    experiment: Name | None = None


class EvalDocument(Document):
    """One task in one run."""

    id: Name = Field(alias="_id")
    run_id: Name = Field(alias="runId")
    path: Task = Field(alias="evalPath")
    status: Status
    task: Text | None = None


class StepDocument(Document):
    """One step of grading it."""

    id: Name | None = Field(default=None, alias="_id")
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
_TOLD_BY = {
    "plannedEvals": "runs",
    "runKey": "runs",
    "evalPath": "evals",
    "questionKey": "evals",
    "evalId": "steps",
    "slug": "models",
    "evalCount": "benchmarkVersions",
}
"""A field that only one of the tables has."""


def is_of_questions(values: Mapping[str, Any]) -> bool:
    """Whether it is about multiple choice, which shares the tables and no field that is read."""
    return values.get("kind") == "decision"


def table_of(values: Mapping[str, Any]) -> str | None:
    """Of which table a document is: as it says itself, or as its fields tell."""
    for name in ("_table", "table", "tableName"):
        if isinstance(said := values.get(name), str):
            return said
    return next((table for field, table in _TOLD_BY.items() if field in values), None)

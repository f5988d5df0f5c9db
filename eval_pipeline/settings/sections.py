"""The tables of the settings file, each a record of its settings and their allowed values."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    ValidationInfo,
    field_validator,
    model_validator,
)

from eval_pipeline.records.base import Record
from eval_pipeline.records.coding import Isolation
from eval_pipeline.records.item import SuiteKind
from eval_pipeline.records.model import ModelId
from eval_pipeline.records.run import PlanFilter
from eval_pipeline.settings.gateway import Address, Extra, Name, Override

PACKAGE = Path(__file__).parents[1]


def _a_regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"must be a regular expression ({error})") from None
    return pattern


Pattern = Annotated[str, AfterValidator(_a_regular_expression)]


class Hub(Record):
    """A data set on the Hugging Face hub, pinned to a revision."""

    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    split: Name = "test"
    revision: str = Field(min_length=1)


class Suite(Record):
    """A named set of items: questions in a file, in a checkout or on the hub, or coding tasks."""

    name: Name
    kind: SuiteKind = "exam"
    path: Path | None = None
    hub: Hub | None = None
    cluster: Annotated[str, Field(min_length=1)] | None = None
    toolchain: Name | None = None
    guidelines: Path | None = None
    # A pattern for the ids of the coding tasks that make up the suite.
    only: Pattern = ""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, said: object) -> object:
        """Name coding tasks without a name after their toolchain."""
        if not isinstance(said, dict) or "name" in said or said.get("kind") != "coding":
            return said
        return {**said, "name": said["toolchain"]} if "toolchain" in said else said

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.path is None) == (self.hub is None):
            raise ValueError("must have either `path` or `hub`")
        if self.kind == "coding" and (self.path is None or self.cluster is not None):
            raise ValueError('of kind "coding" has a `path`, and neither `hub` nor `cluster`')
        if self.kind == "exam" and (self.toolchain or self.only):
            raise ValueError('has `toolchain` or `only`: they need kind = "coding"')
        return self


class Selection(Record):
    """The models that are run; the patterns are explained in the README."""

    models: tuple[str, ...] = ()
    exclude_models: tuple[str, ...] = ()
    exclude_providers: tuple[str, ...] = ()


class Plan(PlanFilter):
    """The items asked (the first `max_samples` of each suite), and how often (`samples`)."""

    test_filter: Pattern = ""
    samples: int = Field(default=1, ge=1)


class Judge(Record):
    """The judges of answers to questions: models, and rules before or instead of them."""

    model: ModelId | None = None
    also: tuple[ModelId, ...] = ()
    rules: Literal["off", "first", "only"] = "off"
    num_workers: int = Field(default=20, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    prompt: Path = PACKAGE / "prompts" / "judge.txt"

    @field_validator("also")
    @classmethod
    def _named_once(cls, also: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        named = [info.data.get("model"), *also]
        if twice := [name for name in also if named.count(name) > 1]:
            raise ValueError(f"the judge '{twice[0]}' is named twice")
        return also

    @property
    def models(self) -> tuple[str, ...]:
        """Return the judges that are asked; none where the rules judge alone."""
        if self.rules == "only" or self.model is None:
            return ()
        return (self.model, *self.also)


class Reliability(Record):
    """Checks of the judges: answers that they judge again, and labels by people."""

    answers: int = Field(default=50, ge=0)
    repeats: int = Field(default=2, ge=1)
    labels: Path | None = None


class Analysis(Record):
    """The analyst of failures, and how many it looks into at a time."""

    model: ModelId | None = None
    num_workers: int = Field(default=4, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)


class Concurrency(Record):
    """Two layers: models at a time, and requests at a time per model."""

    max_concurrent_models: int = Field(default=10, ge=1)
    num_workers: int = Field(default=100, ge=1)


Usd = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Budget(Record):
    """Asking stops when this much has been spent, judging included; None means no limit."""

    usd_per_run: Usd | None = None
    usd_per_model: Usd | None = None
    usd_per_day: Usd | None = None


class Requests(Record):
    """Time limits and retries of a single request."""

    timeout_s: float = Field(default=600, gt=0, allow_inf_nan=False)
    attempts: int = Field(default=5, ge=1)
    attempts_when_limited: int = Field(default=20, ge=1)
    first_wait_s: float = Field(default=1, ge=0, allow_inf_nan=False)
    longest_wait_s: float = Field(default=60, ge=0, allow_inf_nan=False)
    total_s: float = Field(default=3600, gt=0, allow_inf_nan=False)
    stop_after_failures: int = Field(default=100, ge=1)


class Automation(Record):
    """Schedules and sensors of Dagster, what they may start, and how backfills run."""

    schedule: str = Field(default="0 */4 * * *", pattern=r"^\S+( +\S+){4}$")
    # These cost money, so they are off by default.
    evaluate: bool = False
    judge: bool = False
    analyse: bool = False
    discover_every_s: int = Field(default=3600, ge=30)
    preflight: bool = True
    backfill: Literal["one_run", "run_per_model"] = "one_run"
    # The address of Dagster's UI, for links in notifications.
    ui_url: Address = "http://127.0.0.1:3000"


class Web(Record):
    """The pages and the API (`evals view`): who may read them, and by which names."""

    # Reading needs no token; writing always needs one.
    public: bool = True
    # Names that browsers reach it by, besides this machine's own.
    hosts: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9.*-]+$")], ...] = ()
    # A score over fewer items than this is called preliminary.
    preliminary_below: int = Field(default=100, ge=0)


class Deployment(Record):
    """A folder of results, with gateways and a budget of its own; None is as for all.

    Production is written to by token, or by CI on one branch.
    """

    production: bool = False
    branch: Name = "main"
    data_dir: Path | None = None
    gateways: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    budget: Budget | None = None
    # The folder of the Dagster instance's dagster.yaml.
    dagster_home: Path | None = None


class Coding(Record):
    """Grading of code: how much at once, in which isolation, and by which reviewer."""

    num_workers: int | None = Field(default=None, ge=1)
    memory_mb: int | None = Field(default=None, ge=256)
    isolation: Isolation = "bwrap"
    # A Convex backend that whole projects are deployed to, and the address of its HTTP actions.
    convex_url: Address | None = None
    convex_site_url: Address | None = None
    reviewer: ModelId | None = None

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Return the model that reviews code, if there is one."""
        return () if self.reviewer is None else (self.reviewer,)


class Experiment(Record):
    """A named variation of how models are asked."""

    temperature: float | None = Field(default=0.0, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    stream: bool = True
    system_prompt: Path = PACKAGE / "prompts" / "answer.txt"
    coding_prompt: Path = PACKAGE / "prompts" / "coding.txt"
    # True for those of the suite, false for none, or the path of a file.
    guidelines: StrictBool | Path = True
    web_search: bool = False
    extra: Extra = {}

    def with_override(self, override: Override) -> Self:
        """Return the experiment with the model's own parameters, which win."""
        limit = self.max_tokens if override.max_tokens is None else override.max_tokens
        both = {**self.extra, **override.extra}
        return self.model_copy(update={"max_tokens": limit, "extra": both})

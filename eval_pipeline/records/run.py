"""The nouns: Item, Model, Run, Prediction, Judgement; one vocabulary for journals and tables."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    TypeAdapter,
)

from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.base import Record
from eval_pipeline.records.coding import CodingTask, GradedCode
from eval_pipeline.records.outcome import Outcome

PROTOCOL = 1
"""Raised when the code changes what a pass means in a way that no prompt or item shows."""


def _no_dots_in_a_row(text: str) -> str:
    if ".." in text:
        raise ValueError("must not have two dots in a row")
    return text


# A model id becomes a partition key and a folder name: `vendor/name`, optionally `:provider`.
ModelId = Annotated[
    str,
    StringConstraints(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+@:~-]*(/[A-Za-z0-9_+@:~-][A-Za-z0-9_.+@:~-]*)+$",
        max_length=120,
    ),
    AfterValidator(_no_dots_in_a_row),
]


def whole_characters(text: str) -> str:
    """Joins halves of a character that were split; a half that stays alone can not be kept."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Text = Annotated[str, AfterValidator(whole_characters)]
"""Text of which a server made every character: what JSON can escape, UTF-8 may not hold."""


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


class Prices(Record):
    """US dollars per token, and per request; None where the gateway does not say."""

    prompt: float | None = Field(default=None, ge=0)
    completion: float | None = Field(default=None, ge=0)
    cached: float | None = Field(default=None, ge=0)
    reasoning: float | None = Field(default=None, ge=0)
    request: float | None = Field(default=None, ge=0)

    @property
    def known(self) -> bool:
        """Whether a cost can be told from them."""
        return self.prompt is not None and self.completion is not None


DialectName = Literal["chat_completions", "responses", "messages"]
"""How a request is written: OpenAI's two ways, or Anthropic's."""


class Model(Record):
    """What can be asked, as its gateway describes it."""

    id: ModelId
    gateway: str
    request_name: str
    vendor: str
    name: str
    provider: str | None = None
    display_name: str
    input_modalities: tuple[str, ...] = ("text",)
    context_length: int | None = None
    max_output_tokens: int | None = None
    prices: Prices = Prices()
    system_role: bool = True
    temperature: bool = True
    json_schema: bool = True
    streaming: bool = True
    web_search: bool = False
    dialect: DialectName = "chat_completions"
    created_at: AwareDatetime | None = None
    simulated: bool = False

    @property
    def sees_images(self) -> bool:
        return "image" in self.input_modalities

    @property
    def reads_text(self) -> bool:
        return "text" in self.input_modalities


class Sighting(Record):
    """A model as its gateway listed it at one moment; `selected` says whether it was to be run.

    `kept_out` says why not, though the settings select it: nobody answered for it. One that is not
    `listed` is as it was before: then the settings no longer had its gateway.
    """

    model: Model
    selected: bool
    kept_out: str | None = None
    listed: bool = True
    seen_at: AwareDatetime


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


def _none_one_or_several(run_ids: object) -> object:
    match run_ids:
        case None:
            return ()
        case str():
            return (run_ids,)
    return run_ids


RunIds = Annotated[tuple[str, ...], BeforeValidator(_none_one_or_several)]
"""Ids of runs; journals from before there could be several name one, or null."""


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
    carry_from: RunIds = ()
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
        return (
            self.model == other.model
            and self.experiment == other.experiment
            and self.benchmark_version == other.benchmark_version
            and self.plan == other.plan
            and self.parameters == other.parameters
            and self.samples == other.samples
        )


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


class Usage(Record):
    """What one call consumed; None where the server did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    cost_estimated: bool = True

    @property
    def tokens(self) -> int | None:
        """Input and output together, as far as the server said."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def plus(self, other: "Usage") -> "Usage":
        """Both together; what only one of them knows counts as it is."""
        names = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "cost_usd")
        sums = {name: _sum(getattr(self, name), getattr(other, name)) for name in names}
        known = [usage.cost_estimated for usage in (self, other) if usage.cost_usd is not None]
        return Usage.model_validate({**sums, "cost_estimated": any(known) or not known})

    def costing(self, usd: float) -> "Usage":
        """The same at a price that is an estimate."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            reasoning_tokens=self.reasoning_tokens,
            cached_tokens=self.cached_tokens,
            cost_usd=usd,
        )


NOTHING_USED = Usage()
FREE = Usage(cost_usd=0.0, cost_estimated=False)


class Prediction(Record):
    """The model's reply to one item, or why there is none."""

    prediction_id: str
    run_id: str
    model: ModelId
    suite: str
    item_id: str
    sample: int = 0
    outcome: Outcome
    answer: str | None = None
    reasoning: str | None = None
    error: str | None = None
    finish_reason: str | None = None
    usage: Usage = Usage()
    latency_s: float | None = None
    first_token_s: float | None = None
    generation_s: float | None = None
    attempts: int
    generation_id: str | None = None
    served_by: str | None = None
    model_reported: str | None = None
    system_fingerprint: str | None = None
    request_hash: str
    carried_from: str | None = None
    finished_at: AwareDatetime

    @property
    def key(self) -> ItemKey:
        return ItemKey(self.suite, self.item_id)

    @property
    def trouble(self) -> str:
        """Whom we asked in vain and what they said."""
        return f"{self.model}: {self.error or self.outcome}"


ReplyFormat = Literal["json_schema", "tool", "text"]
"""What holds a judge to the form of its reply: a schema, a function it has to call, or its word."""


class Judgement(Record):
    """The verdict on one prediction; `score` is None when nobody could tell (see `reason`)."""

    prediction_id: str
    run_id: str
    model: ModelId
    suite: str
    item_id: str
    sample: int = 0
    judge: str
    judge_version: str
    prompt_hash: str | None = None
    outcome: Outcome
    score: float | None = Field(ge=0, le=1)
    reason: str
    extracted_answer: str | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    graded_by: str | None = None
    reply_format: ReplyFormat | None = None
    raw_reply: str | None = None
    code: GradedCode | None = None
    usage: Usage = Usage()
    latency_s: float | None = None
    attempts: int = 0
    launch: str | None = None
    carried_from: str | None = None
    finished_at: AwareDatetime

    @property
    def trouble(self) -> str:
        """Whom we asked in vain and what they said."""
        return f"The judge {self.judge}: {self.reason}"


class Repeat(Judgement):
    """A judge's verdict on a reply that it has judged before; only its reliability rests on it."""

    repeat: int = Field(ge=1)


class Label(Record):
    """Whether a person finds a reply right; what is None fits whatever a reply has there."""

    line: int
    item_id: str
    correct: bool
    suite: str | None = None
    model: str | None = None
    run_id: str | None = None
    sample: int | None = None
    labeller: str | None = None


def _sum(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other


def now() -> datetime:
    return datetime.now(UTC)


class Mode(StrEnum):
    """What a materialization does with the work that is there already."""

    AUTO = "auto"
    RESUME = "resume"
    FIX = "fix"
    FRESH = "fresh"

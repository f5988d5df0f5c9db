"""Records of predictions and judgements, and of what they used."""

from typing import Literal

from pydantic import AwareDatetime, Field

from eval_pipeline.records.base import Record
from eval_pipeline.records.coding import GradedCode
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import ModelId
from eval_pipeline.records.outcome import Outcome


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
        """Return the sum of both; where only one of them has a value, that counts as it is."""
        names = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens", "cost_usd")
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in names}
        sums = {
            name: None if pair == (None, None) else sum(filter(None, pair))
            for name, pair in pairs.items()
        }
        estimated = [usage.cost_estimated for usage in (self, other) if usage.cost_usd is not None]
        return Usage.model_validate({**sums, "cost_estimated": any(estimated) or not estimated})


NOTHING_USED = Usage()
FREE = Usage(cost_usd=0.0, cost_estimated=False)


class ReplyRecord(Record):
    """The fields of every record about one reply of a run: which reply, how asking ended, its use.

    `attempts` counts requests; `carried_from` is the run whose record was reused.
    """

    prediction_id: str
    run_id: str
    model: ModelId
    suite: str
    item_id: str
    sample: int = 0
    outcome: Outcome
    usage: Usage = Usage()
    latency_s: float | None = None
    attempts: int = 0
    carried_from: str | None = None
    finished_at: AwareDatetime

    @property
    def key(self) -> ItemKey:
        return ItemKey(self.suite, self.item_id)


class Prediction(ReplyRecord):
    """The model's reply to one item, or why there is none."""

    attempts: int
    answer: str | None = None
    reasoning: str | None = None
    error: str | None = None
    finish_reason: str | None = None
    first_token_s: float | None = None
    generation_s: float | None = None
    generation_id: str | None = None
    served_by: str | None = None
    model_reported: str | None = None
    system_fingerprint: str | None = None
    request_hash: str

    @property
    def trouble(self) -> str:
        """Return the model's id and its error, or its outcome if there is none."""
        return f"{self.model}: {self.error or self.outcome}"


ReplyFormat = Literal["json_schema", "tool", "text"]
"""How a judge's reply is held to its form: by a schema, a function it has to call, or its word."""


class Judgement(ReplyRecord):
    """The verdict on one prediction; `score` is None when nobody could tell (see `reason`)."""

    judge: str
    judge_version: str
    prompt_hash: str | None = None
    score: float | None = Field(ge=0, le=1)
    reason: str
    extracted_answer: str | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    graded_by: str | None = None
    reply_format: ReplyFormat | None = None
    raw_reply: str | None = None
    code: GradedCode | None = None
    launch: str | None = None

    @property
    def trouble(self) -> str:
        """Return a sentence with the judge and its error."""
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

"""Question, reference and answer to a judge model; its reply to a verdict, or why there is none."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import ConfigDict, Field, JsonValue, field_validator

from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.structured import ReplySchema, form_request, read_json
from eval_pipeline.records.base import Record, Text
from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.records.model import Model
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Prediction, ReplyFormat

_PERCENTAGE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%?")
_NOTHING = ("none", "null")


class Verdict(Record):
    """What the judge has to reply, as JSON; what else it says there is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    extracted_answer: Text | None
    reasoning: Text
    correct: bool
    confidence: float | None = Field(ge=0, le=100, allow_inf_nan=False)

    @field_validator("correct", mode="before")
    @classmethod
    def _yes_or_no(cls, said: object) -> bool:
        """A truth value, or one of the two words of the published prompt; nothing else."""
        if isinstance(said, bool):
            return said
        word = said.strip().casefold() if isinstance(said, str) else None
        if word not in ("yes", "no"):
            raise ValueError("must be true, false, yes or no")
        return word == "yes"

    @field_validator("confidence", mode="before")
    @classmethod
    def _percentage(cls, said: object) -> object:
        """A number, with or without a percent sign; None only if the judge says so."""
        if isinstance(said, bool):
            raise ValueError("must be a number")
        if not isinstance(said, str):
            return said
        word = said.strip()
        if word.casefold() in _NOTHING:
            return None
        if not (stated := _PERCENTAGE.fullmatch(word)):
            raise ValueError("must be a number from 0 to 100")
        return float(stated[1])


SCHEMA: dict[str, JsonValue] = {
    "name": "verdict",
    "strict": True,
    "schema": {
        "type": "object",
        "properties": {
            "extracted_answer": {"type": ["string", "null"]},
            "reasoning": {"type": "string"},
            "correct": {"type": "boolean"},
            "confidence": {"type": ["number", "null"]},
        },
        "required": ["extracted_answer", "reasoning", "correct", "confidence"],
        "additionalProperties": False,
    },
}

# How the published prompt of Humanity's Last Exam calls what we call the extracted answer.
PUBLISHED_NAME = "extracted_final_answer"
_FIELDS = (PUBLISHED_NAME, "reasoning", "correct", "confidence")
_FIELD_LINE = re.compile(
    rf"^[ \t]*(?:\*\*)?({'|'.join(_FIELDS)})(?:\*\*)?[ \t]*:(?:\*\*)?", re.MULTILINE
)


def read_verdict(text: str) -> Verdict | None:
    """The verdict that a reply is, in JSON or in the lines of the published prompt; else None."""
    text = text.strip()
    try:
        fields = _from_lines(text) or read_json(text)
        return Verdict.model_validate(_in_our_words(fields))
    except (ValueError, RecursionError):
        return None


def _from_lines(text: str) -> dict[str, str] | None:
    """Each field once, at the start of a line, and nothing before the first of them."""
    before, *said = _FIELD_LINE.split(text)
    names, values = said[::2], said[1::2]
    if before.strip() or sorted(names) != sorted(_FIELDS):
        return None
    return {
        name: _bare(value) if name in ("correct", "confidence") else value.strip()
        for name, value in zip(names, values, strict=True)
    }


def _bare(value: str) -> str:
    return value.strip().removesuffix(".").removeprefix("**").removesuffix("**").strip()


def _in_our_words(fields: Any) -> Any:
    if not isinstance(fields, dict):
        return fields
    if _is_ambiguous(fields.get("confidence")):
        fields = {**fields, "confidence": None}
    if PUBLISHED_NAME not in fields:
        return fields
    answer = fields[PUBLISHED_NAME]
    missing = isinstance(answer, str) and answer.strip(" '\"").casefold() in _NOTHING
    return {**fields, "extracted_answer": None if missing else answer}


def _is_ambiguous(confidence: object) -> bool:
    """Whether it may be a share as well as a percentage: 0.9 could mean 90 %, 0.9 % could not."""
    if isinstance(confidence, str):
        word = confidence.strip()
        stated = _PERCENTAGE.fullmatch(word) and not word.endswith("%")
        return bool(stated) and 0 < float(word) < 1
    return isinstance(confidence, float) and 0 < confidence < 1


INSTRUCTION = (
    "Reply with one JSON object and nothing else. Its keys: extracted_answer (text or null), "
    "reasoning (text), correct (true or false), confidence (a number from 0 to 100, or null)."
)
"""What is added to a prompt that does not say how to reply, where nothing else enforces it."""
_SAYS_HOW_TO_REPLY = re.compile(rf"\bjson\b|\b{PUBLISHED_NAME}\b", re.IGNORECASE)
VERDICT = ReplySchema("judge", "verdict", read_verdict)


def judge_request(
    question: ExamQuestion,
    answer: str,
    judge: Model,
    prompt: str,
    *,
    max_tokens: int | None,
    reply_format: ReplyFormat,
) -> ChatRequest:
    """The judge sees question, reference and answer, and nothing of the model."""
    reference = question.answer
    values = {"question": question.question, "reference": reference, "correct_answer": reference}
    filled = fill(prompt, {**values, "response": answer})
    return verdict_request(judge, prompt, filled, max_tokens, reply_format)


def verdict_request(
    judge: Model, prompt: str, filled: str, max_tokens: int | None, reply_format: ReplyFormat
) -> ChatRequest:
    """Asks for a verdict by a prompt that has been filled in."""
    if reply_format == "text" and not _SAYS_HOW_TO_REPLY.search(prompt):
        filled = f"{filled}\n\n{INSTRUCTION}"
    return form_request(judge, filled, SCHEMA, max_tokens=max_tokens, reply_format=reply_format)


def own_failing(prediction: Prediction) -> str | None:
    """Why there is nothing to judge and the score is 0: the model's doing, not the network's."""
    match prediction.outcome:
        case Outcome.REFUSED:
            return "The model refused to answer."
        case Outcome.CONTENT_FILTER:
            return "The answer was withheld by a content filter."
        case Outcome.TRUNCATED_THINKING:
            return "The token limit was reached while the model was thinking."
        case Outcome.TRUNCATED if not (prediction.answer or "").strip():
            return "The token limit was reached before any answer."
        case _:
            return None


_TAG = re.compile(r"</?([A-Za-z][\w.-]*)[^<>]*>")


def check_prompt(prompt: str) -> str | None:
    """What is wrong with a judge prompt, or None."""
    if "{response}" not in prompt:
        return "has no {response}, so the judge would not see the answer"
    # The published prompt of Humanity's Last Exam has the reference as {correct_answer}.
    if "{reference}" not in prompt and "{correct_answer}" not in prompt:
        return "has no {reference} (or {correct_answer}), so the judge would not know what is right"
    return None


def fill(template: str, values: Mapping[str, str]) -> str:
    """Puts the values in at once, so that a placeholder inside an answer stays as it is."""
    tags = _tags_of(template)
    harmless = {name: tags.sub("&lt;", value) for name, value in values.items()}
    placeholder = re.compile("|".join(rf"\{{{name}\}}" for name in values))
    return placeholder.sub(lambda found: harmless[found[0][1:-1]], template)


@cache
def _tags_of(template: str) -> re.Pattern[str]:
    """What begins a tag of the template: in an answer it would end the answer and begin another."""
    names = "|".join(sorted(map(re.escape, set(_TAG.findall(template)))))
    if not names:
        return re.compile(r"(?!)")
    # A space after < is also how one thing is said to be less than another.
    return re.compile(rf"<(?=(?:\s*/\s*)?(?:{names})\b|\s+(?:{names})\s*>)", re.IGNORECASE)

"""A judge's reply as a verdict: read strictly, for a guess at what it meant would be no verdict."""

import re
from typing import Any

from pydantic import ConfigDict, Field, JsonValue, field_validator

from eval_pipeline.gateways.structured import read_json
from eval_pipeline.record import Record
from eval_pipeline.records import Text

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

"""Question, reference and answer to a judge model; its reply to a verdict, or why there is none."""

import re
from collections.abc import Mapping
from functools import cache

from eval_pipeline.exam.verdict import PUBLISHED_NAME, SCHEMA, Verdict, read_verdict
from eval_pipeline.gateways.chat import ChatReply, ChatRequest
from eval_pipeline.gateways.structured import (
    Ask,
    Form,
    ReplyFormats,
    Write,
    ask_for,
    form_request,
    formats_of,
)
from eval_pipeline.outcomes import Outcome
from eval_pipeline.record import Record
from eval_pipeline.records import ExamQuestion, Model, Prediction, ReplyFormat, Usage

__all__ = [
    "INSTRUCTION",
    "SCHEMA",
    "JudgedAnswer",
    "ReplyFormats",
    "Verdict",
    "check_prompt",
    "fill",
    "formats_of",
    "judge_answer",
    "judge_request",
    "own_failing",
    "verdict_request",
]

INSTRUCTION = (
    "Reply with one JSON object and nothing else. Its keys: extracted_answer (text or null), "
    "reasoning (text), correct (true or false), confidence (a number from 0 to 100, or null)."
)
"""What is added to a prompt that does not say how to reply, where nothing else enforces it."""
_SAYS_HOW_TO_REPLY = re.compile(rf"\bjson\b|\b{PUBLISHED_NAME}\b", re.IGNORECASE)
_VERDICT = Form("judge", "verdict", read_verdict)


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


class JudgedAnswer(Record):
    """A verdict, or the error that stands in its place; always with the call it came from."""

    verdict: Verdict | None
    outcome: Outcome
    error: str | None
    reply: ChatReply | None
    reply_format: ReplyFormat
    attempts: int
    usage: Usage


async def judge_answer(ask: Ask, write: Write, formats: ReplyFormats) -> JudgedAnswer:
    """Asks in one format after the other for a verdict; a reply that is none is kept as a failure.

    There is always a second reply to hope for, in the next format or else in the same.
    """
    given = await ask_for(_VERDICT, ask, write, formats)
    return JudgedAnswer(
        verdict=given.value,
        outcome=given.outcome,
        error=given.error,
        reply=given.reply,
        reply_format=given.reply_format,
        attempts=given.attempts,
        usage=given.usage,
    )


def check_prompt(prompt: str) -> str | None:
    """What is wrong with a judge prompt, or None."""
    named = set(_PLACEHOLDER.findall(prompt))
    if "response" not in named:
        return "has no {response}, so the judge would not see the answer"
    if not named & {"reference", "correct_answer"}:
        return "has no {reference} (or {correct_answer}), so the judge would not know what is right"
    return None


# {correct_answer} is how the published prompt of Humanity's Last Exam calls the reference.
_PLACEHOLDER = re.compile(r"\{(question|reference|correct_answer|response)\}")


_TAG = re.compile(r"</?([A-Za-z][\w.-]*)[^<>]*>")


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

"""Question, reference and answer to a judge model; its reply to a verdict, or why there is none."""

import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress

from pydantic import ConfigDict, Field, JsonValue

from eval_pipeline.providers.chat import Asked, ChatReply, ChatRequest, ProviderError
from eval_pipeline.providers.pace import Halted
from eval_pipeline.records import ExamQuestion, Model, Outcome, Prediction, Record, Text, Usage


class Verdict(Record):
    """What the judge has to reply, as JSON; what else it says there is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    extracted_answer: Text | None
    reasoning: Text
    correct: bool
    confidence: float | None = Field(ge=0, le=100)


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


def judge_request(
    question: ExamQuestion, answer: str, judge: Model, prompt: str, max_tokens: int | None
) -> ChatRequest:
    """The judge sees question, reference and answer, and nothing of the model."""
    filled = _fill(prompt, question=question.question, reference=question.answer, response=answer)
    return ChatRequest(
        model=judge.request_name,
        messages=({"role": "user", "content": filled},),
        temperature=0 if judge.temperature else None,
        max_tokens=max_tokens,
        stream=False,
        json_schema=SCHEMA if judge.json_schema else None,
    )


def own_failing(prediction: Prediction) -> str | None:
    """Why there is nothing to judge and the score is 0: the model's doing, not the network's."""
    match prediction.outcome:
        case Outcome.REFUSED:
            return "The model refused to answer."
        case Outcome.CONTENT_FILTER:
            return "The answer was withheld by a content filter."
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
    attempts: int
    usage: Usage


async def judge_answer(
    ask: Callable[[ChatRequest], Awaitable[Asked]], request: ChatRequest
) -> JudgedAnswer:
    """Asks the judge; a reply that is no verdict is asked for once more, then kept as a failure."""
    asked = await ask(request)
    verdict = _verdict(asked)
    attempts, usage = asked.attempts, asked.usage
    if asked.reply is not None and verdict is None:
        with suppress(Halted):  # what the first reply cost is to be kept
            asked = await ask(request)
            verdict = _verdict(asked)
            attempts, usage = attempts + asked.attempts, usage.plus(asked.usage)
    if asked.reply is None:
        error = asked.error or ProviderError(Outcome.EMPTY, "No reply.")
        outcome, reason = error.outcome, str(error)
    elif verdict is None:
        outcome, reason = (
            Outcome.JUDGE_UNPARSABLE,
            "The judge's reply is not the JSON it was asked for.",
        )
    else:
        outcome, reason = Outcome.OK, None
    return JudgedAnswer(
        verdict=verdict,
        outcome=outcome,
        error=reason,
        reply=asked.reply,
        attempts=attempts,
        usage=usage,
    )


def _verdict(asked: Asked) -> Verdict | None:
    if asked.reply is None:
        return None
    text = asked.reply.text.strip()
    fenced = re.fullmatch(r"```(?:json)?\s*(\{.*\})\s*```", text, re.DOTALL | re.IGNORECASE)
    try:
        return Verdict.model_validate(json.loads(fenced[1] if fenced else text), strict=False)
    except (ValueError, RecursionError):
        return None


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


def _fill(template: str, **values: str) -> str:
    """Puts the values in at once, so that a placeholder inside an answer stays as it is."""
    values["correct_answer"] = values["reference"]
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)

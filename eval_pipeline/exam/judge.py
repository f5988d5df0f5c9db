"""Question, reference and answer to a judge model; its reply to a verdict, or why there is none."""

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from eval_pipeline.exam.verdict import PUBLISHED_NAME, SCHEMA, Verdict, read_verdict
from eval_pipeline.providers.chat import Asked, ChatReply, ChatRequest, ProviderError
from eval_pipeline.providers.pace import Halted
from eval_pipeline.records import (
    ExamQuestion,
    Model,
    Outcome,
    Prediction,
    Record,
    ReplyFormat,
    Usage,
)

__all__ = [
    "INSTRUCTION",
    "SCHEMA",
    "JudgedAnswer",
    "ReplyFormats",
    "Verdict",
    "check_prompt",
    "formats_of",
    "judge_answer",
    "judge_request",
    "own_failing",
]

INSTRUCTION = (
    "Reply with one JSON object and nothing else. Its keys: extracted_answer (text or null), "
    "reasoning (text), correct (true or false), confidence (a number from 0 to 100, or null)."
)
"""What is added to a prompt that does not say how to reply, where nothing else enforces it."""
_SAYS_HOW_TO_REPLY = re.compile(rf"\bjson\b|\b{PUBLISHED_NAME}\b", re.IGNORECASE)
# How a server says that it does not take a format; a gateway may find nobody who takes tools.
_REFUSALS: dict[ReplyFormat, frozenset[Outcome]] = {
    "json_schema": frozenset({Outcome.BAD_REQUEST}),
    "tool": frozenset({Outcome.BAD_REQUEST, Outcome.UNKNOWN_MODEL}),
    "text": frozenset(),
}


def formats_of(judge: Model) -> tuple[ReplyFormat, ...]:
    """The formats in which a judge may be asked to reply, the best one first."""
    if not judge.json_schema:
        return ("text",)
    # The messages API knows a schema only as that of a tool.
    return ("tool", "text") if judge.dialect == "messages" else ("json_schema", "tool", "text")


@dataclass
class ReplyFormats:
    """The formats to ask one judge for, without those that did not work while a later one did."""

    formats: tuple[ReplyFormat, ...]
    _best: int | None = None

    def to_try(self) -> tuple[ReplyFormat, ...]:
        """From the best that has worked; where none has, all of them."""
        return self.formats[self._best or 0 :]

    def worked(self, reply_format: ReplyFormat) -> None:
        """The server took it; a refusal of something better may have been about one answer only."""
        place = self.formats.index(reply_format)
        self._best = place if self._best is None else min(place, self._best)


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
    filled = _fill(prompt, question=question.question, reference=question.answer, response=answer)
    if reply_format == "text" and not _SAYS_HOW_TO_REPLY.search(prompt):
        filled = f"{filled}\n\n{INSTRUCTION}"
    return ChatRequest(
        model=judge.request_name,
        messages=({"role": "user", "content": filled},),
        temperature=0 if judge.temperature else None,
        max_tokens=max_tokens,
        stream=False,
        json_schema=SCHEMA if reply_format == "json_schema" else None,
        tool=SCHEMA if reply_format == "tool" else None,
    )


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


Ask = Callable[[ChatRequest], Awaitable[Asked]]
Write = Callable[[ReplyFormat], ChatRequest]


async def judge_answer(ask: Ask, write: Write, formats: ReplyFormats) -> JudgedAnswer:
    """Asks the judge; a reply that is no verdict is asked for once more, then kept as a failure."""
    asked, reply_format = await _ask(ask, write, formats)
    verdict = _verdict(asked)
    attempts, usage = asked.attempts, asked.usage
    if asked.reply is not None and verdict is None:
        with suppress(Halted):  # what the first reply cost is to be kept
            asked, reply_format = await _ask(ask, write, formats)
            verdict = _verdict(asked)
            attempts, usage = attempts + asked.attempts, usage.plus(asked.usage)
    error = None if verdict else _why_none(asked)
    return JudgedAnswer(
        verdict=verdict,
        outcome=error.outcome if error else Outcome.OK,
        error=str(error) if error else None,
        reply=asked.reply,
        reply_format=reply_format,
        attempts=attempts,
        usage=usage,
    )


def _why_none(asked: Asked) -> ProviderError:
    if asked.reply is None:
        return asked.error or ProviderError(Outcome.EMPTY, "No reply.")
    said = "The judge's reply is not the verdict it was asked for."
    return ProviderError(Outcome.JUDGE_UNPARSABLE, said)


class _Told(NamedTuple):
    """What came of asking, refused formats counted in, and the format that was asked for last."""

    asked: Asked
    reply_format: ReplyFormat


async def _ask(ask: Ask, write: Write, formats: ReplyFormats) -> _Told:
    """Asks the same judge in one format after the other until the server takes one."""
    first, *others = formats.to_try()
    told = _Told(await ask(write(first)), first)
    for other in others:
        if not _is_refused(told):
            break
        asked, before = await ask(write(other)), told.asked
        attempts, usage = before.attempts + asked.attempts, before.usage.plus(asked.usage)
        told = _Told(Asked(asked.reply, asked.error, attempts, usage), other)
    if told.asked.reply is not None:
        formats.worked(told.reply_format)
    return told


def _is_refused(told: _Told) -> bool:
    error = told.asked.error
    return error is not None and error.outcome in _REFUSALS[told.reply_format]


def _verdict(asked: Asked) -> Verdict | None:
    return None if asked.reply is None else read_verdict(asked.reply.text)


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

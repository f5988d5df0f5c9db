"""Question, reference and answer to a judge model; its reply to a verdict, or why there is none."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import NamedTuple

from eval_pipeline.exam.verdict import PUBLISHED_NAME, SCHEMA, Verdict, read_verdict
from eval_pipeline.outcomes import Outcome
from eval_pipeline.providers.chat import Asked, ChatReply, ChatRequest, ProviderError
from eval_pipeline.providers.pace import Halted
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
QUOTED = 100
"""Characters of a reply that can not be read, to be told with the failure."""
_SAYS_HOW_TO_REPLY = re.compile(rf"\bjson\b|\b{PUBLISHED_NAME}\b", re.IGNORECASE)
# How a server says that it does not take a format; a gateway may find nobody who takes tools.
_REFUSALS: dict[ReplyFormat, frozenset[Outcome]] = {
    "json_schema": frozenset({Outcome.BAD_REQUEST}),
    "tool": frozenset({Outcome.BAD_REQUEST, Outcome.UNKNOWN_MODEL}),
    "text": frozenset(),
}
# A format that was passed over in silence shows in such replies; others would be the same in any.
_FORMLESS = frozenset({Outcome.OK, Outcome.TRUNCATED})
_LEAST_REPLIES = 2
_WHY_NO_VERDICT = {
    Outcome.TRUNCATED: "The judge's reply was cut off at the token limit.",
    Outcome.TRUNCATED_THINKING: "The token limit was reached while the judge was thinking.",
    Outcome.REFUSED: "The judge refused to reply.",
    Outcome.CONTENT_FILTER: "The judge's reply was withheld by a content filter.",
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
        """It gave a verdict; that something better did not may have been about one answer only."""
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


class _Told(NamedTuple):
    """What came of asking in one format."""

    asked: Asked
    reply_format: ReplyFormat
    verdict: Verdict | None

    @property
    def is_refused(self) -> bool:
        """Whether the server does not take the format."""
        error = self.asked.error
        return error is not None and error.outcome in _REFUSALS[self.reply_format]

    @property
    def is_formless(self) -> bool:
        """Whether the format may be to blame that there is no verdict."""
        return self.asked.reply is not None and self.asked.outcome in _FORMLESS


async def judge_answer(ask: Ask, write: Write, formats: ReplyFormats) -> JudgedAnswer:
    """Asks in one format after the other for a verdict; a reply that is none is kept as a failure.

    There is always a second reply to hope for, in the next format or else in the same.
    """
    told: list[_Told] = []
    to_try = formats.to_try()
    wanted: ReplyFormat | None = to_try[0]
    try:
        while wanted is not None:
            asked = await ask(write(wanted))
            told.append(_Told(asked, wanted, _verdict(asked)))
            wanted = _next_format(told, to_try)
    except Halted:
        if not _replies(told):
            raise  # what a reply cost is to be kept; where there is none, nothing is
    if told[-1].verdict is not None:
        formats.worked(told[-1].reply_format)
    return _judged(told)


def _verdict(asked: Asked) -> Verdict | None:
    """Only a whole reply is read: what was cut off may look like a verdict and be another one."""
    if asked.reply is None or asked.outcome is not Outcome.OK:
        return None
    return read_verdict(asked.reply.text)


def _replies(told: Sequence[_Told]) -> list[_Told]:
    return [one for one in told if one.asked.reply is not None]


def _next_format(told: Sequence[_Told], to_try: Sequence[ReplyFormat]) -> ReplyFormat | None:
    """In which format to ask once more, if at all."""
    last = told[-1]
    if last.verdict is not None:
        return None
    others = to_try[to_try.index(last.reply_format) + 1 :]
    if others and (last.is_refused or last.is_formless):
        return others[0]
    again = last.asked.reply is not None and len(_replies(told)) < _LEAST_REPLIES
    return last.reply_format if again else None


def _judged(told: Sequence[_Told]) -> JudgedAnswer:
    """The verdict, or what came of asking last; with the last reply that there was."""
    last = [one for one in told if not one.is_refused][-1:] or told[-1:]
    heard = (_replies(told) or last)[-1]
    error = None if heard.verdict else _why_none(last[0].asked)
    return JudgedAnswer(
        verdict=heard.verdict,
        outcome=error.outcome if error else Outcome.OK,
        error=str(error) if error else None,
        reply=heard.asked.reply,
        reply_format=heard.reply_format,
        attempts=sum(one.asked.attempts for one in told),
        usage=reduce(Usage.plus, (one.asked.usage for one in told)),
    )


def _why_none(asked: Asked) -> ProviderError:
    if asked.reply is None:
        return asked.error or ProviderError(Outcome.EMPTY, "No reply.")
    begins = " ".join(asked.reply.text.split())[:QUOTED]
    unread = f"The judge's reply is not the verdict it was asked for. It begins: {begins}"
    said = _WHY_NO_VERDICT.get(asked.outcome, unread)
    return ProviderError(Outcome.JUDGE_UNPARSABLE, said)


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

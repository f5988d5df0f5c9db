"""In which format a judge is asked to reply, and what is done where a server refuses it."""

from typing import Any

import pytest

from eval_pipeline.gateways.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.structured import ReplyFormats, formats_of
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import ReplyFormat, Usage
from eval_pipeline.suites.exam.judge import INSTRUCTION
from eval_pipeline_tests.builders import a_model
from eval_pipeline_tests.test_exam_judge import JUDGE, REFUSED, judged
from eval_pipeline_tests.test_exam_verdict import a_verdict

NOBODY = ProviderError(Outcome.UNKNOWN_MODEL, "HTTP 404: nobody takes tools.")


def held_to(request: ChatRequest) -> ReplyFormat:
    """What the request says about the form of its reply."""
    if request.json_schema is not None:
        return "json_schema"
    return "text" if request.tool is None else "tool"


@pytest.mark.parametrize(
    ("changes", "formats"),
    [
        ({}, ("json_schema", "tool", "text")),
        ({"dialect": "responses"}, ("json_schema", "tool", "text")),
        ({"dialect": "messages"}, ("tool", "text")),
        ({"json_schema": False}, ("text",)),
        ({"json_schema": False, "dialect": "messages"}, ("text",)),
    ],
)
def test_the_best_format_that_a_judge_is_known_to_take_comes_first(
    changes: dict[str, Any], formats: tuple[str, ...]
) -> None:
    assert formats_of(a_model(**changes)) == formats


@pytest.mark.parametrize(
    ("says", "asked_for", "reply_format", "outcome"),
    [
        ([a_verdict()], ["json_schema"], "json_schema", Outcome.OK),
        ([REFUSED, a_verdict()], ["json_schema", "tool"], "tool", Outcome.OK),
        ([REFUSED, REFUSED, a_verdict()], ["json_schema", "tool", "text"], "text", Outcome.OK),
        ([REFUSED, NOBODY, a_verdict()], ["json_schema", "tool", "text"], "text", Outcome.OK),
        ([REFUSED] * 3, ["json_schema", "tool", "text"], "text", Outcome.BAD_REQUEST),
        ([NOBODY], ["json_schema"], "json_schema", Outcome.UNKNOWN_MODEL),
    ],
)
def test_a_format_that_is_refused_gives_way_to_the_next(
    says: list[str | ProviderError], asked_for: list[str], reply_format: str, outcome: Outcome
) -> None:
    result, provider = judged(*says)

    assert [held_to(request) for request in provider.asked] == asked_for
    assert (result.reply_format, result.outcome) == (reply_format, outcome)
    assert result.attempts == len(says)
    assert {request.model for request in provider.asked} == {JUDGE.request_name}


def test_a_refusal_in_every_format_is_told_in_the_servers_words() -> None:
    last = ProviderError(Outcome.BAD_REQUEST, "HTTP 400: the last word.")

    result, _ = judged(REFUSED, REFUSED, last)

    assert (result.value, result.error) == (None, "HTTP 400: the last word.")


def test_what_worked_is_remembered() -> None:
    formats = ReplyFormats(formats_of(JUDGE))
    judged(REFUSED, a_verdict(), formats=formats)

    result, provider = judged("prose", a_verdict(), formats=formats)
    _, later = judged(a_verdict(), formats=formats)

    assert [held_to(request) for request in provider.asked] == ["tool", "text"]
    assert (result.outcome, result.attempts) == (Outcome.OK, 2)
    assert [held_to(request) for request in later.asked] == ["tool"]


CUT = ChatReply(text="So I think", latency_s=0, finish_reason="length")
WITHHELD = ChatReply(text="So I", latency_s=0, finish_reason="content_filter")


@pytest.mark.parametrize(
    ("says", "asked_for"),
    [
        (["prose"], ["json_schema", "tool"]),
        (["prose", "prose"], ["json_schema", "tool", "text"]),
        (["prose", REFUSED], ["json_schema", "tool", "text"]),
        (["prose", NOBODY], ["json_schema", "tool", "text"]),
        ([REFUSED, "prose"], ["json_schema", "tool", "text"]),
        ([CUT], ["json_schema", "tool"]),
        ([WITHHELD], ["json_schema", "json_schema"]),
    ],
)
def test_a_format_that_is_passed_over_in_silence_gives_way_to_the_next_for_good(
    says: list[str | ChatReply | ProviderError], asked_for: list[str]
) -> None:
    formats = ReplyFormats(formats_of(JUDGE))

    result, provider = judged(*says, a_verdict(), formats=formats)
    _, later = judged(a_verdict(), formats=formats)

    assert [held_to(request) for request in provider.asked] == asked_for
    assert (result.reply_format, result.outcome) == (asked_for[-1], Outcome.OK)
    assert [held_to(request) for request in later.asked] == asked_for[-1:]
    told_how = [INSTRUCTION in str(request.messages[0]["content"]) for request in provider.asked]
    assert told_how == [one == "text" for one in asked_for]


def test_one_reply_that_is_no_verdict_does_not_take_the_better_format_from_the_others() -> None:
    formats = ReplyFormats(formats_of(JUDGE))
    judged(a_verdict(), formats=formats)
    judged("prose", "prose", a_verdict(), formats=formats)

    _, provider = judged(a_verdict(), formats=formats)

    assert [held_to(request) for request in provider.asked] == ["json_schema"]


def test_where_no_reply_is_a_verdict_no_format_is_remembered() -> None:
    formats = ReplyFormats(formats_of(JUDGE))
    judged("prose", "prose", "prose", formats=formats)

    _, provider = judged(a_verdict(), formats=formats)

    assert [held_to(request) for request in provider.asked] == ["json_schema"]


def test_one_refused_answer_does_not_take_the_better_format_from_the_others() -> None:
    formats = ReplyFormats(formats_of(JUDGE))
    judged(a_verdict(), formats=formats)
    judged(REFUSED, REFUSED, a_verdict(), formats=formats)

    _, provider = judged(a_verdict(), formats=formats)

    assert [held_to(request) for request in provider.asked] == ["json_schema"]


def test_what_nobody_took_is_tried_again_with_the_next_answer() -> None:
    formats = ReplyFormats(formats_of(JUDGE))
    judged(REFUSED, REFUSED, REFUSED, formats=formats)

    _, provider = judged(a_verdict(), formats=formats)

    assert [held_to(request) for request in provider.asked] == ["json_schema"]


def test_all_that_was_asked_is_paid_for() -> None:
    def costing(text: str, usd: float) -> ChatReply:
        return ChatReply(text=text, latency_s=0, usage=Usage(cost_usd=usd, input_tokens=10))

    result, _ = judged(REFUSED, costing("prose", 0.25), costing(a_verdict(), 0.5))

    assert (result.attempts, result.usage.cost_usd, result.usage.input_tokens) == (3, 0.75, 20)

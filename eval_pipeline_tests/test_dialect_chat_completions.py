"""Chat completions: what is sent, and what is made of replies, streams and everything else."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.dialects.base import ReplyBuilder
from eval_pipeline.gateways.pool import DIALECTS
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Usage
from eval_pipeline_tests.any_json import read, usage_values

CHAT = DIALECTS["chat_completions"]
MESSAGES: tuple[dict[str, JsonValue], ...] = ({"role": "user", "content": "6 times 7?"},)


def a_request(**changes: Any) -> ChatRequest:
    return replace(ChatRequest("maker/one", MESSAGES), **changes)


def chunk(delta: object, finish: object = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": finish}], **more}


def whole(message: object, finish: object = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish}], **more}


def streamed(*events: dict[str, Any]) -> ReplyBuilder:
    collected = CHAT.collect(0.0, str)
    for event in events:
        collected.add_event(event)
    return collected


def reply_to(whole_reply: dict[str, Any]) -> ChatReply:
    collected = CHAT.collect(0.0, str)
    collected.add_whole(whole_reply)
    return collected.reply(str)


def test_only_what_was_asked_for_is_sent() -> None:
    plain = CHAT.body(a_request(stream=False))
    full = CHAT.body(a_request(temperature=0, max_tokens=7, json_schema={"name": "verdict"}))

    assert plain == {"model": "maker/one", "messages": list(MESSAGES)}
    assert {name: value for name, value in full.items() if name not in plain} == {
        "temperature": 0,
        "max_tokens": 7,
        "response_format": {"type": "json_schema", "json_schema": {"name": "verdict"}},
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_function_that_has_to_be_called_is_offered_and_chosen() -> None:
    schema = {"type": "object"}
    tool = {"name": "verdict", "strict": True, "schema": schema}

    body = CHAT.body(a_request(stream=False, tool=tool))

    function = {"name": "verdict", "parameters": schema}
    assert {name: value for name, value in body.items() if name not in ("model", "messages")} == {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "verdict"}},
    }


def called(*arguments: object) -> dict[str, Any]:
    calls = [{"type": "function", "function": {"arguments": one}} for one in arguments]
    return {"content": None, "tool_calls": calls}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(['{"a": 1}'], '{"a": 1}'), ([{"a": "é"}], '{"a": "é"}'), (["{}", "{}"], "{}{}"), ([7], "")],
)
def test_what_a_function_is_called_with_is_the_reply(arguments: list[object], text: str) -> None:
    events = [chunk(called(one)) for one in arguments]

    replies = reply_to(whole(called(*arguments))), streamed(*events, chunk({}, "stop")).reply(str)

    assert [reply.text for reply in replies] == [text] * 2
    assert {reply.outcome for reply in replies} == {Outcome.OK if text else Outcome.EMPTY}


@pytest.mark.parametrize(("words", "text"), [("42", "42"), ("\n", "{}"), ("", "{}")])
def test_words_come_before_what_a_function_is_called_with(words: str, text: str) -> None:
    assert reply_to(whole(called("{}") | {"content": words})).text == text


def test_extra_parameters_are_merged_into_what_is_there() -> None:
    extra = {"stream_options": {"more": 1}, "max_tokens": 9, "provider": {"only": ["Some Host"]}}
    request = a_request(max_tokens=7, extra=extra)

    body = CHAT.body(request)

    assert body["stream_options"] == {"include_usage": True, "more": 1}
    assert (body["max_tokens"], body["provider"]) == (9, {"only": ["Some Host"]})
    assert request.extra == extra


@pytest.mark.parametrize(("key", "headers"), [("k", {"authorization": "Bearer k"}), (None, {})])
def test_a_key_is_borne(key: str | None, headers: dict[str, str]) -> None:
    assert CHAT.headers(key) == headers
    assert CHAT.path == "chat/completions"


@pytest.mark.parametrize("in_events", [True, False])
def test_all_that_a_gateway_tells_is_kept(in_events: bool) -> None:
    usage: JsonValue = {
        "prompt_tokens": 10,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 15},
        "cost": 0.00125,
    }
    about = {"id": "gen-1", "provider": "Some Host", "model": "maker/two", "usage": usage}
    about |= {"system_fingerprint": "fp_1"}

    if in_events:
        events = chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop", **about)
        reply = streamed(*events).reply(str)
    else:
        reply = reply_to(whole({"content": "Hello."}, **about))

    assert (reply.text, reply.finish_reason, reply.outcome) == ("Hello.", "stop", Outcome.OK)
    assert (reply.generation_id, reply.system_fingerprint) == ("gen-1", "fp_1")
    assert (reply.served_by, reply.model_reported) == ("Some Host", "maker/two")
    assert (reply.first_token_s is not None) == in_events
    assert reply.usage == Usage(
        input_tokens=10,
        output_tokens=20,
        cached_tokens=4,
        reasoning_tokens=15,
        cost_usd=0.00125,
        cost_estimated=False,
    )


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"reasoning_content": "Hm."}, "Hm."),
        ({"reasoning": "Hm."}, "Hm."),
        ({"reasoning": "Hm.", "reasoning_content": "Hm."}, "Hm."),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]}, "Hm."),
        ({"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}]}, "Hm."),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "a9"}]}, None),
        ({"reasoning": "Hm.", "reasoning_details": [{"text": "Hm."}]}, "Hm."),
        ({"reasoning": {"text": "Hm."}}, None),
    ],
)
def test_reasoning_is_kept_once_and_apart_from_the_answer(
    fields: dict[str, JsonValue], reasoning: str | None
) -> None:
    replies = (
        reply_to(whole({"content": "42", **fields})),
        streamed(chunk(fields), chunk({"content": "42"}, "stop")).reply(str),
    )

    assert [(reply.text, reply.reasoning) for reply in replies] == [("42", reasoning)] * 2


@pytest.mark.parametrize(
    ("events", "finished"),
    [
        ([chunk({"content": "4"})], False),
        ([chunk({"content": "4"}, "")], False),
        ([chunk({"content": "4"}, 7)], False),
        ([{"usage": {"completion_tokens": 1}}], False),
        ([], False),
        ([chunk({"content": "4"}, "length")], True),
        ([chunk({"content": "4"}), chunk({}, "stop"), {"choices": []}], True),
    ],
)
def test_a_stream_is_finished_only_when_the_server_said_why(
    events: list[dict[str, Any]], finished: bool
) -> None:
    assert streamed(*events).finished is finished


def test_content_in_parts_and_a_refusal_are_read_as_text() -> None:
    parts = [{"type": "text", "text": "forty-"}, {"type": "image"}, {"type": "text", "text": "two"}]

    assert reply_to(whole({"content": parts})).text == "forty-two"
    assert reply_to(whole({"content": None, "refusal": "No."})).refusal == "No."


@pytest.mark.parametrize(
    ("said", "outcome", "transient"),
    [
        (chunk({}, error={"code": 429, "message": "Slow."}), Outcome.RATE_LIMITED, True),
        (chunk({"content": "The"}, error="Oh."), Outcome.SERVER_ERROR, True),
        ({"error": {"code": "402", "message": "Pay."}}, Outcome.NO_CREDIT, False),
        ({"choices": [{"delta": {}, "error": {"code": 502}}]}, Outcome.SERVER_ERROR, True),
        (chunk({"content": "The"}, "error"), Outcome.SERVER_ERROR, True),
        (chunk({"content": "The"}, "insufficient_system_resource"), Outcome.SERVER_ERROR, True),
    ],
)
def test_an_error_inside_of_a_reply_is_no_answer(
    said: dict[str, Any], outcome: Outcome, transient: bool
) -> None:
    error = read("chat_completions", [chunk({"content": "PARTIAL"}), said], None)

    assert isinstance(error, ProviderError)
    assert (error.outcome, error.transient) == (outcome, transient)
    assert "PARTIAL" not in str(error)


@pytest.mark.parametrize(
    "reply",
    [{}, {"choices": []}, {"choices": {}}, {"choices": [5]}, {"choices": [{}]}, whole("42")],
)
def test_an_object_without_a_message_is_no_reply(reply: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match="The reply has no message") as refused:
        reply_to(reply)

    assert (refused.value.outcome, refused.value.transient) == (Outcome.INVALID_REPLY, True)


def test_what_a_server_says_is_redacted_and_what_it_says_of_errors_is_quoted() -> None:
    collected = CHAT.collect(0.0, lambda _: "[QUOTED]")
    collected.add_event(chunk({"content": "KEY", "reasoning": "KEY"}, "KEY", id="KEY", model="KEY"))

    reply = collected.reply(lambda text: text.replace("KEY", "[CUT]"))
    with pytest.raises(ProviderError) as raised:
        collected.add_event({"error": {"message": "KEY"}})

    assert "KEY" not in repr(reply)
    assert str(raised.value) == "Error in the reply: [QUOTED]"


@pytest.mark.parametrize(("value", "tokens", "cost"), usage_values())
def test_usage_that_makes_no_sense_is_unknown(
    value: JsonValue, tokens: int | None, cost: float | None
) -> None:
    usage: JsonValue = {
        "prompt_tokens": value,
        "completion_tokens": value,
        "prompt_tokens_details": {"cached_tokens": value},
        "completion_tokens_details": {"reasoning_tokens": value},
        "cost": value,
    }

    reply = reply_to(whole({"content": "42"}, usage=usage))

    assert reply.usage == Usage(
        input_tokens=tokens,
        output_tokens=tokens,
        cached_tokens=tokens,
        reasoning_tokens=tokens,
        cost_usd=cost,
        cost_estimated=cost is None,
    )


@pytest.mark.parametrize(("total", "output"), [(130, 20), (145, 35), (None, 20), (999, 20)])
def test_reasoning_that_is_counted_apart_is_output_too(total: int | None, output: int) -> None:
    usage = {
        "prompt_tokens": 110,
        "completion_tokens": 20,
        "completion_tokens_details": {"reasoning_tokens": 15},
        "total_tokens": total,
    }

    reply = reply_to(whole({"content": "42"}, usage=usage))

    assert (reply.usage.output_tokens, reply.usage.reasoning_tokens) == (output, 15)

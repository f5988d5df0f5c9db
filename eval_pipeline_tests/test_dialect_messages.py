"""The messages API: what is sent, and what is made of replies, streams and everything else."""

import json
from typing import Any

import pytest
from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.dialects.messages import MAX_TOKENS
from eval_pipeline.gateways.pool import DIALECTS
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Usage
from eval_pipeline_tests.any_json import read, usage_values

MESSAGES = DIALECTS["messages"]
START = {"type": "message_start", "message": {"id": "msg_1", "model": "maker/two"}}
STOP = {"type": "message_stop"}
SCHEMA: dict[str, JsonValue] = {"name": "verdict", "strict": True, "schema": {"type": "object"}}


def block(**content_block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": content_block}


def said(kind: str, words: object) -> dict[str, Any]:
    name = {"text": "text", "thinking": "thinking", "input_json": "partial_json"}[kind]
    return {"type": "content_block_delta", "delta": {"type": f"{kind}_delta", name: words}}


def end(reason: object = "end_turn", **more: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, **more}


def whole(*content: Any, reason: object = "end_turn", **more: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "msg_1",
        "model": "maker/two",
        "content": list(content),
        "stop_reason": reason,
        **more,
    }


def reply_to(*events: dict[str, Any], whole: dict[str, Any] | None = None) -> ChatReply:
    reply = read("messages", list(events), whole)
    assert isinstance(reply, ChatReply), reply
    return reply


def error_of(*events: dict[str, Any], whole: dict[str, Any] | None = None) -> ProviderError:
    error = read("messages", list(events), whole)
    assert isinstance(error, ProviderError), error
    return error


@pytest.mark.parametrize(
    ("address", "source"),
    [
        (
            "data:image/png;base64,iVBOR",
            {"type": "base64", "media_type": "image/png", "data": "iVBOR"},
        ),
        (
            "data:image/png;name=a.png;base64,iVBOR",
            {"type": "base64", "media_type": "image/png", "data": "iVBOR"},
        ),
        ("https://host/a,b.png", {"type": "url", "url": "https://host/a,b.png"}),
    ],
)
def test_messages_and_images_have_the_shape_of_this_dialect(
    address: str, source: dict[str, JsonValue]
) -> None:
    text: JsonValue = {"type": "text", "text": "What is it?"}
    image: JsonValue = {"type": "image_url", "image_url": {"url": address}}
    request = ChatRequest(
        model="maker/one",
        messages=(
            {"role": "system", "content": [{"type": "text", "text": "Be"}]},
            {"role": "developer", "content": "brief."},
            {"role": "user", "content": [text, image]},
        ),
        stream=False,
    )

    assert MESSAGES.body(request) == {
        "model": "maker/one",
        "max_tokens": MAX_TOKENS,
        "system": "Be\n\nbrief.",
        "messages": [{"role": "user", "content": [text, {"type": "image", "source": source}]}],
    }


@pytest.mark.parametrize("form", [{"json_schema": SCHEMA}, {"tool": SCHEMA}])
def test_a_schema_is_a_tool_that_must_be_used(form: dict[str, Any]) -> None:
    request = ChatRequest(
        model="maker/one",
        messages=(),
        temperature=0,
        max_tokens=7,
        extra={"metadata": {"user_id": "u"}},
        **form,
    )

    assert MESSAGES.body(request) == {
        "model": "maker/one",
        "max_tokens": 7,
        "temperature": 0,
        "messages": [],
        "stream": True,
        "metadata": {"user_id": "u"},
        "tools": [{"name": "verdict", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "verdict", "disable_parallel_tool_use": True},
    }


@pytest.mark.parametrize(("key", "more"), [("k", {"x-api-key": "k"}), (None, {})])
def test_a_key_goes_where_this_dialect_has_it(key: str | None, more: dict[str, str]) -> None:
    assert MESSAGES.headers(key) == {"anthropic-version": "2023-06-01"} | more
    assert MESSAGES.path == "messages"


@pytest.mark.parametrize("in_events", [True, False])
def test_all_that_a_server_tells_is_kept(in_events: bool) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 6}

    if in_events:
        message = {**START["message"], "usage": usage | {"output_tokens": 1}}  # type: ignore[dict-item]
        reply = reply_to(
            START | {"message": message},
            {"type": "ping"},
            block(type="thinking", thinking=""),
            said("thinking", "Hm."),
            {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "a"}},
            {"type": "content_block_stop", "index": 0},
            block(type="text", text=""),
            said("text", "Hel"),
            said("text", "lo."),
            end(usage={"output_tokens": 20, "input_tokens": None}),
            STOP,
        )
    else:
        blocks = {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Hello."}
        reply = reply_to(whole=whole(*blocks, usage=usage | {"output_tokens": 20}))

    assert (reply.text, reply.reasoning, reply.finish_reason) == ("Hello.", "Hm.", "end_turn")
    assert (reply.generation_id, reply.model_reported) == ("msg_1", "maker/two")
    assert (reply.first_token_s is not None) == in_events
    assert reply.outcome is Outcome.OK
    assert reply.usage == Usage(input_tokens=20, output_tokens=20, cached_tokens=4)


@pytest.mark.parametrize("in_events", [True, False])
def test_the_input_of_the_tool_is_the_reply(in_events: bool) -> None:
    verdict = {"correct": True, "reasoning": "é"}
    server_tool = {"type": "server_tool_use", "name": "web_search", "input": {"query": "x"}}

    if in_events:
        reply = reply_to(
            block(**server_tool),
            said("input_json", '{"query": "x"}'),
            block(type="text", text="Let me"),
            said("text", " see."),
            block(type="tool_use", name="verdict", input={}),
            said("input_json", '{"correct": true,'),
            said("input_json", ' "reasoning": "é"}'),
            said("text", "That is it."),
            end("tool_use"),
        )
    else:
        tool = {"type": "tool_use", "name": "verdict", "input": verdict}
        words = {"type": "text", "text": "Let me see."}
        reply = reply_to(whole=whole(server_tool, words, tool, words, reason="tool_use"))

    assert json.loads(reply.text) == verdict
    assert (reply.finish_reason, reply.outcome) == ("tool_use", Outcome.OK)


def test_what_a_tool_of_the_server_is_asked_is_no_part_of_the_reply() -> None:
    reply = reply_to(
        block(type="server_tool_use", name="web_search", input={}),
        said("input_json", '{"query": "x"}'),
        block(type="web_search_tool_result", content=[{"type": "text", "text": "found"}]),
        block(type="text", text=""),
        said("text", "Hello."),
        end(),
    )

    assert reply.text == "Hello."


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("max_tokens", Outcome.TRUNCATED),
        ("model_context_window_exceeded", Outcome.TRUNCATED),
        ("refusal", Outcome.REFUSED),
        ("stop_sequence", Outcome.OK),
    ],
)
def test_the_reason_for_stopping_is_kept(reason: str, outcome: Outcome) -> None:
    replies = (
        reply_to(said("text", "Hel"), end(reason)),
        reply_to(whole=whole({"type": "text", "text": "Hel"}, reason=reason)),
    )

    assert [reply.finish_reason for reply in replies] == [reason] * 2
    assert [reply.outcome for reply in replies] == [outcome] * 2


def test_a_turn_that_is_only_paused_is_no_answer() -> None:
    errors = (
        error_of(said("text", "PARTIAL"), end("pause_turn")),
        error_of(whole=whole({"type": "text", "text": "PARTIAL"}, reason="pause_turn")),
    )

    assert [(error.outcome, error.transient) for error in errors] == [
        (Outcome.SERVER_ERROR, True)
    ] * 2


@pytest.mark.parametrize(
    ("events", "finished"),
    [
        ([], False),
        ([START, said("text", "Hel")], False),
        ([said("text", "Hel"), {"type": "content_block_stop"}], False),
        ([said("text", "Hel"), end(None)], False),
        ([said("text", "Hel"), end("end_turn")], True),
        ([said("text", "Hel"), STOP], True),
    ],
)
def test_a_stream_is_finished_only_when_the_server_said_so(
    events: list[dict[str, Any]], finished: bool
) -> None:
    collected = MESSAGES.collect(0.0, str)

    for event in events:
        collected.add_event(event)

    assert collected.finished is finished


def an_error(kind: str, message: str = "No.") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("event", "outcome", "transient"),
    [
        (an_error("overloaded_error"), Outcome.SERVER_ERROR, True),
        (an_error("api_error"), Outcome.SERVER_ERROR, True),
        (an_error("rate_limit_error"), Outcome.RATE_LIMITED, True),
        (an_error("authentication_error"), Outcome.AUTH, False),
        (an_error("permission_error"), Outcome.FORBIDDEN, False),
        (an_error("not_found_error"), Outcome.UNKNOWN_MODEL, False),
        (an_error("invalid_request_error"), Outcome.BAD_REQUEST, False),
        (
            an_error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
            Outcome.CONTEXT_TOO_LONG,
            False,
        ),
        ({"type": "error"}, Outcome.SERVER_ERROR, True),
        ({"error": "Oh."}, Outcome.SERVER_ERROR, True),
    ],
)
def test_an_error_inside_of_a_reply_is_no_answer(
    event: dict[str, Any], outcome: Outcome, transient: bool
) -> None:
    errors = error_of(said("text", "PARTIAL"), event), error_of(whole=event)

    assert [(error.outcome, error.transient) for error in errors] == [(outcome, transient)] * 2
    assert not any("PARTIAL" in str(error) for error in errors)


@pytest.mark.parametrize("reply", [{}, {"content": "text"}, {"content": None}])
def test_an_object_without_content_is_no_reply(reply: dict[str, Any]) -> None:
    error = error_of(whole=reply)

    assert (error.outcome, error.transient) == (Outcome.INVALID_REPLY, True)


@pytest.mark.parametrize(("value", "tokens", "cost"), usage_values())
def test_usage_that_makes_no_sense_is_unknown(
    value: JsonValue, tokens: int | None, cost: float | None
) -> None:
    usage: JsonValue = {
        "input_tokens": value,
        "output_tokens": value,
        "cache_read_input_tokens": value,
        "cost": value,
    }

    assert reply_to(whole=whole(usage=usage)).usage == Usage(
        input_tokens=None if tokens is None else 2 * tokens,
        output_tokens=tokens,
        cached_tokens=tokens,
        cost_usd=cost,
        cost_estimated=cost is None,
    )

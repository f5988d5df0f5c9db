"""The responses API: what is sent, and what is made of replies, streams and everything else."""

from typing import Any

import pytest
from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.pool import DIALECTS
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Usage
from eval_pipeline_tests.any_json import read, usage_values

RESPONSES = DIALECTS["responses"]
IMAGE = "data:image/png;base64,iVBOR"


def a_response(text: str = "Hello.", status: object = "completed", **more: Any) -> dict[str, Any]:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "message", "content": [{"type": "output_text", "text": text}]},
    ]
    return {"id": "resp_1", "model": "maker/two", "status": status, "output": output, **more}


def said(kind: str, delta: object) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "delta": delta}


def end(kind: str = "completed", **response: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": response}


def reply_to(*events: dict[str, Any], whole: dict[str, Any] | None = None) -> ChatReply:
    reply = read("responses", list(events), whole)
    assert isinstance(reply, ChatReply), reply
    return reply


def error_of(*events: dict[str, Any], whole: dict[str, Any] | None = None) -> ProviderError:
    error = read("responses", list(events), whole)
    assert isinstance(error, ProviderError), error
    return error


def test_messages_become_instructions_and_input() -> None:
    text: JsonValue = {"type": "text", "text": "What is it?"}
    image: JsonValue = {"type": "image_url", "image_url": {"url": IMAGE}}
    request = ChatRequest(
        model="maker/one",
        messages=(
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
            {"role": "user", "content": [text, image]},
        ),
        stream=False,
    )

    assert RESPONSES.body(request) == {
        "model": "maker/one",
        "store": False,
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is it?"},
                    {"type": "input_image", "image_url": IMAGE},
                ],
            },
        ],
    }


def test_parameters_have_the_names_of_this_dialect() -> None:
    request = ChatRequest(
        model="maker/one",
        messages=(),
        temperature=0,
        max_tokens=7,
        json_schema={"name": "verdict", "strict": True, "schema": {"type": "object"}},
        extra={"text": {"verbosity": "low"}, "reasoning": {"effort": "low"}},
    )

    assert RESPONSES.body(request) == {
        "model": "maker/one",
        "store": False,
        "input": [],
        "temperature": 0,
        "max_output_tokens": 7,
        "stream": True,
        "reasoning": {"effort": "low"},
        "text": {
            "verbosity": "low",
            "format": {
                "type": "json_schema",
                "name": "verdict",
                "strict": True,
                "schema": {"type": "object"},
            },
        },
    }
    assert (RESPONSES.path, RESPONSES.headers("k")) == (
        "responses",
        {"authorization": "Bearer k"},
    )


def test_a_function_that_has_to_be_called_is_offered_and_chosen() -> None:
    tool: dict[str, JsonValue] = {"name": "verdict", "strict": True, "schema": {"type": "object"}}

    body = RESPONSES.body(ChatRequest("maker/one", (), stream=False, tool=tool))

    assert body == {
        "model": "maker/one",
        "store": False,
        "input": [],
        "tools": [{"type": "function", "name": "verdict", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "function", "name": "verdict"},
    }


CALL = {"type": "function_call", "name": "verdict", "arguments": '{"a": 1}'}
PIECES = [said("function_call_arguments", piece) for piece in ('{"a"', ": 1}")]


@pytest.mark.parametrize(
    ("events", "whole"),
    [
        pytest.param([*PIECES, end()], None, id="in pieces"),
        pytest.param([end(output=[CALL])], None, id="in the last event"),
        pytest.param([*PIECES, end(output=[CALL])], None, id="in both"),
        pytest.param([], a_response() | {"output": [CALL]}, id="not streamed"),
    ],
)
def test_what_a_function_is_called_with_is_the_reply_once(
    events: list[dict[str, Any]], whole: dict[str, Any] | None
) -> None:
    reply = reply_to(*events, whole=whole)

    assert (reply.text, reply.outcome) == ('{"a": 1}', Outcome.OK)


@pytest.mark.parametrize("in_events", [True, False])
def test_all_that_a_server_tells_is_kept(in_events: bool) -> None:
    usage: JsonValue = {
        "input_tokens": 10,
        "output_tokens": 20,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 15},
    }
    response = a_response(usage=usage)

    if in_events:
        reply = reply_to(
            {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
            said("reasoning_summary_text", "Hm."),
            said("output_text", "Hel"),
            said("output_text", "lo."),
            {"type": "response.output_text.done", "text": "Hello."},
            end(**response),
        )
    else:
        reply = reply_to(whole=response)

    assert (reply.text, reply.reasoning, reply.finish_reason) == ("Hello.", "Hm.", "completed")
    assert (reply.generation_id, reply.model_reported) == ("resp_1", "maker/two")
    assert (reply.first_token_s is not None) == in_events
    assert reply.outcome is Outcome.OK
    assert reply.usage == Usage(
        input_tokens=10, output_tokens=20, cached_tokens=4, reasoning_tokens=15
    )


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([said("output_text", "Hello."), end()], id="nothing in the last event"),
        pytest.param([end(**a_response())], id="everything in the last event"),
        pytest.param([said("output_text", "Hel"), end(**a_response())], id="a lost event"),
        pytest.param([said("output_text", "Hello."), {"type": "response.completed"}], id="bare"),
        pytest.param([end("done", **a_response())], id="another name for the end"),
    ],
)
def test_the_text_is_there_once_however_it_is_sent(events: list[dict[str, Any]]) -> None:
    reply = reply_to(*events)

    assert (reply.text, reply.finish_reason) == ("Hello.", "completed")


def test_a_refusal_is_kept_apart() -> None:
    message = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}

    replies = (
        reply_to(whole=a_response() | {"output": [message]}),
        reply_to(said("refusal", "No."), end(output=[message])),
    )

    assert [(reply.text, reply.refusal) for reply in replies] == [("", "No.")] * 2
    assert {reply.outcome for reply in replies} == {Outcome.REFUSED}


def test_thoughts_are_preferred_to_their_summary() -> None:
    thought = {"type": "reasoning", "content": [{"text": "Long."}], "summary": [{"text": "Short."}]}

    reply = reply_to(
        said("reasoning_text", "Long."),
        said("reasoning_summary_text", "Short."),
        end(output=[thought]),
    )

    assert reply.reasoning == "Long."


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("max_output_tokens", Outcome.TRUNCATED),
        ("content_filter", Outcome.CONTENT_FILTER),
    ],
)
def test_a_reply_that_ends_early_says_why(reason: str, outcome: Outcome) -> None:
    response = a_response("Hel", "incomplete", incomplete_details={"reason": reason})

    replies = reply_to(end("incomplete", **response)), reply_to(whole=response)

    assert [reply.finish_reason for reply in replies] == [reason] * 2
    assert [reply.outcome for reply in replies] == [outcome] * 2


@pytest.mark.parametrize("details", [None, {}, {"reason": None}, {"reason": "tired"}, [1]])
def test_a_reply_that_ends_early_for_no_known_reason_is_no_answer(details: object) -> None:
    error = error_of(whole=a_response("PARTIAL", "incomplete", incomplete_details=details))

    assert (error.outcome, error.transient) == (Outcome.SERVER_ERROR, True)


@pytest.mark.parametrize(
    ("event", "outcome", "transient"),
    [
        ({"type": "error", "code": "rate_limit_exceeded"}, Outcome.RATE_LIMITED, True),
        ({"type": "error", "error": {"type": "server_error"}}, Outcome.SERVER_ERROR, True),
        ({"error": {"code": 402, "message": "Pay."}}, Outcome.NO_CREDIT, False),
        (
            end("failed", status="failed", error={"code": "server_error"}),
            Outcome.SERVER_ERROR,
            True,
        ),
        (end("failed", error={"code": "invalid_prompt"}), Outcome.BAD_REQUEST, False),
        (end("failed", error=None), Outcome.SERVER_ERROR, True),
        (end("cancelled"), Outcome.SERVER_ERROR, True),
    ],
)
def test_an_error_inside_of_a_reply_is_no_answer(
    event: dict[str, Any], outcome: Outcome, transient: bool
) -> None:
    error = error_of(said("output_text", "PARTIAL"), event)

    assert (error.outcome, error.transient) == (outcome, transient)
    assert "PARTIAL" not in str(error)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [said("output_text", "Hel")],
        [{"type": "response.output_text.done", "text": "Hello."}],
        [{"type": "response.in_progress", "response": a_response()}],
    ],
)
def test_a_stream_without_its_end_is_not_finished(events: list[dict[str, Any]]) -> None:
    collected = RESPONSES.collect(0.0, str)

    for event in events:
        collected.add_event(event)

    assert not collected.finished


@pytest.mark.parametrize(
    "reply", [{}, {"output": "text"}, a_response(status="queued"), a_response(status=[1])]
)
def test_an_object_that_is_not_done_is_no_reply(reply: dict[str, Any]) -> None:
    error = error_of(whole=reply)

    assert (error.outcome, error.transient) == (Outcome.INVALID_REPLY, True)


@pytest.mark.parametrize(("value", "tokens", "cost"), usage_values())
def test_usage_that_makes_no_sense_is_unknown(
    value: JsonValue, tokens: int | None, cost: float | None
) -> None:
    usage: JsonValue = {
        "input_tokens": value,
        "output_tokens": value,
        "input_tokens_details": {"cached_tokens": value},
        "output_tokens_details": {"reasoning_tokens": value},
        "cost": value,
    }

    assert reply_to(whole=a_response(usage=usage)).usage == Usage(
        input_tokens=tokens,
        output_tokens=tokens,
        cached_tokens=tokens,
        reasoning_tokens=tokens,
        cost_usd=cost,
        cost_estimated=cost is None,
    )

"""What no server should send gives a reply or an error, in every dialect."""

from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_pipeline.gateways.chat import ChatReply, ProviderError
from eval_pipeline.gateways.pool import DIALECTS
from eval_pipeline.records.model import DialectName
from eval_pipeline_tests import test_dialect_chat_completions as chat
from eval_pipeline_tests import test_dialect_messages as messages
from eval_pipeline_tests import test_dialect_responses as responses
from eval_pipeline_tests.any_json import objects_of, read, spoiled

UNHURRIED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


class Sample(NamedTuple):
    """What a server of a dialect may say, and the words it has for it."""

    words: str
    events: list[dict[str, Any]]
    whole: dict[str, Any]


SAMPLES: dict[DialectName, Sample] = {
    "chat_completions": Sample(
        "choices delta message content text reasoning reasoning_content reasoning_details refusal "
        "finish_reason stop length error code type metadata raw reasons usage prompt_tokens cost "
        "completion_tokens prompt_tokens_details cached_tokens id model provider summary "
        "tool_calls function arguments",
        [
            chat.chunk({"content": "a", "reasoning": "b", "refusal": "c"}, id="1", provider="p"),
            chat.chunk({"content": [{"text": "a"}], "reasoning_details": [{"text": "b"}]}),
            chat.chunk(chat.called("{}")),
            chat.chunk({}, "stop", usage={"prompt_tokens_details": {"cached_tokens": 1}}),
        ],
        chat.whole({"content": [{"text": "a"}], "reasoning": "b"}, usage={"cost": 1}, id="1"),
    ),
    "responses": Sample(
        "type response.completed response.incomplete response.failed response.output_text.delta "
        "response.reasoning_text.delta response.refusal.delta delta response status completed code "
        "incomplete incomplete_details reason max_output_tokens output message reasoning content "
        "summary text refusal usage input_tokens output_tokens_details reasoning_tokens cost error "
        "response.function_call_arguments.delta function_call arguments",
        [
            {"type": "response.created", "response": {"id": "1", "model": "m"}},
            *(responses.said(kind, "a") for kind in ("output_text", "refusal", "reasoning_text")),
            responses.said("function_call_arguments", "{}"),
            responses.end(
                "incomplete",
                **responses.a_response("b", "incomplete", incomplete_details={"reason": "length"}),
            ),
        ],
        responses.a_response(usage={"input_tokens": 1, "input_tokens_details": {"cached": 1}}),
    ),
    "messages": Sample(
        "type message_start message_delta message_stop content_block_start content_block_delta "
        "message content_block delta text_delta thinking_delta input_json_delta text thinking "
        "tool_use partial_json input index stop_reason end_turn content usage input_tokens cost "
        "cache_read_input_tokens output_tokens id model error",
        [
            messages.START,
            messages.block(type="thinking", thinking="a"),
            messages.said("thinking", "a"),
            messages.block(type="text", text="a"),
            messages.said("text", "a"),
            messages.block(type="tool_use", name="verdict", input={}),
            messages.said("input_json", "{}"),
            messages.end("end_turn", usage={"input_tokens": 1, "output_tokens": 1}),
            messages.STOP,
        ],
        messages.whole(
            {"type": "thinking", "thinking": "a"},
            {"type": "text", "text": "a"},
            {"type": "tool_use", "input": {"correct": True}},
            usage={"input_tokens": 1},
        ),
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(UNHURRIED)
@given(data=st.data())
def test_any_objects_give_a_reply_or_an_error(dialect: DialectName, data: st.DataObject) -> None:
    objects = objects_of(SAMPLES[dialect].words)
    events, whole = data.draw(st.lists(objects, max_size=4)), data.draw(objects)

    results = read(dialect, events, None), read(dialect, [], whole)

    assert all(isinstance(result, ChatReply | ProviderError) for result in results)


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(UNHURRIED)
@given(data=st.data())
def test_a_value_of_another_kind_anywhere_gives_a_reply_or_an_error(
    dialect: DialectName, data: st.DataObject
) -> None:
    sample = SAMPLES[dialect]
    events, wholes = data.draw(spoiled(sample.events)), data.draw(spoiled([sample.whole]))

    results = read(dialect, events, None), read(dialect, [], wholes[0])

    assert all(isinstance(result, ChatReply | ProviderError) for result in results)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_unspoiled_samples_are_replies(dialect: DialectName) -> None:
    sample = SAMPLES[dialect]

    results = read(dialect, sample.events, None), read(dialect, [], sample.whole)

    assert all(isinstance(result, ChatReply) and result.text for result in results)

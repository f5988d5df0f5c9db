"""Thoughts in the text of a reply never reach the judge, however they are marked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.gateways.chat import ChatReply
from eval_pipeline.gateways.dialects.base import split_thoughts
from eval_pipeline.gateways.pool import DIALECTS
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Usage

CHAT = DIALECTS["chat_completions"]
TEXTS = st.text(st.characters(exclude_characters="<>", exclude_categories=["Cs"]))


def a_reply(text: str, finish_reason: str = "stop", **message: object) -> ChatReply:
    collected = CHAT.collect(0.0, str)
    choice = {"message": {"content": text, **message}, "finish_reason": finish_reason}
    collected.add_whole({"choices": [choice]})
    return collected.reply(str)


@pytest.mark.parametrize(
    ("text", "answer", "thoughts"),
    [
        ("Answer: 4", "Answer: 4", ""),
        ("<think>two and two</think>\n\nAnswer: 4", "Answer: 4", "two and two"),
        ("\n<THINK>\na\n</THINK>\n<thinking>b</thinking>4", "4", "a\n\nb"),
        ("<think></think>4", "4", ""),
        ("<think>never closed\nAnswer: 4", "", "never closed\nAnswer: 4"),
        ("<think>a</think><think>b", "", "a\n\nb"),
        ("two and two\n</think>\n\nAnswer: 4", "Answer: 4", "two and two"),
        ("The tag </think> ends it.", "The tag </think> ends it.", ""),
        ("Answer: <think> is a tag", "Answer: <think> is a tag", ""),
        ("x < y", "x < y", ""),
        ("  Answer: 4", "  Answer: 4", ""),
    ],
)
def test_thoughts_are_told_apart_from_the_answer(text: str, answer: str, thoughts: str) -> None:
    assert split_thoughts(text) == (answer, thoughts)


@given(thought=TEXTS, answer=TEXTS)
def test_whatever_is_thought_and_said_is_found_again(thought: str, answer: str) -> None:
    told = split_thoughts(f"<think>{thought}</think>{answer}")

    assert told == (answer.lstrip(), thought.strip())


def test_a_reply_has_its_thoughts_apart_beside_those_that_the_server_named() -> None:
    reply = a_reply("<think>in the text</think>Answer: 4", reasoning_content="in its own field")

    assert (reply.text, reply.reasoning) == ("Answer: 4", "in its own field\n\nin the text")
    assert reply.outcome is Outcome.OK


@pytest.mark.parametrize(
    ("text", "reasoning", "outcome"),
    [
        ("<think>and so on", None, Outcome.TRUNCATED_THINKING),
        ("", "and so on", Outcome.TRUNCATED_THINKING),
        ("", None, Outcome.TRUNCATED),
        ("<think>done</think>Answer: 4 because", None, Outcome.TRUNCATED),
    ],
)
def test_a_limit_reached_while_thinking_is_an_outcome_of_its_own(
    text: str, reasoning: str | None, outcome: Outcome
) -> None:
    assert a_reply(text, "length", reasoning=reasoning).outcome is outcome


def test_hidden_thoughts_show_in_the_tokens() -> None:
    usage = Usage(output_tokens=500, reasoning_tokens=500)

    reply = ChatReply(text="", latency_s=1.0, finish_reason="length", usage=usage)

    assert reply.outcome is Outcome.TRUNCATED_THINKING


def test_thoughts_without_an_answer_are_empty_and_so_asked_again() -> None:
    assert a_reply("<think>never closed").outcome is Outcome.EMPTY

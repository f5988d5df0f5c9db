"""How a question is put to models that can do more or less."""

from pydantic import JsonValue

from eval_pipeline.suites.kinds import Prompts
from eval_pipeline_tests.builders import a_model, a_question

IMAGE = "data:image/png;base64,iVBORw0KGgo="


def parts(text: str) -> list[JsonValue]:
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": IMAGE}}]


def test_the_system_prompt_has_a_message_of_its_own() -> None:
    question, model = a_question(question="Why?"), a_model(system_role=True)

    messages = Prompts("Be brief.").messages(question, model)

    assert messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why?"},
    )


def test_a_model_without_a_system_role_reads_both_in_one_message() -> None:
    question, model = a_question(question="Why?"), a_model(system_role=False)

    messages = Prompts("Be brief.").messages(question, model)

    assert messages == ({"role": "user", "content": "Be brief.\n\nWhy?"},)


def test_an_image_follows_the_question_as_a_part_of_its_own() -> None:
    question, model = a_question(question="What is this?", image=IMAGE), a_model(system_role=True)

    system, user = Prompts("Be brief.").messages(question, model)

    assert system == {"role": "system", "content": "Be brief."}
    assert user == {"role": "user", "content": parts("What is this?")}


def test_an_image_follows_also_when_there_is_no_system_role() -> None:
    question, model = a_question(question="What is this?", image=IMAGE), a_model(system_role=False)

    messages = Prompts("Be brief.").messages(question, model)

    assert messages == ({"role": "user", "content": parts("Be brief.\n\nWhat is this?")},)


def test_nothing_but_question_and_image_is_sent() -> None:
    question = a_question(answer="the answer", rationale="the reason", raw_subject="the subject")

    messages = Prompts("Be brief.").messages(question, a_model())

    sent = str(messages)
    assert [text in sent for text in ("the answer", "the reason", "the subject")] == [False] * 3


def test_braces_and_line_breaks_of_a_question_stay_as_they_are() -> None:
    text = "Is {x} in\r\n\\frac{1}{2}\u2028or {question}?"

    messages = Prompts("Use {form}.").messages(a_question(question=text), a_model())

    assert [message["content"] for message in messages] == ["Use {form}.", text]

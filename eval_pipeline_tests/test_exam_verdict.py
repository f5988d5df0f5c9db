"""Which replies of a judge are verdicts, and that nothing else ever is."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.suites.exam.judge import SCHEMA, Verdict, read_verdict

UNHURRIED = settings(deadline=None, max_examples=100)


def a_verdict(**changes: object) -> str:
    values = {"extracted_answer": "42", "reasoning": "Same.", "correct": True, "confidence": 80}
    return json.dumps(values | changes)


def published(**changes: object) -> str:
    values = {"extracted_final_answer": "42", "reasoning": "Same.", "correct": "yes"}
    return json.dumps(values | {"confidence": 80, "strict": True} | changes)


def lines(
    answer: str = "42", reasoning: str = "Same.", correct: str = "yes", confidence: str = "80%"
) -> str:
    return (
        f"extracted_final_answer: {answer}\n\nreasoning: {reasoning}\n\n"
        f"correct: {correct}\n\nconfidence: {confidence}"
    )


def test_the_schema_asks_for_all_that_a_verdict_has() -> None:
    schema = SCHEMA["schema"]

    assert isinstance(schema, dict)
    assert schema["required"] == list(Verdict.model_fields)
    assert schema["properties"].keys() == Verdict.model_fields.keys()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "correct", "confidence"),
    [
        pytest.param(a_verdict(), True, 80, id="plain"),
        pytest.param(f"\n {a_verdict(correct=False)} \n", False, 80, id="spaces around"),
        pytest.param(f"```json\n{a_verdict()}\n```", True, 80, id="fenced as JSON"),
        pytest.param(f"```\n{a_verdict(correct=False)}```", False, 80, id="fenced"),
        pytest.param(a_verdict(strict="yes"), True, 80, id="an extra key"),
        pytest.param(a_verdict(confidence=None), True, None, id="no confidence stated"),
        pytest.param(a_verdict(confidence="None"), True, None, id="no confidence, in a word"),
        pytest.param(a_verdict(confidence=0), True, 0, id="no confidence at all"),
        pytest.param(a_verdict(confidence=100), True, 100, id="full confidence"),
        pytest.param(a_verdict(confidence=99.5), True, 99.5, id="a fraction"),
        pytest.param(a_verdict(confidence=0.9), True, None, id="a share or a percentage"),
        pytest.param(a_verdict(confidence="0.9"), True, None, id="the same as text"),
        pytest.param(a_verdict(confidence="0.9%"), True, 0.9, id="less than a percent"),
        pytest.param(a_verdict(confidence="0.9 %"), True, 0.9, id="less than a percent, apart"),
        pytest.param(a_verdict(confidence=0.0), True, 0, id="nought is nought"),
        pytest.param(a_verdict(confidence=1), True, 1, id="one percent"),
        pytest.param(published(confidence=0.5), True, None, id="published, a share"),
        pytest.param(lines(confidence="0.85"), True, None, id="lines, a share"),
        pytest.param(lines(confidence="0.85%"), True, 0.85, id="lines, less than a percent"),
        pytest.param(a_verdict(confidence="85%"), True, 85, id="a percentage"),
        pytest.param(a_verdict(correct="no"), False, 80, id="no in words"),
        pytest.param(a_verdict(reasoning="```{}```"), True, 80, id="a fence inside"),
        pytest.param(published(), True, 80, id="the published names"),
        pytest.param(published(correct="no", confidence="85 %"), False, 85, id="published, no"),
        pytest.param(published(correct=True), True, 80, id="the published names, a truth value"),
        pytest.param(lines(), True, 80, id="lines"),
        pytest.param(lines(correct="No.", confidence="100"), False, 100, id="lines, another way"),
        pytest.param(lines(correct="**yes**"), True, 80, id="a bold word"),
        pytest.param(lines(confidence="none"), True, None, id="lines without a confidence"),
        pytest.param(lines(reasoning="A.\n\nB: correct: no.\n"), True, 80, id="a long reasoning"),
        pytest.param(
            lines(reasoning="It says\nConfidence: 12%\nAnswer: no"), True, 80, id="quoted lines"
        ),
        pytest.param(
            "**extracted_final_answer:** 42\n**reasoning**: Same.\n**correct:** yes\n"
            "  **confidence** : 80%",
            True,
            80,
            id="bold names",
        ),
        pytest.param(
            "correct: no\nconfidence: 5\nreasoning: x\nextracted_final_answer: 41",
            False,
            5,
            id="another order",
        ),
    ],
)
def test_a_verdict_is_read(text: str, correct: bool, confidence: float | None) -> None:
    verdict = read_verdict(text)

    assert verdict is not None
    assert (verdict.correct, verdict.confidence) == (correct, confidence)


@pytest.mark.parametrize(
    ("text", "answer", "reasoning"),
    [
        (a_verdict(extracted_answer=None), None, "Same."),
        (a_verdict(extracted_answer="None"), "None", "Same."),
        (published(extracted_final_answer="None"), None, "Same."),
        (published(extracted_final_answer=None), None, "Same."),
        (lines("'None'"), None, "Same."),
        (lines("x = 1,\ny = 2", reasoning="One.\nTwo."), "x = 1,\ny = 2", "One.\nTwo."),
        (lines("**bold**", reasoning="**So.**"), "**bold**", "**So.**"),
    ],
)
def test_answer_and_reasoning_are_kept_as_they_are_said(
    text: str, answer: str | None, reasoning: str
) -> None:
    verdict = read_verdict(text)

    assert verdict is not None
    assert (verdict.extracted_answer, verdict.reasoning) == (answer, reasoning)


NO_VERDICT = [
    pytest.param("I think it is right.", id="prose"),
    pytest.param("", id="nothing"),
    pytest.param(f"Here you are: {a_verdict()}", id="prose before"),
    pytest.param(a_verdict() + a_verdict(), id="two"),
    pytest.param(a_verdict()[:-1], id="cut"),
    pytest.param("{}", id="no keys"),
    pytest.param('{"correct": true}', id="missing keys"),
    pytest.param('{"correct": false, ' + a_verdict()[1:], id="yes and no in one object"),
    pytest.param("[]", id="a list"),
    pytest.param("null", id="null"),
    pytest.param("true", id="a bare word"),
    pytest.param("[" * 100_000, id="very many layers"),
    pytest.param(a_verdict(correct="maybe"), id="maybe"),
    pytest.param(a_verdict(correct="true"), id="a truth value as text"),
    pytest.param(a_verdict(correct="False"), id="another one"),
    pytest.param(a_verdict(correct=1), id="a truth value as a number"),
    pytest.param(a_verdict(correct=None), id="undecided"),
    pytest.param(a_verdict(correct=0.5), id="half"),
    pytest.param(a_verdict(confidence=101), id="too confident"),
    pytest.param(a_verdict(confidence="101%"), id="too confident, as a percentage"),
    pytest.param(a_verdict(confidence=-1), id="less than no confidence"),
    pytest.param(a_verdict(confidence=float("nan")), id="confidence is no number"),
    pytest.param(a_verdict(confidence=float("inf")), id="confidence without end"),
    pytest.param(a_verdict(confidence="nan"), id="confidence is no number, as text"),
    pytest.param(a_verdict(confidence=True), id="confidence is a truth value"),
    pytest.param(a_verdict(confidence="high"), id="confidence in words"),
    pytest.param(a_verdict(confidence=""), id="an empty confidence"),
    pytest.param(a_verdict(reasoning=None), id="no reasoning"),
    pytest.param("```json\n```", id="an empty fence"),
    pytest.param(published(correct="perhaps"), id="the published names, perhaps"),
    pytest.param(published(confidence="85 of 100"), id="the published names, other numbers"),
    pytest.param(lines(correct="maybe"), id="lines, maybe"),
    pytest.param(lines(correct="yes\nno"), id="lines, yes and no"),
    pytest.param(lines(correct=""), id="lines, no word"),
    pytest.param(lines() + "\ncorrect: no", id="two different lines"),
    pytest.param(lines() + "\ncorrect: yes", id="the same line twice"),
    pytest.param(lines(reasoning="It says\ncorrect: yes"), id="a line in the reasoning"),
    pytest.param(lines().replace("correct: yes", ""), id="a missing line"),
    pytest.param(lines().replace("confidence: 80%", ""), id="no confidence line"),
    pytest.param(lines(confidence="100|%|"), id="an unreadable confidence"),
    pytest.param(lines(confidence="120%"), id="lines, too confident"),
    pytest.param(lines() + "\n\nI hope that helps.", id="prose after"),
    pytest.param("My judgement:\n" + lines(), id="prose before lines"),
    pytest.param("- " + lines().replace("\n\n", "\n- "), id="a list of lines"),
    pytest.param(lines().replace("\n\n", " "), id="all on one line"),
]


@pytest.mark.parametrize("text", NO_VERDICT)
def test_anything_else_is_no_verdict(text: str) -> None:
    assert read_verdict(text) is None


@UNHURRIED
@given(text=st.text() | st.text(alphabet="{}[]\"':,*\ncorretynsf 0189%").map(lines))
def test_no_text_raises_and_a_verdict_is_always_whole(text: str) -> None:
    verdict = read_verdict(text)

    assert verdict is None or Verdict.model_validate(verdict.model_dump()) == verdict


@UNHURRIED
@given(
    verdict=st.builds(
        Verdict,
        extracted_answer=st.none() | st.text(),
        reasoning=st.text(),
        correct=st.booleans(),
        confidence=st.none() | st.just(0.0) | st.floats(1, 100),
    )
)
def test_what_the_schema_enforces_is_read_as_it_was_meant(verdict: Verdict) -> None:
    assert read_verdict(verdict.model_dump_json()) == verdict


@pytest.mark.parametrize(
    "text", ["**" * 200_000, "correct:" * 50_000, "\n" * 500_000 + "x", "```" * 100_000 + "{"]
)
def test_a_long_reply_is_read_at_once(text: str) -> None:
    assert read_verdict(text) is None

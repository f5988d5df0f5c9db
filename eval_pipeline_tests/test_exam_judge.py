"""What the judge is shown, which of its replies count, and what needs no judge."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from eval_pipeline.exam.judge import (
    SCHEMA,
    JudgedAnswer,
    Verdict,
    check_prompt,
    judge_answer,
    judge_request,
    own_failing,
)
from eval_pipeline.providers.chat import ChatProvider, ChatReply, ChatRequest, ProviderError
from eval_pipeline.providers.demo.server import DemoGateway
from eval_pipeline.providers.limits import RetryPolicy
from eval_pipeline.records import Outcome
from eval_pipeline.settings import Judge
from eval_pipeline_tests.builders import a_model, a_prediction, a_question, ask
from eval_pipeline_tests.wire import provider_at

PROMPT = "Q: {question} R: {reference} A: {response}"
COMMITTED = Judge(model="demo/judge").prompt.read_text("utf-8")
JUDGE = a_model("demo/judge")
AT_ONCE = RetryPolicy(attempts=3, first_wait_s=0, longest_wait_s=0, total_s=60)


@dataclass
class ScriptedProvider:
    """Gives one reply or error after the other, and keeps what it was asked."""

    says: Iterable[str | ChatReply | ProviderError]
    asked: list[ChatRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._next = iter(self.says)

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        said = next(self._next)
        if isinstance(said, ProviderError):
            raise said
        return ChatReply(text=said, latency_s=0) if isinstance(said, str) else said


def a_verdict(**changes: object) -> str:
    values = {"extracted_answer": "42", "reasoning": "Same.", "correct": True, "confidence": 80}
    return json.dumps(values | changes)


def judged(*says: str | ChatReply | ProviderError) -> tuple[JudgedAnswer, ScriptedProvider]:
    provider = ScriptedProvider(says)
    request = judge_request(a_question(), "42", JUDGE, PROMPT, max_tokens=100)
    return asyncio.run(judge_by(provider, request)), provider


async def judge_by(provider: ChatProvider, request: ChatRequest) -> JudgedAnswer:
    return await judge_answer(lambda asked: ask(provider, asked, AT_ONCE), request)


@pytest.mark.parametrize(
    ("prompt", "answer", "expected"),
    [
        (PROMPT, "6", "Q: Why? R: Because. A: 6"),
        ("{correct_answer} {response}", "6", "Because. 6"),
        ("{response} {response}", "6", "6 6"),
        ("{response} {other} {} { response } {{x}}", "6", "6 {other} {} { response } {{x}}"),
        ("{response}|{reference}", "{reference}{question}", "{reference}{question}|Because."),
        ("{response}|{reference}", r"\1 \g<0> {response}", r"\1 \g<0> {response}|Because."),
        ("{response}", "", ""),
    ],
)
def test_placeholders_are_filled_once_and_what_is_filled_in_stays(
    prompt: str, answer: str, expected: str
) -> None:
    question = a_question(question="Why?", answer="Because.")

    request = judge_request(question, answer, JUDGE, prompt, max_tokens=100)

    assert request.messages == ({"role": "user", "content": expected},)


def test_the_judge_learns_nothing_about_who_answered() -> None:
    question = a_question(rationale="the rationale", category="the category")

    request = judge_request(question, "42", JUDGE, COMMITTED, max_tokens=100)

    sent = json.dumps(request.fields() | {"model": None})
    assert "demo/" not in sent
    assert "the rationale" not in sent
    assert "the category" not in sent


@pytest.mark.parametrize("temperature", [True, False])
@pytest.mark.parametrize("json_schema", [True, False])
def test_the_judge_is_asked_only_for_what_it_can_do(temperature: bool, json_schema: bool) -> None:
    judge = a_model(request_name="judge-1", temperature=temperature, json_schema=json_schema)

    request = judge_request(a_question(), "42", judge, PROMPT, max_tokens=100)

    assert request.temperature == (0 if temperature else None)
    assert request.json_schema == (SCHEMA if json_schema else None)
    assert (request.model, request.max_tokens, request.stream) == ("judge-1", 100, False)


def test_the_schema_asks_for_all_that_a_verdict_has() -> None:
    schema = SCHEMA["schema"]

    assert isinstance(schema, dict)
    assert schema["required"] == list(Verdict.model_fields)
    assert schema["properties"].keys() == Verdict.model_fields.keys()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("prompt", "complaint"),
    [
        (COMMITTED, None),
        (PROMPT, None),
        ("{correct_answer} {response}", None),
        ("{reference}", "has no {response}"),
        ("{response} {question}", "has no {reference} (or {correct_answer})"),
        ("{response } {reference}", "has no {response}"),
        ("", "has no {response}"),
    ],
)
def test_a_prompt_without_answer_or_reference_is_refused(
    prompt: str, complaint: str | None
) -> None:
    said = check_prompt(prompt)

    assert (said or "").startswith(complaint or "")
    assert (said is None) == (complaint is None)


@pytest.mark.parametrize(
    ("text", "correct", "confidence"),
    [
        pytest.param(a_verdict(), True, 80, id="plain"),
        pytest.param(f"\n {a_verdict(correct=False)} \n", False, 80, id="spaces around"),
        pytest.param(f"```json\n{a_verdict()}\n```", True, 80, id="fenced as JSON"),
        pytest.param(f"```\n{a_verdict(correct=False)}```", False, 80, id="fenced"),
        pytest.param(a_verdict(strict="yes"), True, 80, id="an extra key"),
        pytest.param(a_verdict(confidence=None), True, None, id="no confidence stated"),
        pytest.param(a_verdict(confidence=0), True, 0, id="no confidence at all"),
        pytest.param(a_verdict(confidence=100), True, 100, id="full confidence"),
        pytest.param(a_verdict(confidence=99.5), True, 99.5, id="a fraction"),
        pytest.param(a_verdict(correct="no"), False, 80, id="no in words"),
        pytest.param(a_verdict(reasoning="```{}```"), True, 80, id="a fence inside"),
    ],
)
def test_a_verdict_is_read(text: str, correct: bool, confidence: float | None) -> None:
    result, provider = judged(text)

    assert result.verdict is not None
    assert (result.verdict.correct, result.verdict.confidence) == (correct, confidence)
    assert (result.outcome, result.error, result.attempts) == (Outcome.OK, None, 1)
    assert len(provider.asked) == 1


def test_no_extracted_answer_is_a_verdict_too() -> None:
    result, _ = judged(a_verdict(extracted_answer=None, correct=False))

    assert result.verdict == Verdict(
        extracted_answer=None, reasoning="Same.", correct=False, confidence=80
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("I think it is right.", id="prose"),
        pytest.param(f"Here you are: {a_verdict()}", id="prose before"),
        pytest.param(a_verdict() + a_verdict(), id="two"),
        pytest.param(a_verdict()[:-1], id="cut"),
        pytest.param("{}", id="no keys"),
        pytest.param('{"correct": true}', id="missing keys"),
        pytest.param("[]", id="a list"),
        pytest.param("null", id="null"),
        pytest.param("true", id="a bare word"),
        pytest.param(a_verdict(correct="maybe"), id="maybe"),
        pytest.param(a_verdict(correct=None), id="undecided"),
        pytest.param(a_verdict(correct=0.5), id="half"),
        pytest.param(a_verdict(confidence=101), id="too confident"),
        pytest.param(a_verdict(confidence=-1), id="less than no confidence"),
        pytest.param(a_verdict(confidence=float("nan")), id="confidence is no number"),
        pytest.param(a_verdict(confidence="high"), id="confidence in words"),
        pytest.param(a_verdict(reasoning=None), id="no reasoning"),
        pytest.param("```json\n```", id="an empty fence"),
    ],
)
def test_what_is_no_verdict_is_asked_for_once_more_and_then_kept_as_a_failure(text: str) -> None:
    hopeless, asked_twice = judged(text, text)
    better, _ = judged(text, a_verdict(correct=False))

    assert (hopeless.verdict, hopeless.outcome) == (None, Outcome.JUDGE_UNPARSABLE)
    assert hopeless.error == "The judge's reply is not the JSON it was asked for."
    assert hopeless.reply is not None
    assert (hopeless.reply.text, hopeless.attempts) == (text, 2)
    assert len(asked_twice.asked) == 2
    assert better.verdict is not None
    assert (better.verdict.correct, better.outcome, better.attempts) == (False, Outcome.OK, 2)


def test_an_empty_reply_is_no_verdict_but_a_failure_on_the_way() -> None:
    result, provider = judged("", " ", "\n")

    assert (result.verdict, result.reply) == (None, None)
    assert (result.outcome, result.attempts, len(provider.asked)) == (Outcome.EMPTY, 3, 3)


def test_attempts_of_both_askings_are_counted() -> None:
    busy = ProviderError(Outcome.RATE_LIMITED, "Slow down.", transient=True)
    broke = ProviderError(Outcome.NO_CREDIT, "No credit left.")

    recovered, _ = judged(busy, "prose", busy, busy, a_verdict())
    failed, _ = judged(busy, "prose", busy, broke)

    assert (recovered.outcome, recovered.attempts) == (Outcome.OK, 5)
    assert (failed.outcome, failed.error) == (Outcome.NO_CREDIT, "No credit left.")
    assert (failed.verdict, failed.reply, failed.attempts) == (None, None, 4)


@pytest.mark.parametrize(("answer", "correct"), [("Answer: 42", True), ("Answer: 41", False)])
def test_the_simulated_judge_understands_the_committed_prompt(answer: str, correct: bool) -> None:
    request = judge_request(
        a_question(), f"{answer}\nConfidence: 70%", JUDGE, COMMITTED, max_tokens=None
    )

    async def run(base_url: str) -> JudgedAnswer:
        async with provider_at(base_url) as provider:
            return await judge_by(provider, request)

    with DemoGateway([a_question()]) as gateway:
        result = asyncio.run(run(gateway.base_url))

    assert result.verdict is not None
    assert (result.verdict.correct, result.verdict.confidence) == (correct, 70)


@pytest.mark.parametrize(
    ("outcome", "answer", "said"),
    [
        (Outcome.REFUSED, None, "refused"),
        (Outcome.REFUSED, "I will not.", "refused"),
        (Outcome.CONTENT_FILTER, None, "content filter"),
        (Outcome.TRUNCATED, None, "token limit"),
        (Outcome.TRUNCATED, " \n", "token limit"),
        (Outcome.TRUNCATED, "Answer: 4", None),
        *(
            (outcome, None, None)
            for outcome in Outcome
            if outcome not in {Outcome.REFUSED, Outcome.CONTENT_FILTER, Outcome.TRUNCATED}
        ),
    ],
)
def test_what_is_the_models_own_failing_needs_no_judge(
    outcome: Outcome, answer: str | None, said: str | None
) -> None:
    reason = own_failing(a_prediction(outcome=outcome, answer=answer))

    assert (reason is None) == (said is None)
    assert (said or "") in (reason or "")

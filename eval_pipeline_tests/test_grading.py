"""How one judge grades over a real server: formats, rules, versions, and what it gets to see."""

import asyncio
import json
from typing import Any

import pytest

from eval_pipeline.evaluation.grading import Grader, ModelJudge
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.gateways.chat import ChatRequest, ProviderError
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.structured import ReplyFormats, formats_of
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.records.model import DialectName, Prices
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Mode
from eval_pipeline.suites.exam.rules.grading import RULES_VERSION
from eval_pipeline_tests.builders import (
    a_benchmark,
    a_journal,
    a_model,
    a_pool,
    a_prediction,
    a_question,
    a_run,
    an_asking,
)
from eval_pipeline_tests.stand import JUDGE, STRONG, Stand, outcomes
from eval_pipeline_tests.test_exam_judge import AT_ONCE, ScriptedProvider
from eval_pipeline_tests.test_exam_verdict import a_verdict

PROMPT = "Grade {response} by {reference}."


def a_grader(
    *says: str | ProviderError,
    prompt: str = PROMPT,
    max_tokens: int | None = None,
    rules: bool = False,
    prices: Prices | None = None,
    asked: list[ChatRequest] | None = None,
) -> Grader:
    provider = ScriptedProvider(says, [] if asked is None else asked)
    judge = JUDGE.model_copy(update={"prices": prices or Prices()})
    asking = an_asking(provider, AT_ONCE, prices=prices)
    model = ModelJudge(judge, asking, prompt, max_tokens, ReplyFormats(formats_of(judge)))
    return Grader("launch", model, rules=rules)


def graded(stand: Stand) -> dict[str, Judgement]:
    return {one.item_id: one for one in stand.judgements()}


def question_of(prediction: Prediction) -> ExamQuestion:
    """One that 42 answers, or one whose answer the rules can not compare with another."""
    prose = prediction.item_id.startswith("open")
    return a_question(prediction.item_id, answer="because it is cold" if prose else "42")


def answer_in(stand: Stand, *predictions: Prediction) -> None:
    """A run of these predictions, as if its model had just been asked."""
    questions = [question_of(one) for one in predictions]
    plan = [("sample", one.item_id) for one in predictions]
    benchmark = a_benchmark(*questions)
    version = benchmark.version.benchmark_version
    run = a_run(plan=plan, benchmark_version=version)
    a_journal(stand.settings.data, run, *predictions, benchmark=benchmark)


ANSWERS = [
    a_prediction("right", answer="Answer: 42\nConfidence: 80%"),
    a_prediction("wrong", answer="Answer: 7\nConfidence: 80%"),
    a_prediction("open", answer="Answer: the low temperature\nConfidence: 80%"),
    a_prediction("silent", answer=None, outcome="truncated_thinking"),
]


# Computed before there were formats, rules and several judges: what has been judged stays judged.
@pytest.mark.parametrize(
    ("max_tokens", "version"), [(None, "ddd44fb591aa460d"), (256, "e5eade964e3ca550")]
)
def test_the_version_of_a_plain_judge_is_what_it_has_always_been(
    max_tokens: int | None, version: str
) -> None:
    assert a_grader(max_tokens=max_tokens).version == version


def test_versions_tell_prompts_limits_and_rules_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    graders = [
        a_grader(),
        a_grader(prompt=PROMPT + "!"),
        a_grader(max_tokens=1),
        a_grader(rules=True),
        Grader("launch", rules=True),
    ]
    versions = [grader.version for grader in graders]
    names = [grader.judge for grader in graders]

    monkeypatch.setattr("eval_pipeline.evaluation.grading.RULES_VERSION", RULES_VERSION + "1")
    later = [a_grader().version, a_grader(rules=True).version, Grader("l", rules=True).version]

    assert len(set(versions)) == 5
    assert names == ["demo/judge"] * 3 + ["rules+demo/judge", "rules"]
    assert later[0] == versions[0]
    assert not set(later[1:]) & set(versions)


@pytest.mark.parametrize(
    ("grader", "prompt"),
    [
        pytest.param(a_grader(a_verdict()), PROMPT, id="a model"),
        pytest.param(a_grader(a_verdict(), max_tokens=1), PROMPT, id="with another limit"),
        pytest.param(a_grader(a_verdict(), rules=True), PROMPT, id="after the rules"),
        pytest.param(a_grader(a_verdict(), prompt=PROMPT + "!"), PROMPT + "!", id="otherwise"),
        pytest.param(Grader("launch", rules=True), None, id="the rules alone"),
    ],
)
def test_every_verdict_of_a_judge_model_says_with_which_prompt(
    grader: Grader, prompt: str | None
) -> None:
    async def grade() -> list[Judgement]:
        return [await grader.grade(one, question_of(one), a_pool()) for one in few]

    few = [one for one in ANSWERS if one.item_id in ("open", "silent")]

    kept = asyncio.run(grade())

    assert [one.item_id for one in kept] == ["open", "silent"]
    assert {one.prompt_hash for one in kept} == {prompt and fingerprint(prompt)}


def test_what_the_rules_decide_before_a_model_is_kept_under_the_prompt_of_that_model() -> None:
    grader = a_grader(rules=True)

    kept = asyncio.run(grader.grade(ANSWERS[0], question_of(ANSWERS[0]), a_pool()))

    assert (kept.graded_by, kept.prompt_hash) == ("rules", fingerprint(PROMPT))


def test_a_server_that_passes_over_formats_is_asked_in_words_for_the_rest_of_the_launch() -> None:
    asked: list[ChatRequest] = []
    grader = a_grader("Right.", "Right.", a_verdict(), a_verdict(), asked=asked)

    async def grade() -> list[Judgement]:
        return [await grader.grade(one, question_of(one), a_pool()) for one in ANSWERS[:2]]

    kept = asyncio.run(grade())

    assert [(one.score, one.reply_format, one.attempts) for one in kept] == [
        (1.0, "text", 3),
        (1.0, "text", 1),
    ]
    assert [bool(one.json_schema or one.tool) for one in asked] == [True, True, False, False]


def test_the_text_of_a_reply_is_kept_when_the_judge_is_down_afterwards() -> None:
    down = ProviderError(Outcome.SERVER_ERROR, "HTTP 500: down.")
    grader = a_grader("I would say yes.", down)

    kept = asyncio.run(grader.grade(ANSWERS[0], question_of(ANSWERS[0]), a_pool()))

    assert (kept.score, kept.outcome, kept.reason) == (None, Outcome.SERVER_ERROR, str(down))
    assert (kept.raw_reply, kept.reply_format) == ("I would say yes.", "json_schema")


@pytest.mark.parametrize(
    ("dialect", "refuses", "reply_format", "refusals"),
    [
        ("chat_completions", [], "json_schema", 0),
        ("chat_completions", ["json_schema"], "tool", 1),
        ("chat_completions", ["json_schema", "tool"], "text", 2),
        ("responses", ["json_schema"], "tool", 1),
        ("responses", ["json_schema", "tool"], "text", 2),
        ("messages", [], "tool", 0),
        ("messages", ["tool"], "text", 1),
    ],
)
def test_a_server_without_schemas_is_asked_in_another_format_and_that_is_remembered(
    stand: Stand, dialect: DialectName, refuses: list[Any], reply_format: str, refusals: int
) -> None:
    stand.predict(STRONG)
    stand.settings = stand.settings.overridden({"judge": {"num_workers": 1}})
    stand.gateway.misbehave(Faults(refuses=tuple(refuses), models=("demo/judge",)))

    stand.judge("demo/strong", by=a_model("demo/judge", dialect=dialect))

    kept = stand.judgements()
    assert [one.reply_format for one in kept] == [reply_format] * 3
    assert [one.attempts for one in kept] == [1 + refusals, 1, 1]
    assert all(one.score is not None for one in kept)
    assert stand.gateway.requests["demo/judge"] == 3 + refusals


def test_a_judge_that_is_refused_in_every_format_has_not_judged(stand: Stand) -> None:
    stand.predict(STRONG)
    stand.gateway.misbehave(Faults(status={"demo/judge": 400}))

    stand.judge("demo/strong")

    kept = stand.judgements()
    assert {(one.outcome, one.score) for one in kept} == {(Outcome.BAD_REQUEST, None)}
    assert {one.reason for one in kept} == {"HTTP 400: A simulated fault."}
    assert {(one.judge, one.graded_by) for one in kept} == {("demo/judge", "demo/judge")}


def test_a_judge_without_schemas_is_told_in_words_how_to_reply(stand: Stand) -> None:
    stand.predict(STRONG)

    stand.judge("demo/strong", by=a_model("demo/judge", json_schema=False))

    assert {(one.reply_format, one.attempts) for one in stand.judgements()} == {("text", 1)}
    assert all(one.score is not None for one in stand.judgements())


def test_the_judge_sees_the_answer_and_not_what_the_model_thought() -> None:
    asked: list[ChatRequest] = []
    grader = a_grader(a_verdict(), asked=asked)
    prediction = a_prediction(answer="{reference} {response}", reasoning="a secret thought")

    judgement = asyncio.run(grader.grade(prediction, a_question(), a_pool()))

    (request,) = asked
    assert request.messages == ({"role": "user", "content": "Grade {reference} {response} by 42."},)
    assert "secret" not in json.dumps(request.fields())
    assert (judgement.score, judgement.launch) == (1.0, "launch")


def test_the_rules_alone_ask_nobody_and_leave_open_what_they_can_not_tell(stand: Stand) -> None:
    answer_in(stand, *ANSWERS)
    stand.settings = stand.settings.overridden({"judge": {"rules": "only"}})

    (tally,) = stand.judge("demo/strong")

    kept = graded(stand)
    assert {name: (one.score, one.graded_by) for name, one in kept.items()} == {
        "right": (1.0, "rules"),
        "wrong": (0.0, "rules"),
        "open": (None, "rules"),
        "silent": (0.0, None),
    }
    assert kept["open"].outcome is Outcome.UNDECIDED
    assert {(one.judge, one.attempts) for one in kept.values()} == {("rules", 0)}
    assert (kept["right"].confidence, kept["right"].extracted_answer) == (0.8, "42")
    assert kept["silent"].reason == "The token limit was reached while the model was thinking."
    assert (tally.failed, tally.estimated_usd, tally.cost_usd) == (False, 0.0, 0.0)
    assert stand.gateway.requests["demo/judge"] == 0


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.FIX, Mode.RESUME])
def test_what_the_rules_left_open_is_looked_at_again_only_by_other_rules(
    stand: Stand, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_in(stand, *ANSWERS)
    stand.settings = stand.settings.overridden({"judge": {"rules": "only"}})
    stand.judge("demo/strong")

    (again,) = stand.judge("demo/strong", launch=Launch("again", mode))
    monkeypatch.setattr("eval_pipeline.evaluation.grading.RULES_VERSION", RULES_VERSION + "1")
    (by_other_rules,) = stand.judge("demo/strong", launch=Launch("again", Mode.AUTO))

    assert (again.planned, by_other_rules.planned) == (0, 4)


def test_many_undecided_answers_in_a_row_do_not_stop_the_rules(stand: Stand) -> None:
    answers = [a_prediction(f"open{number}", answer="Answer: ice") for number in range(20)]
    answer_in(stand, *answers)
    stand.settings = stand.settings.overridden(
        {"judge": {"rules": "only"}, "requests": {"stop_after_failures": 2}}
    )

    tallies = stand.judge("demo/strong")

    assert outcomes(tallies) == [{Outcome.UNDECIDED: 20}]
    assert not tallies[0].stopped


def test_what_the_rules_left_open_is_for_a_judge_model_later(stand: Stand) -> None:
    answer_in(stand, *ANSWERS)
    plain = stand.settings
    stand.settings = plain.overridden({"judge": {"rules": "only"}})
    stand.judge("demo/strong")
    stand.settings = plain

    (tally,) = stand.judge("demo/strong")

    assert tally.outcomes == {Outcome.OK: 4}
    assert {one.judge for one in stand.judgements()} == {"rules", "demo/judge"}


def test_the_rules_first_save_the_calls_that_they_are_certain_about(stand: Stand) -> None:
    answer_in(stand, *ANSWERS)
    stand.settings = stand.settings.overridden({"judge": {"rules": "first"}})

    stand.judge("demo/strong")

    kept = graded(stand)
    assert {name: (one.score, one.graded_by) for name, one in kept.items()} == {
        "right": (1.0, "rules"),
        "wrong": (0.0, "rules"),
        "open": (0.0, "demo/judge"),
        "silent": (0.0, None),
    }
    assert {one.judge for one in kept.values()} == {"rules+demo/judge"}
    assert stand.gateway.requests["demo/judge"] == 1
    assert {one.reply_format for one in kept.values()} == {None, "json_schema"}


def test_what_judging_will_cost_is_less_where_the_rules_come_first() -> None:
    items = {one.key: question_of(one) for one in ANSWERS}
    prices = Prices(prompt=1e-6, completion=1e-6)

    plain, first, only, unpriced = (
        grader.guess_usd(ANSWERS, items)
        for grader in (
            a_grader(prices=prices),
            a_grader(prices=prices, rules=True),
            Grader("launch", rules=True),
            a_grader(),
        )
    )

    assert plain and first
    assert 0 < first < plain
    assert (only, unpriced) == (0.0, None)

"""Judging over a real server: what is pending, once, and never a score for an outage."""

import asyncio
import json

import pytest

from eval_pipeline.providers.demo.faults import Faults
from eval_pipeline.records import Outcome, Prices
from eval_pipeline.runs import Mode, RunError
from eval_pipeline.stages.judge import judge
from eval_pipeline.stages.predict import Launch
from eval_pipeline_tests.builders import a_model
from eval_pipeline_tests.stand import JUDGE, STRONG, Stand, outcomes


def test_a_judge_outage_scores_nothing_and_is_repaired_without_asking_the_model(
    stand: Stand,
) -> None:
    stand.predict(STRONG)
    stand.gateway.misbehave(Faults(server_error=1, models=("demo/judge",)))
    during = stand.judge("demo/strong")
    unscored = [one.score for one in stand.judgements()]
    stand.gateway.misbehave(Faults())
    asked_before = stand.gateway.requests["demo/strong"]

    after = stand.judge("demo/strong")

    assert outcomes(during) == [{Outcome.SERVER_ERROR: 3}]
    assert unscored == [None, None, None]
    assert outcomes(after) == [{Outcome.OK: 3}]
    assert stand.gateway.requests["demo/strong"] == asked_before
    assert stand.judge("demo/strong")[0].asked == 0


def test_a_verdict_that_can_not_be_read_is_kept_with_its_text_and_no_score(stand: Stand) -> None:
    stand.predict(STRONG)

    stand.judge("demo/strong", by=a_model("demo/strong"))

    kept = stand.judgements()
    assert {one.outcome for one in kept} == {Outcome.JUDGE_UNPARSABLE}
    assert {one.score for one in kept} == {None}
    assert all("Simulated reply" in (one.raw_reply or "") for one in kept)


def test_the_models_own_failing_is_wrong_without_asking_the_judge(stand: Stand) -> None:
    nothing_said = stand.settings.overridden(
        {"experiments": {"default": {"max_tokens": 1, "temperature": None}}}
    )
    stand.predict(STRONG, settings=nothing_said)
    truncated = stand.predictions()
    with_text = [one for one in truncated.values() if (one.answer or "").strip()]

    stand.judge("demo/strong")

    assert {one.outcome for one in truncated.values()} == {Outcome.TRUNCATED}
    assert {one.score for one in stand.judgements()} == {0.0}
    assert stand.gateway.requests["demo/judge"] == len(with_text)


@pytest.mark.parametrize(
    ("launch", "this_judge", "judged_again"),
    [
        (Launch("again"), False, 0),
        (Launch("again", Mode.RESUME), False, 0),
        (Launch("again", Mode.FRESH), False, 3),
        (Launch("again", Mode.FRESH, "run-1"), False, 3),
        (Launch("again"), True, 3),
    ],
)
def test_what_is_judged_again_is_a_matter_of_mode_and_judge(
    stand: Stand, launch: Launch, this_judge: bool, judged_again: int
) -> None:
    stand.predict(STRONG)
    stand.judge("demo/strong")
    other = a_model("demo/other-judge", request_name="demo/judge")

    (tally,) = stand.judge("demo/strong", launch=launch, by=other, this_judge=this_judge)

    assert tally.asked == judged_again


def test_a_run_that_is_not_there_can_not_be_judged(stand: Stand) -> None:
    stand.predict(STRONG)

    with pytest.raises(RunError, match="There is no run beef to judge"):
        stand.judge("demo/strong", launch=Launch("again", Mode.FRESH, "beef"))


def test_what_one_judge_left_half_done_another_does_as_a_whole(stand: Stand) -> None:
    stand.predict(STRONG)
    dear = JUDGE.model_copy(update={"prices": Prices(prompt=1, completion=1)})
    stand.settings = stand.settings.overridden(
        {"budget": {"usd_per_run": 0.5}, "judge": {"num_workers": 1}}
    )
    stand.judge("demo/strong", by=dear)
    stand.settings = stand.settings.overridden({"budget": {"usd_per_run": None}})
    other = a_model("demo/other-judge", request_name="demo/judge")

    (tally,) = stand.judge("demo/strong", by=other)

    assert [one.judge for one in stand.judgements()] == ["demo/judge"] + 3 * ["demo/other-judge"]
    assert tally.asked == 3
    assert stand.judge("demo/strong")[0].asked == 0


def test_a_half_character_in_a_verdict_is_kept_as_far_as_it_can_be(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand.predict(STRONG)
    verdict = {"extracted_answer": None, "reasoning": "\ud835", "correct": True, "confidence": 1}
    said = json.dumps(verdict)
    monkeypatch.setattr("eval_pipeline.providers.demo.minds.judge_reply", lambda _: said)

    stand.judge("demo/strong")

    assert [(one.score, one.reason) for one in stand.judgements()] == 3 * [(1.0, "\ufffd")]


def test_two_judgings_at_once_pay_once(stand: Stand) -> None:
    stand.predict(STRONG)

    async def both() -> None:
        launches = [Launch("one"), Launch("two")]
        await asyncio.gather(
            *(
                judge(["demo/strong"], JUDGE, one, settings=stand.settings, journal=stand.journal)
                for one in launches
            )
        )

    asyncio.run(both())

    assert stand.gateway.requests["demo/judge"] == 3


def test_a_prediction_that_was_asked_again_is_judged_again(stand: Stand) -> None:
    stand.predict(STRONG)
    stand.judge("demo/strong")

    stand.predict(STRONG, launch=Launch("run-2", Mode.FRESH))
    (tally,) = stand.judge("demo/strong")

    assert tally.asked == 3

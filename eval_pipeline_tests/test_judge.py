"""Judging over a real server: what is pending, once, and never a score for an outage."""

import asyncio
import json
import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.defs.config import JudgedConfig
from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.judge import judge
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import JUDGED, PREDICTIONS, Journal, Stream
from eval_pipeline.records.model import Prices
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.run import Mode
from eval_pipeline.suites.benchmark import judge_prompt_of, keep, load_benchmark, mint
from eval_pipeline.suites.exam.judge import SCHEMA
from eval_pipeline_tests.builders import (
    NOON,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
    write_questions,
)
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


@pytest.mark.parametrize(
    ("mode", "judged_again"), [(Mode.RESUME, 0), (Mode.AUTO, 2), (Mode.FIX, 2), (Mode.FRESH, 3)]
)
def test_what_failed_is_judged_again_unless_only_the_rest_is_to_be(
    stand: Stand, mode: Mode, judged_again: int
) -> None:
    stand.predict(STRONG)
    answers = list(stand.predictions().values())
    a_journal(
        stand.settings.data,
        *(a_judgement(one, None, judge_version=plain_version(stand)) for one in answers[:2]),
        a_judgement(answers[2], judge_version=plain_version(stand)),
    )

    (tally,) = stand.judge("demo/strong", launch=Launch("again", mode))

    assert (tally.planned, tally.asked) == (judged_again, judged_again)


def plain_version(stand: Stand) -> str:
    return fingerprint(judge_prompt_of(stand.settings), SCHEMA, None)


def test_what_nobody_has_judged_is_judged_in_every_mode(stand: Stand) -> None:
    stand.predict(STRONG)
    (first, *_) = stand.predictions().values()
    a_journal(stand.settings.data, a_judgement(first, None, judge_version=plain_version(stand)))

    (tally,) = stand.judge("demo/strong", launch=Launch("again", Mode.RESUME))

    assert tally.planned == 2


@pytest.mark.parametrize(
    ("launch", "judged_again"),
    [
        pytest.param(Launch("one", Mode.FRESH), 2, id="the same launch, a step of it tried again"),
        pytest.param(Launch("two", Mode.FRESH, retry_of="one"), 2, id="tried again as a whole"),
        pytest.param(Launch("three", Mode.FRESH), 3, id="another launch"),
        pytest.param(Launch("three", Mode.FRESH, retry_of="two"), 3, id="a retry of another"),
    ],
)
def test_judging_everything_again_goes_on_where_it_was_interrupted(
    stand: Stand, launch: Launch, judged_again: int
) -> None:
    stand.predict(STRONG)
    stand.judge("demo/strong")
    dear = JUDGE.model_copy(update={"prices": Prices(prompt=1, completion=1)})
    plain, little = stand.settings, {"budget": {"usd_per_run": 0.5}, "judge": {"num_workers": 1}}
    stand.settings = plain.overridden(little)
    (interrupted,) = stand.judge("demo/strong", launch=Launch("one", Mode.FRESH), by=dear)
    stand.settings = plain

    (tally,) = stand.judge("demo/strong", launch=launch)

    assert (interrupted.asked, tally.asked) == (1, judged_again)


def test_a_retry_of_a_retry_still_goes_on(stand: Stand) -> None:
    stand.predict(STRONG)

    for run_id in ("two", "three"):
        stand.judge("demo/strong", launch=Launch(run_id, Mode.FRESH, retry_of="one"))

    assert [one.launch for one in stand.judgements()] == ["one"] * 3


def test_another_prompt_judges_everything_and_the_old_verdicts_stay(
    stand: Stand, tmp_path: Path
) -> None:
    stand.predict(STRONG)
    stand.judge("demo/strong")
    old = stand.settings.judge.prompt.read_text("utf-8")
    (tmp_path / "strict.txt").write_text(old + "Be strict.")
    config = JudgedConfig(prompt="strict.txt")
    stand.settings = config.apply(stand.settings)

    tallies = [stand.judge("demo/strong", this_judge=config.says_how)[0] for _ in range(2)]

    assert [tally.asked for tally in tallies] == [3, 0]
    versions = Counter(one.judge_version for one in stand.judgements())
    assert list(versions.values()) == [3, 3]


def test_a_prompt_in_the_settings_leaves_alone_what_is_judged_in_full(
    stand: Stand, tmp_path: Path
) -> None:
    stand.predict(STRONG)
    stand.judge("demo/strong")
    (tmp_path / "other.txt").write_text("{response} {reference}")
    stand.settings = stand.settings.overridden({"judge": {"prompt": "other.txt"}})

    (tally,) = stand.judge("demo/strong")

    assert tally.asked == 0


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
    monkeypatch.setattr("eval_pipeline.gateways.demo.replies.judge_reply", lambda _: said)

    stand.judge("demo/strong")

    assert [(one.score, one.reason) for one in stand.judgements()] == 3 * [(1.0, "\ufffd")]


def test_two_judgings_at_once_pay_once(stand: Stand) -> None:
    stand.predict(STRONG)

    async def both() -> None:
        launches = [Launch("one"), Launch("two")]
        await asyncio.gather(
            *(
                judge(["demo/strong"], [JUDGE], one, settings=stand.settings, journal=stand.journal)
                for one in launches
            )
        )

    asyncio.run(both())

    assert stand.gateway.requests["demo/judge"] == 3


def test_every_sample_of_an_item_is_judged_and_what_was_replaced_is_not(stand: Stand) -> None:
    later = NOON + timedelta(minutes=1)
    samples = [
        a_prediction(prediction_id="old", sample=0),
        a_prediction(prediction_id="new", sample=0, finished_at=later),
        a_prediction(prediction_id="other", sample=1),
        a_prediction(prediction_id="failed", sample=2, outcome="timeout", answer=None),
    ]
    a_journal(stand.settings.data, a_run(samples=3), *samples)

    (tally,) = stand.judge("demo/strong")

    assert tally.planned == 2
    assert {(one.prediction_id, one.sample) for one in stand.judgements()} == {
        ("new", 0),
        ("other", 1),
    }


def test_a_prediction_that_was_asked_again_is_judged_again(stand: Stand) -> None:
    stand.predict(STRONG)
    stand.judge("demo/strong")

    stand.predict(STRONG, launch=Launch("run-2", Mode.FRESH))
    (tally,) = stand.judge("demo/strong")

    assert tally.asked == 3


def ask_a_new_version(stand: Stand, run_id: str) -> None:
    """Another category for one question, and a run of that version, in which all is asked anew."""
    changed = [a_question("q1"), a_question("q2"), a_question("q3", category="Chemistry")]
    write_questions(stand.settings.root, changed)
    keep(load_benchmark(stand.settings), stand.journal)
    stand.predict(STRONG, launch=Launch(run_id, Mode.FRESH))


@pytest.mark.parametrize(
    ("launch", "this_judge", "judged_in"),
    [
        pytest.param(Launch("x", Mode.FRESH), False, {"new"}, id="everything again"),
        pytest.param(Launch("x"), True, {"new"}, id="in this very way"),
        pytest.param(Launch("x", Mode.RESUME), True, {"new"}, id="in this way, only what is left"),
        pytest.param(Launch("x", Mode.FRESH, "old"), False, {"old"}, id="a run that is named"),
        pytest.param(Launch("x", Mode.AUTO, "old"), True, {"old"}, id="a named run in this way"),
        pytest.param(Launch("x"), False, {"old", "new"}, id="what is pending"),
        pytest.param(Launch("x", Mode.FIX), False, {"old", "new"}, id="what is pending or failed"),
        pytest.param(Launch("x", Mode.RESUME), False, {"old", "new"}, id="what nobody has seen"),
    ],
)
def test_only_what_is_pending_is_judged_in_archived_versions(
    stand: Stand,
    caplog: pytest.LogCaptureFixture,
    launch: Launch,
    this_judge: bool,
    judged_in: set[str],
) -> None:
    stand.predict(STRONG, launch=Launch("old"))
    ask_a_new_version(stand, "new")

    with caplog.at_level(logging.INFO):
        stand.judge("demo/strong", launch=launch, this_judge=this_judge)

    assert {one.run_id for one in stand.judgements()} == judged_in
    left_out = launch.continue_run is None and "old" not in judged_in
    assert ("published benchmark version: 1. To judge" in caplog.text) is left_out


def test_the_published_version_is_judged_again_beside_the_current_one(stand: Stand) -> None:
    mint(stand.journal, stand.settings)
    stand.predict(STRONG, launch=Launch("published"))
    ask_a_new_version(stand, "current")

    stand.judge("demo/strong", launch=Launch("x", Mode.FRESH))

    assert {one.run_id for one in stand.judgements()} == {"published", "current"}


def test_a_verdict_that_is_taken_over_says_with_which_prompt_it_was_given(stand: Stand) -> None:
    stand.predict(STRONG, launch=Launch("old"))
    stand.judge("demo/strong")
    changed = [a_question("q1"), a_question("q2"), a_question("q3", category="Chemistry")]
    write_questions(stand.settings.root, changed)
    keep(load_benchmark(stand.settings), stand.journal)

    stand.predict(STRONG, launch=Launch("new"))

    carried = list(stand.journal.read(JUDGED, "demo/strong", "new"))
    assert [one.carried_from for one in carried] == ["old"] * 3
    prompt_hash = load_benchmark(stand.settings).version.judge_prompt_hash
    assert {one.prompt_hash for one in carried} == {prompt_hash}


@dataclass(frozen=True)
class LiveJournal(Journal):
    """One in which something happens right after the run's predictions are listed at first."""

    happens: list[str] = field(default_factory=list)

    def files(self, stream: Stream[Any], *parts: str) -> list[Path]:
        found = super().files(stream, *parts)
        if stream.name == PREDICTIONS.name and len(parts) > 1 and self.happens:
            match self.happens.pop():
                case "another answer":
                    another = a_prediction("q2", finished_at=NOON + timedelta(hours=1))
                    self.write_whole(PREDICTIONS, *parts, "0000", records=[another])
                case "compaction":
                    found[0].rename(found[0].with_name("compacted.jsonl"))
        return found


@pytest.mark.parametrize("happening", ["another answer", "compaction"])
def test_answers_that_come_in_meanwhile_do_not_hide_those_that_are_there(
    stand: Stand, happening: str
) -> None:
    plan = [("sample", name) for name in ("q1", "q2", "q3")]
    version = load_benchmark(stand.settings).version.benchmark_version
    run = a_run(plan=plan, benchmark_version=version)
    answers = [a_prediction("q1"), a_prediction("q3")]
    a_journal(stand.settings.data, run, *answers, benchmark=load_benchmark(stand.settings))
    stand.journal = LiveJournal(stand.journal.root, [happening])

    (tally,) = stand.judge("demo/strong")

    assert not tally.failed
    assert {"q1", "q3"} <= {one.item_id for one in stand.judgements()}

"""What the journal's last words are, told without holding any prediction."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from eval_pipeline.evaluation.state import (
    FinalPredictions,
    PastRun,
    Pending,
    PredictionBrief,
    Replies,
    ReplyKey,
    failed_items,
)
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Prediction
from eval_pipeline_tests.builders import NOON, a_journal, a_judgement, a_prediction, a_run
from eval_pipeline_tests.stand import latest

NAMES = ["q1", "q2", "q3"]
SAMPLES = 2

predictions = st.lists(
    st.builds(
        lambda name, sample, outcome, minutes: a_prediction(
            name, sample=sample, outcome=outcome, finished_at=NOON + timedelta(minutes=minutes)
        ),
        st.sampled_from([*NAMES, "not planned"]),
        st.integers(0, SAMPLES),
        st.sampled_from([Outcome.OK, Outcome.TIMEOUT, Outcome.REFUSED]),
        st.integers(0, 3),
    ),
    max_size=12,
)


@hypothesis_settings(max_examples=100, deadline=None, database=None)
@given(spoken=predictions)
def test_the_last_words_are_those_of_whole_predictions(spoken: list[Prediction]) -> None:
    keys = [ItemKey("sample", name) for name in NAMES]
    briefs = [PredictionBrief.model_validate_json(one.model_dump_json()) for one in spoken]

    words = FinalPredictions(keys, samples=SAMPLES)
    final = {}
    for one, brief in zip(spoken, briefs, strict=True):
        if (reply := words.add(brief)) is not None:
            final[reply] = one

    whole = [ReplyKey(key, sample) for sample in range(SAMPLES) for key in keys]
    known = {
        ReplyKey(key, sample): one
        for sample in range(SAMPLES)
        for key, one in latest(one for one in spoken if one.sample == sample).items()
        if key in keys
    }
    done = {reply for reply, one in known.items() if one.outcome.is_result}
    assert sorted(map(id, final.values())) == sorted(map(id, known.values()))
    unsaid = [reply for reply in whole if reply not in known]
    assert list(Pending(keys, words.missing(result=False))) == unsaid
    unknown = [reply for reply in whole if reply not in done]
    assert list(Pending(keys, words.missing(result=True))) == unknown


def test_a_past_run_has_its_plan_as_the_text_in_the_journal() -> None:
    run = a_run(plan=[("sample", "q1"), ("sample", 'a "q2"')])

    past = PastRun.model_validate_json(run.model_dump_json())

    assert past.plan_text == rb'[["sample","q1"],["sample","a \"q2\""]]'
    assert past.plan == ()
    assert past.with_plan(run.plan) == run


def test_a_reply_is_found_by_the_number_that_names_it() -> None:
    keys = [ItemKey("sample", name) for name in NAMES]
    replies = Replies(keys, SAMPLES)
    pending = Pending(keys, range(len(replies)))

    found = [replies.find(key, sample) for key, sample in pending]

    assert found == list(range(6))
    for key, sample in ((keys[0], SAMPLES), (keys[0], -1), (ItemKey("sample", "none"), 0)):
        assert replies.find(key, sample) is None


def test_done_replies_leave_the_rest_in_its_order() -> None:
    pending = Pending([ItemKey("sample", name) for name in NAMES], range(6))

    left = pending.without([0, 7, 0, 0, 7, 0])

    assert [(key.item_id, sample) for key, sample in left] == [
        ("q1", 0),
        ("q3", 0),
        ("q1", 1),
        ("q3", 1),
    ]


Verdict = tuple[str, str, int, dict[str, float | None]]
"""A judge, its version, the minute, and its scores by item."""


@pytest.mark.parametrize(
    ("verdicts", "failed"),
    [
        # What nobody has judged yet is not wrong.
        ([], []),
        ([("a", "v1", 1, {"q1": 1.0, "q2": None})], []),
        ([("a", "v1", 1, {"q1": 1.0, "q2": 0.0, "q3": 0.5})], ["q2", "q3"]),
        # Who has scored most decides, though somebody else scored a few replies later.
        (
            [("a", "v1", 1, {"q1": 1.0, "q2": 0.0, "q3": 1.0}), ("b", "v1", 2, {"q1": 0.0})],
            ["q2"],
        ),
        # Of those who have scored as many, the one last at work, whatever was said before.
        ([("a", "v1", 1, {"q1": 0.0}), ("b", "v1", 2, {"q2": 0.0})], ["q2"]),
        (
            [
                ("a", "v1", 1, dict.fromkeys(NAMES, 0.0)),
                ("a", "v2", 2, {"q1": 1.0, "q2": 1.0, "q3": 0.0}),
            ],
            ["q3"],
        ),
        (
            [
                ("b", "v1", 2, {"q1": 1.0, "q2": 1.0, "q3": 0.0}),
                ("a", "v1", 1, dict.fromkeys(NAMES, 0.0)),
            ],
            ["q3"],
        ),
        # A judge that could not score anything has not judged.
        (
            [
                ("a", "v1", 1, {"q1": 1.0, "q2": 0.0, "q3": 1.0}),
                ("b", "v1", 2, dict.fromkeys(NAMES, None)),
            ],
            ["q2"],
        ),
        # A version's later score replaces its earlier one, a later failure does not.
        (
            [
                ("a", "v1", 1, {"q1": 0.0, "q2": 1.0, "q3": 1.0}),
                ("a", "v1", 2, {"q1": 1.0, "q2": 0.0, "q3": None}),
            ],
            ["q2"],
        ),
    ],
)
def test_items_failed_by_what_the_judge_that_stands_for_the_run_says(
    tmp_path: Path, verdicts: list[Verdict], failed: list[str]
) -> None:
    run = a_run(plan=[("sample", name) for name in NAMES])
    given = {name: a_prediction(name) for name in NAMES}
    judged = [
        a_judgement(
            given[name],
            score,
            judge=judge,
            judge_version=version,
            finished_at=NOON + timedelta(minutes=minute),
        )
        for judge, version, minute, scores in verdicts
        for name, score in scores.items()
    ]

    found = failed_items(a_journal(tmp_path, run, *given.values(), *judged), run)

    assert sorted(key.item_id for key in found) == failed


def test_a_verdict_on_a_reply_that_was_replaced_is_no_verdict(tmp_path: Path) -> None:
    run = a_run(plan=[("sample", "q1"), ("sample", "q2")])
    first, other = a_prediction("q1"), a_prediction("q2")
    again = a_prediction("q1", prediction_id="again", finished_at=NOON + timedelta(minutes=1))
    late = NOON + timedelta(minutes=2)
    judged = [
        a_judgement(first, judge="late", finished_at=late),
        a_judgement(again),
        a_judgement(other),
    ]

    found = failed_items(a_journal(tmp_path, run, first, other, again, *judged), run)

    assert found == set()


@pytest.mark.parametrize(
    ("replies", "failed"),
    [
        ([], ["q1"]),
        ([(0, Outcome.OK)], ["q1"]),
        ([(0, Outcome.OK), (1, Outcome.TIMEOUT)], ["q1"]),
        ([(0, Outcome.OK), (1, Outcome.TIMEOUT), (1, Outcome.TRUNCATED)], []),
        ([(0, Outcome.OK), (1, Outcome.OK), (1, Outcome.TIMEOUT)], ["q1"]),
    ],
)
def test_an_item_of_which_any_sample_has_no_result_failed(
    tmp_path: Path, replies: list[tuple[int, Outcome]], failed: list[str]
) -> None:
    run = a_run(plan=[("sample", "q1")], samples=2)
    given = [
        a_prediction(
            "q1",
            prediction_id=f"reply {n}",
            sample=sample,
            outcome=outcome,
            finished_at=NOON + timedelta(minutes=n),
        )
        for n, (sample, outcome) in enumerate(replies)
    ]

    found = failed_items(a_journal(tmp_path, run, *given), run)

    assert [key.item_id for key in found] == failed

"""What the journal's last words are, told without holding any prediction."""

from datetime import timedelta

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from eval_pipeline.history import LastWords, PastRun, PredictionBrief
from eval_pipeline.records import ItemKey, Outcome, Prediction
from eval_pipeline_tests.builders import NOON, a_prediction, a_run
from eval_pipeline_tests.stand import latest

NAMES = ["q1", "q2", "q3"]

predictions = st.lists(
    st.builds(
        lambda name, outcome, minutes: a_prediction(
            name, outcome=outcome, finished_at=NOON + timedelta(minutes=minutes)
        ),
        st.sampled_from([*NAMES, "not planned"]),
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

    words = LastWords(keys, briefs)

    known = latest(one for one in spoken if one.key in keys)
    last = [one for number, one in enumerate(spoken) if words.is_last(number, one.key)]
    done = {key for key, one in known.items() if one.outcome.is_result}
    assert sorted(map(id, last)) == sorted(map(id, known.values()))
    assert {key for key in keys if words.has_word(key, result=False)} == set(known)
    assert {key for key in keys if words.has_word(key, result=True)} == done


def test_a_past_run_has_its_plan_as_the_text_in_the_journal() -> None:
    run = a_run(plan=[("sample", "q1"), ("sample", 'a "q2"')])

    past = PastRun.model_validate_json(run.model_dump_json())

    assert past.plan_text == rb'[["sample","q1"],["sample","a \"q2\""]]'
    assert past.plan == ()
    assert past.with_plan(run.plan) == run

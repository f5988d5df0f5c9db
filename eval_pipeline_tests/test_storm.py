"""Everything that can go wrong at once: every item ends answered or named, and nothing half."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import PREDICTIONS
from eval_pipeline.records.model import DialectName
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.run import Mode
from eval_pipeline_tests.builders import a_model, write_questions
from eval_pipeline_tests.stand import STRONG, WEAK, Stand, outcomes

COUNT = 150
STORM = Faults(
    rate_limited=0.3,
    retry_after="mixed",
    retry_after_s=0.05,
    server_error=0.1,
    cut_stream=0.05,
    invalid_json=0.05,
    hang=0.02,
    reset=0.03,
    empty=0.03,
    context_too_long=0.01,
    drip_s=0.002,
)
# A date has no parts of a second: whoever is given one waits for the next.
WITHOUT_DATES = STORM.model_copy(update={"retry_after": "seconds"})
REQUESTS = {"timeout_s": 1, "attempts": 8, "first_wait_s": 0.01, "longest_wait_s": 0.1}
NAMED = {
    Outcome.RATE_LIMITED,
    Outcome.SERVER_ERROR,
    Outcome.CUT_STREAM,
    Outcome.INVALID_REPLY,
    Outcome.TIMEOUT,
    Outcome.CONNECTION_ERROR,
    Outcome.EMPTY,
    Outcome.CONTEXT_TOO_LONG,
}


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    with DemoGateway(questions := write_questions(tmp_path, COUNT)) as gateway:
        workers = {"num_workers": 50}
        yield Stand(tmp_path, gateway, questions=questions, requests=REQUESTS, concurrency=workers)


@pytest.mark.parametrize(
    ("dialect", "storm"),
    [
        ("chat_completions", STORM),
        # The same engine behind another dialect, each of which has tests of its own.
        pytest.param("responses", WITHOUT_DATES, marks=pytest.mark.slow),
        pytest.param("messages", WITHOUT_DATES, marks=pytest.mark.slow),
    ],
    ids=["chat_completions", "responses", "messages"],
)
def test_in_a_storm_every_item_ends_answered_or_with_a_name(
    stand: Stand, dialect: DialectName, storm: Faults
) -> None:
    model = STRONG.model_copy(update={"dialect": dialect})
    stand.predict(model)
    calm = {item: one.answer for item, one in stand.predictions().items()}
    stand.gateway.misbehave(storm)

    (tally,) = stand.predict(model, launch=Launch("run-2", Mode.FRESH))

    stormy = {one.item_id: one for one in stand.journal.read(PREDICTIONS, model.id, "run-2")}
    assert (tally.asked, len(stormy), tally.stopped) == (COUNT, COUNT, None)
    answered = {item: one.answer for item, one in stormy.items() if one.outcome is Outcome.OK}
    assert answered == {item: calm[item] for item in answered}
    assert len(answered) > 0.9 * COUNT
    failed = [one for one in stormy.values() if one.outcome is not Outcome.OK]
    assert {one.outcome for one in failed} <= NAMED
    assert {(one.answer, one.reasoning) for one in failed} <= {(None, None)}
    assert all(one.error for one in failed)
    most = stand.settings.requests.attempts + stand.settings.requests.attempts_when_limited
    assert max(one.attempts for one in stormy.values()) < most


def test_after_the_storm_only_what_failed_is_asked_again(stand: Stand) -> None:
    stand.gateway.misbehave(WITHOUT_DATES)
    stand.predict(STRONG)
    failed = {i for i, one in stand.predictions().items() if not one.outcome.is_result}
    stand.gateway.misbehave(Faults())
    before = stand.gateway.requests["demo/strong"]

    stand.predict(STRONG, launch=Launch("run-2", Mode.FIX))

    assert stand.gateway.requests["demo/strong"] - before == len(failed) > 0
    assert {one.outcome for one in stand.predictions().values()} == {Outcome.OK}


def test_a_model_that_is_told_to_wait_does_not_hold_up_the_others(stand: Stand) -> None:
    stand.gateway.misbehave(
        Faults(rate_limited=1, retry_after="seconds", retry_after_s=60, models=("demo/weak",))
    )
    impatient = stand.settings.overridden({"requests": {"total_s": 30, "timeout_s": 30}})
    began = time.monotonic()

    strong, weak = stand.predict(STRONG, WEAK, settings=impatient)

    assert dict(strong.outcomes) == {Outcome.OK: COUNT}
    assert time.monotonic() - began < 30
    assert set(weak.outcomes) == {Outcome.RATE_LIMITED}
    assert "100 items in a row had no answer; the last: demo/weak: HTTP 429" in str(weak.stopped)
    assert weak.failed


@pytest.mark.parametrize("retry_after", ["none", "seconds"])
def test_the_number_at_once_adapts_to_what_the_server_takes(stand: Stand, retry_after: str) -> None:
    faults = {"most_at_once": 8, "latency_s": 0.05, "retry_after_s": 0.137}
    stand.gateway.misbehave(Faults.model_validate(faults | {"retry_after": retry_after}))

    (tally,) = stand.predict(STRONG)

    assert dict(tally.outcomes) == {Outcome.OK: COUNT}
    assert stand.gateway.most_at_once["demo/strong"] == 8
    # Always asking with all 50 workers would be turned away several times for each answer.
    assert stand.gateway.requests["demo/strong"] < 2.5 * COUNT


def test_when_everybody_is_told_to_wait_all_go_on_afterwards(stand: Stand) -> None:
    stand.gateway.misbehave(
        Faults(rate_limited=0.6, retry_after="seconds", retry_after_s=0.05, latency_s=0.01)
    )

    (tally,) = stand.predict(STRONG)

    assert dict(tally.outcomes) == {Outcome.OK: COUNT}


def test_a_dead_gateway_is_given_up_and_says_why(stand: Stand) -> None:
    stand.gateway.misbehave(Faults(reset=1))
    hasty = stand.settings.overridden({"requests": {"attempts": 1}})

    (tally,) = stand.predict(STRONG, settings=hasty)

    assert tally.failed
    assert "100 items in a row had no answer; the last: demo/strong: " in str(tally.stopped)
    assert tally.asked <= 100 + 50


@pytest.mark.parametrize("status", [401, 402, 404])
def test_what_can_not_get_better_stops_a_model_within_one_round(stand: Stand, status: int) -> None:
    stand.gateway.misbehave(Faults(status={"demo/strong": status}, latency_s=0.02))

    (tally,) = stand.predict(STRONG)

    assert stand.gateway.requests["demo/strong"] <= 50
    assert f"demo/strong: HTTP {status}: A simulated fault." in str(tally.stopped)


def test_a_slow_drip_is_bounded_by_the_time_for_one_request(stand: Stand) -> None:
    one = stand.settings.overridden(
        {"requests": {"timeout_s": 0.3, "attempts": 2}, "plan": {"max_samples": 1}}
    )
    stand.gateway.misbehave(Faults(drip_s=0.25))

    (tally,) = stand.predict(a_model(), settings=one)

    assert outcomes([tally]) == [{Outcome.TIMEOUT: 1}]
    assert stand.predictions()["q0"].answer is None

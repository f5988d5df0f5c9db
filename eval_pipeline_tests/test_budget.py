"""A budget stops the asking, lands what was paid for, says so, and goes on when it is raised."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import PREDICTIONS
from eval_pipeline.records.model import Prices
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.run import Mode
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import a_model, write_questions
from eval_pipeline_tests.stand import Stand

COUNT = 60
# One dollar per request, and nothing for tokens: what is spent can be counted.
DOLLAR = Prices(prompt=0, completion=0, request=1)
STRONG = a_model("demo/strong", prices=DOLLAR)
DEAR = a_model("demo/strong", prices=Prices(prompt=0, completion=0, request=7))
AVERAGE = a_model("demo/average", prices=DOLLAR)
JUDGE = a_model("demo/judge", prices=DOLLAR)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    with DemoGateway(questions := write_questions(tmp_path, COUNT)) as gateway:
        gateway.misbehave(Faults(latency_s=0.01))
        yield Stand(tmp_path, gateway, questions=questions)


def limited(stand: Stand, **budget: float | None) -> Settings:
    return stand.settings.overridden({"budget": budget})


def test_what_was_paid_for_lands_and_no_more_is_asked_than_the_budget_allows(stand: Stand) -> None:
    (tally,) = stand.predict(STRONG, settings=limited(stand, usd_per_run=20))

    assert tally.budget_reached and not tally.failed
    assert tally.stopped == "The budget of 20 USD per run is spent (20.0000 USD)."
    assert len(stand.predictions()) == tally.asked == stand.gateway.requests.total() == 20
    assert {one.outcome for one in stand.predictions().values()} == {Outcome.OK}


def test_with_a_higher_budget_the_run_goes_on_where_it_was(stand: Stand) -> None:
    stand.predict(STRONG, settings=limited(stand, usd_per_run=20))

    (same,) = stand.predict(STRONG, launch=Launch("run-2"), settings=limited(stand, usd_per_run=20))
    (more,) = stand.predict(STRONG, launch=Launch("run-3"), settings=limited(stand, usd_per_run=50))
    (rest,) = stand.predict(STRONG, launch=Launch("run-4"), settings=limited(stand, usd_per_run=99))

    assert [tally.asked for tally in (same, more, rest)] == [0, 30, 10]
    assert [tally.budget_reached for tally in (same, more, rest)] == [True, True, False]
    assert {one.run_id for one in stand.journal.read(PREDICTIONS)} == {"run-1"}
    assert set(stand.gateway.seen.values()) == {1}


def test_a_budget_per_model_holds_back_that_model_only(stand: Stand) -> None:
    settings = limited(stand, usd_per_model=10, usd_per_run=100)
    free = a_model("demo/average", prices=Prices(prompt=0, completion=0))

    strong, average = stand.predict(STRONG, free, settings=settings)

    assert (strong.asked, average.asked) == (10, COUNT)
    assert "10 USD per model" in str(strong.stopped)


def test_models_of_one_run_share_its_budget(stand: Stand) -> None:
    tallies = stand.predict(STRONG, AVERAGE, settings=limited(stand, usd_per_run=30))

    assert sum(tally.asked for tally in tallies) == 30
    assert all("30 USD per run" in str(tally.stopped) for tally in tallies)


def test_a_budget_per_day_holds_over_runs(stand: Stand) -> None:
    stand.predict(STRONG, settings=limited(stand, usd_per_day=100))
    settings = limited(stand, usd_per_day=100)

    (tally,) = stand.predict(STRONG, launch=Launch("run-2", Mode.FRESH), settings=settings)

    assert tally.asked == 40
    assert "100 USD per day" in str(tally.stopped)


def test_judging_draws_on_the_same_budget(stand: Stand) -> None:
    stand.predict(STRONG, settings=limited(stand, usd_per_run=70))
    stand.settings = limited(stand, usd_per_run=70)

    (stopped,) = stand.judge("demo/strong", by=JUDGE)
    stand.settings = limited(stand, usd_per_run=200)
    (finished,) = stand.judge("demo/strong", by=JUDGE)

    assert stopped.estimated_usd == pytest.approx(COUNT)
    assert (stopped.asked, stopped.budget_reached) == (10, True)
    assert (finished.asked, finished.budget_reached) == (50, False)
    assert stand.gateway.requests["demo/judge"] == COUNT


def test_what_it_will_cost_is_said_before(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        (tally,) = stand.predict(STRONG)

        (again,) = stand.predict(DEAR, launch=Launch("run-2", Mode.FRESH))

    assert tally.estimated_usd == pytest.approx(COUNT)
    assert "60 to ask, about 60.00 USD" in caplog.text
    # What was paid before is known better than what a catalog says.
    assert again.estimated_usd == pytest.approx(COUNT)


def test_that_the_budget_will_not_do_is_said_before(stand: Stand) -> None:
    (tally,) = stand.predict(STRONG, settings=limited(stand, usd_per_run=20))

    assert tally.warnings == [
        "demo/strong: about 60.00 USD are needed, but only 20.00 of the 20 USD per run are left."
    ]


def test_a_spent_run_does_not_keep_another_from_being_judged(stand: Stand) -> None:
    stand.predict(STRONG, launch=Launch("a-spent"), settings=limited(stand, usd_per_run=60))
    free = a_model("demo/strong", prices=Prices(prompt=0, completion=0))
    stand.predict(free, launch=Launch("b-free", Mode.FRESH))
    stand.settings = limited(stand, usd_per_run=60)

    (tally,) = stand.judge("demo/strong", by=JUDGE)

    assert {one.run_id for one in stand.judgements()} == {"b-free"}
    assert (tally.asked, tally.budget_reached) == (COUNT, True)


@pytest.mark.parametrize("prices", [Prices(), Prices(prompt=1e-9, completion=1e-9)])
def test_replies_much_dearer_than_expected_do_not_break_the_budget(
    stand: Stand, prices: Prices
) -> None:
    stand.gateway.misbehave(Faults(latency_s=0.01, cost_usd=1.2))
    unexpected = a_model("demo/strong", prices=prices)

    (tally,) = stand.predict(unexpected, settings=limited(stand, usd_per_run=20))

    assert tally.budget_reached
    assert 20 <= tally.cost_usd <= 20 + 1.2


def test_a_model_without_prices_is_warned_about_where_there_is_a_budget(stand: Stand) -> None:
    unpriced = a_model("demo/strong")

    (bound,) = stand.predict(unpriced, settings=limited(stand, usd_per_run=20))
    (free,) = stand.predict(unpriced, launch=Launch("run-2", Mode.FRESH))

    assert "demo/strong: no price is known" in bound.warnings[0]
    assert (bound.asked, free.warnings) == (COUNT, [])

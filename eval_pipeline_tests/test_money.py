"""What answers cost, and budgets that hold over models, launches and days."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from eval_pipeline.evaluation.budget import (
    BudgetLimit,
    BudgetReached,
    Expected,
    Forecast,
    RunBudget,
    SpendTracker,
    with_cost,
)
from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.rate_limiter import StopSignal
from eval_pipeline.journal import Journal
from eval_pipeline.records.base import now
from eval_pipeline.records.model import Prices
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.settings.sections import Budget
from eval_pipeline_tests.builders import a_journal, a_judgement, a_prediction, a_run

PRICES = Prices(prompt=0.001, completion=0.01)


@pytest.mark.parametrize(
    ("usage", "prices", "cost", "estimated"),
    [
        pytest.param(
            Usage(input_tokens=10, output_tokens=5), PRICES, 0.06, True, id="from the prices"
        ),
        pytest.param(
            Usage(input_tokens=10, output_tokens=5, cost_usd=7, cost_estimated=False),
            PRICES,
            7,
            False,
            id="the gateway's own figure",
        ),
        pytest.param(
            Usage(input_tokens=10, output_tokens=5, cached_tokens=8),
            Prices(prompt=0.001, completion=0.01, cached=0.0001),
            0.0528,
            True,
            id="cached tokens at their price",
        ),
        pytest.param(
            Usage(input_tokens=10, output_tokens=5, cached_tokens=8),
            PRICES,
            0.06,
            True,
            id="cached tokens without one",
        ),
        pytest.param(
            Usage(input_tokens=10, output_tokens=5, reasoning_tokens=3),
            Prices(prompt=0.001, completion=0.01, reasoning=0.1),
            0.33,
            True,
            id="reasoning at its price",
        ),
        pytest.param(
            Usage(input_tokens=10, output_tokens=5, reasoning_tokens=3),
            PRICES,
            0.06,
            True,
            id="reasoning as output",
        ),
        pytest.param(
            Usage(input_tokens=10, output_tokens=5),
            Prices(prompt=0, completion=0, request=0.5),
            0.5,
            True,
            id="per request",
        ),
        pytest.param(
            Usage(input_tokens=10, output_tokens=5, cached_tokens=8, reasoning_tokens=3),
            Prices(prompt=0.001, completion=0.01, cached=0, reasoning=0),
            0.06,
            True,
            id="zero means no price of its own",
        ),
        pytest.param(
            Usage(input_tokens=10, output_tokens=5), Prices(), None, True, id="nobody knows"
        ),
        pytest.param(Usage(output_tokens=5), PRICES, None, True, id="half a usage"),
    ],
)
def test_a_cost_is_reported_or_else_estimated(
    usage: Usage, prices: Prices, cost: float | None, estimated: bool
) -> None:
    known = with_cost(usage, prices)

    assert known.cost_usd == (None if cost is None else pytest.approx(cost))
    assert known.cost_estimated is estimated


def test_a_forecast_begins_with_the_length_and_goes_on_with_what_was_seen() -> None:
    image: JsonValue = {"type": "image_url", "image_url": {"url": "data:" + "x" * 100_000}}
    content: JsonValue = [{"type": "text", "text": "w" * 400}, image]
    request = ChatRequest("m", ({"role": "user", "content": content},), max_tokens=50)
    forecast = Forecast(PRICES)

    guess = forecast.expect(request)
    forecast.learn(Usage(input_tokens=10, output_tokens=20, cost_usd=0.3))
    forecast.learn(Usage(input_tokens=10, output_tokens=40, cost_usd=0.5))
    known = forecast.expect(request)

    assert (guess.tokens, known.tokens) == (1150, 40)
    assert (guess.cost_usd, known.cost_usd) == pytest.approx((1100 * 0.001 + 50 * 0.01, 0.5))
    assert (guess.untried, known.untried) == (True, False)


def expecting(usd: float, *, untried: bool = False) -> Callable[[], Expected]:
    return lambda: Expected(tokens=1, cost_usd=usd, untried=untried)


def an_account(limit: float, spent: float = 0.0) -> RunBudget:
    return RunBudget([BudgetLimit("run", limit, spent)])


def test_a_spent_purse_lets_nothing_through_and_says_which() -> None:
    with pytest.raises(BudgetReached, match=r"^The budget of 5 USD per run is spent \(5\.2000 USD"):
        asyncio.run(an_account(5, spent=5.2).reserve(expecting(0.1), StopSignal()))


def test_one_request_may_always_try_what_is_left() -> None:
    account = an_account(1, spent=0.99)

    asyncio.run(account.reserve(expecting(50), StopSignal()))
    account.settle(50, 0.02)

    with pytest.raises(BudgetReached):
        account.limits[0].check()


def test_near_the_end_requests_wait_for_what_others_really_cost() -> None:
    account, halt = an_account(1.0), StopSignal()
    begun: list[int] = []

    async def one(number: int) -> None:
        await account.reserve(expecting(0.4), halt)
        begun.append(number)
        await asyncio.sleep(0.01 * number)
        account.settle(0.4, 0.1)

    async def work() -> None:
        tasks = [asyncio.create_task(one(number)) for number in range(1, 7)]
        await asyncio.sleep(0)
        at_first = len(begun)
        await asyncio.gather(*tasks)
        assert at_first == 2

    asyncio.run(work())

    assert account.limits[0].spent_usd == pytest.approx(0.6)
    assert account.limits[0].reserved_usd == pytest.approx(0)


def test_until_the_first_request_has_ended_no_other_is_made() -> None:
    account, halt = an_account(100.0), StopSignal()
    forecast = Forecast(Prices())
    at_once, most = 0, []

    async def one() -> None:
        nonlocal at_once
        reserved = await account.reserve(lambda: forecast.expect(ChatRequest("m", ())), halt)
        at_once += 1
        most.append(at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        forecast.learn(Usage(input_tokens=1, output_tokens=1, cost_usd=30.0))
        account.settle(reserved, 30.0)

    async def work() -> None:
        await asyncio.gather(*(one() for _ in range(3)))
        with pytest.raises(BudgetReached):
            await asyncio.gather(*(one() for _ in range(2)))

    asyncio.run(work())

    assert most == [1, 1, 2, 1]
    assert account.limits[0].spent_usd == 120


def test_a_failure_teaches_nothing_and_several_are_not_waited_out() -> None:
    forecast, request = Forecast(Prices()), ChatRequest("m", ())

    untried = []
    for _ in range(5):
        forecast.fail()
        untried.append(forecast.expect(request).untried)

    assert untried == [True, True, True, True, False]


def paid(usd: float, **changes: Any) -> Prediction:
    return a_prediction(usage=Usage(cost_usd=usd), **changes)


def judged_for(usd: float, prediction: Prediction) -> Judgement:
    return a_judgement(prediction).model_copy(update={"usage": Usage(cost_usd=usd)})


def spent_of(folder: Path, *records: Prediction | Judgement) -> dict[str, float]:
    """What each purse of run-1 of demo/strong already holds, with these in the journal."""
    journal = a_journal(folder, a_run(), *records)
    budget = Budget(usd_per_run=100, usd_per_model=100, usd_per_day=100)
    account = SpendTracker(budget, journal).run_budget("run-1", "demo/strong")
    return {limit.purpose: round(limit.spent_usd, 6) for limit in account.limits}


def test_earlier_launches_other_models_and_the_judge_count(tmp_path: Path) -> None:
    mine = paid(1, prediction_id="p1", finished_at=now())
    judgement = judged_for(2, mine)
    other_model = paid(4, prediction_id="p2", model="demo/weak", finished_at=now())
    other_run = paid(8, prediction_id="p3", run_id="run-2", finished_at=now())
    yesterday = paid(16, prediction_id="p4", finished_at=now() - timedelta(days=1))
    taken_over = paid(32, prediction_id="p5", carried_from="run-0", finished_at=now())

    spent = spent_of(tmp_path, mine, judgement, other_model, other_run, yesterday, taken_over)

    assert spent == {"run": 23, "model": 19, "day": 13}


def test_models_of_a_launch_draw_on_the_same_purse(tmp_path: Path) -> None:
    ledger = SpendTracker(Budget(usd_per_run=10, usd_per_model=6), Journal(tmp_path))
    strong, weak = (
        ledger.run_budget("run-1", "demo/strong"),
        ledger.run_budget("run-1", "demo/weak"),
    )

    asyncio.run(strong.reserve(expecting(1), StopSignal()))
    strong.settle(1, 7)

    with pytest.raises(BudgetReached, match="6 USD per model"):
        asyncio.run(strong.reserve(expecting(1), StopSignal()))
    asyncio.run(weak.reserve(expecting(1), StopSignal()))
    weak.settle(1, 3)
    with pytest.raises(BudgetReached, match="10 USD per run"):
        asyncio.run(weak.reserve(expecting(1), StopSignal()))


def test_models_that_nobody_has_tried_do_not_wait_for_each_other(tmp_path: Path) -> None:
    ledger = SpendTracker(Budget(usd_per_run=10), Journal(tmp_path))
    strong, weak = (
        ledger.run_budget("run-1", "demo/strong"),
        ledger.run_budget("run-1", "demo/weak"),
    )

    async def begin_both() -> None:
        await strong.reserve(expecting(1, untried=True), StopSignal())
        async with asyncio.timeout(5):
            await weak.reserve(expecting(1, untried=True), StopSignal())

    asyncio.run(begin_both())

    assert strong.limits[0] is weak.limits[0]
    assert strong.limits[0].underway == 2


def test_without_a_budget_nothing_is_looked_up(tmp_path: Path) -> None:
    missing = Journal(tmp_path / "not there")

    account = SpendTracker(Budget(), missing).run_budget("run-1", "demo/strong")

    assert account.limits == []

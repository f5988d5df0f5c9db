"""The simulated cluster does what arithmetic says where that can tell, and growth is fitted."""

from dataclasses import replace

import pytest

from bench.capacity import answers, from_tables
from bench.growth import Growth, fitted, with_growth
from bench.simulation import Costs, Outcome, Plan, simulated
from bench.tables import Table

FREE = Costs(start_s=1e-6, item_s=1e-9, publish_s=1e-6, publish_result_s=0, pair_s=0)
"""Nothing takes anything but the gateway."""
EVEN = Plan(models=8, items=1_000, requests_at_once=50, latency_s=5, spread=0, models_at_once=4)
ASKED_S = 1_000 * 5 / 50


@pytest.mark.parametrize(
    ("workers", "seconds"),
    [
        pytest.param(1, 8 * 2 * ASKED_S, id="one after the other, asked and judged"),
        pytest.param(2, 4 * 2 * ASKED_S, id="two at a time"),
        # Four are asked, then four while the first four are judged, then these.
        pytest.param(8, 3 * ASKED_S, id="no more than the gateway takes"),
        pytest.param(80, 3 * ASKED_S, id="however many workers there are"),
    ],
)
def test_without_any_costs_runs_take_what_the_gateway_takes(workers: int, seconds: float) -> None:
    went = simulated(replace(EVEN, workers=workers, cores=100), FREE)

    assert went.seconds == pytest.approx(seconds, rel=1e-3)


def test_processors_that_are_too_few_are_shared() -> None:
    costs, plan = replace(FREE, item_s=0.1), replace(EVEN, workers=8, models_at_once=8)

    plenty, few = (simulated(replace(plan, cores=cores), costs) for cores in (8, 2))

    # A process has the use of one processor: ten items a second, as the gateway would give.
    assert plenty.seconds == pytest.approx(2 * ASKED_S, rel=1e-3)
    assert few.seconds == pytest.approx(8 * 2 * 1_000 * 0.1 / 2, rel=1e-3)
    assert few.limit == "processors"
    assert few.shares["processors"] == pytest.approx(1, rel=1e-3)


def test_who_waits_to_publish_is_served_together_with_all_others() -> None:
    costs = replace(FREE, publish_s=60)
    plan = replace(EVEN, models=20, workers=20, models_at_once=20, cores=100)

    together, one_by_one = (
        simulated(replace(plan, coalesce=coalesce), costs) for coalesce in (True, False)
    )

    # All come at once: the first builds, then one of the others for all. That again, and between
    # them the first, which is ahead of the others since.
    assert together.builds == 5
    assert one_by_one.builds == 40
    assert one_by_one.seconds == pytest.approx(40 * 60 + ASKED_S, rel=0.1)
    assert together.seconds < one_by_one.seconds / 5
    assert one_by_one.limit == "publishing"
    assert together.longest_wait_s == pytest.approx(2 * 60, rel=1e-3)


def test_one_run_of_many_models_publishes_twice() -> None:
    plan = replace(EVEN, models_per_run=8, cores=100)

    went = simulated(plan, replace(FREE, publish_s=60, memory_mb=100, memory_result_mb=0.01))

    assert went.builds == 2
    assert went.seconds == pytest.approx(2 * 8 / 4 * ASKED_S + 2 * 60, rel=1e-3)
    assert went.memory_mb == pytest.approx(100 + 80, rel=1e-3)


def test_the_same_seed_gives_the_same_and_another_one_does_not() -> None:
    plan = replace(EVEN, spread=0.5, workers=3)

    once, again, other = (simulated(replace(plan, seed=seed), FREE).seconds for seed in (1, 1, 2))

    assert once == again != other


def test_growth_is_told_as_a_power() -> None:
    found = fitted([(10, 5), (100, 500), (1_000, 50_000)])
    table = with_growth("", ("size", "square", "even"), [("1,000", 4, 7), ("2,000", 16, 7)])

    assert found == pytest.approx(Growth(2, 0.05))
    assert found.at(50) == pytest.approx(125)
    assert table.rows[-1][1:] == pytest.approx((2, 0))


def test_what_was_measured_is_what_the_simulation_reckons_with() -> None:
    landing = with_growth(
        "", ("results", "CPU s", "peak MB"), [("10,000", 3.0, 200.0), ("110,000", 13.0, 300.0)]
    )
    deriving = with_growth(
        "", ("models", "pairs", "CPU s"), [("15", 105, 1.0), ("60", 1770, 2.665)]
    )

    costs = from_tables(landing, deriving)

    assert costs.publish_result_s == pytest.approx(1e-4) and costs.publish_s == pytest.approx(2)
    assert costs.memory_result_mb == pytest.approx(1e-3) and costs.memory_mb == pytest.approx(190)
    assert costs.pair_s == pytest.approx(0.001)


def test_there_is_an_answer_for_every_number_of_workers() -> None:
    table: Table = answers(Costs(), sizes=[(20, 10)])

    assert [row[2] for row in table.rows] == [1, 10, 100, 1, 10, 100]
    assert Outcome(1, 1, 0, {"gateway": 0.2, "processors": 0.1}, 0).limit == "gateway, hardly"

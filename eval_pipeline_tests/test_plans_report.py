"""Plans in a terminal and as JSON: numbers that can be read, budgets that will or will not do."""

import json
from io import StringIO

import pytest
from rich.console import Console

from eval_pipeline.evaluation.estimate import Estimate
from eval_pipeline.evaluation.plan import Limit, ModelPlan
from eval_pipeline.evaluation.plan_table import MOST_TOLD, as_json, plan_lines, plan_table

LENGTH = "by the length of the questions"
UNPRICED = Estimate(100, 50_000, 100_000, None, LENGTH)


def usd(cost: float, calls: int = 10, by: str = LENGTH) -> Estimate:
    return Estimate(calls, 100 * calls, 1000 * calls, cost, by)


def a_plan(model: str = "vendor/name", **changes: object) -> ModelPlan:
    values: dict[str, object] = {"simulated": False, "experiment": "default"}
    return ModelPlan(model, **{**values, **changes})  # type: ignore[arg-type]


def of_run(limit: float, left: float, run_id: str | None = None) -> Limit:
    return Limit("run", run_id, None, limit, left)


def of_model(model: str, limit: float, left: float) -> Limit:
    return Limit("model", None, model, limit, left)


def of_day(limit: float, left: float) -> Limit:
    return Limit("day", None, None, limit, left)


def shown(*plans: ModelPlan, width: int = 80) -> str:
    output = StringIO()
    Console(file=output, width=width, force_terminal=True, color_system=None).print(
        plan_table(plans)
    )
    return output.getvalue()


def about_budgets(*plans: ModelPlan) -> list[str]:
    return [line for line in plan_lines(plans) if "budget" in line]


def test_the_dearest_model_comes_first_and_the_sum_last() -> None:
    plans = [
        a_plan("vendor/cheap", planned=10, asking=usd(0.001)),
        a_plan("vendor/dear", planned=10, asking=usd(1.5), judging=usd(2.0)),
        a_plan("vendor/unknown", planned=100, asking=UNPRICED),
    ]

    lines = [" ".join(line.split()) for line in shown(*plans).splitlines()]
    rows = [line for line in lines if line.startswith(("vendor/", "together"))]

    assert rows == [
        "vendor/dear new 10 0 10 11.0 k 1.50 10 2.00",
        "vendor/cheap new 10 0 10 11.0 k <0.01 0 0.00",
        "vendor/unknown new 100 0 100 150.0 k ? 0 0.00",
        "together 120 0 120 172.0 k 1.50 10 2.00",
    ]


@pytest.mark.parametrize("width", [60, 80])
def test_a_plan_fits_into_a_narrow_terminal(width: int) -> None:
    long = a_plan(
        "a-vendor-of-models/" + "very-" * 10 + "large",
        run_id="0123456789abcdef",
        planned=250_000,
        answered=125_000,
        asking=Estimate(125_000, 10**9, 10**9, 12_480.5, LENGTH),
        judging=usd(1_000, 250_000),
    )

    lines = shown(long, width=width).splitlines()

    assert max(map(len, lines)) <= width
    (line,) = [line for line in lines if "01234567 " in line]
    assert " 125,000 12,480.50 " in line
    assert " 2,000.0 M " in shown(long, width=120)


def test_simulated_models_are_called_so() -> None:
    simulated = a_plan("demo/strong", simulated=True, asking=usd(1))
    real = a_plan("vendor/name", asking=usd(1))

    assert "SIMULATED" in shown(simulated)
    assert "demo/strong (simulated)" in shown(simulated, real, width=120)
    assert "SIMULATED" not in shown(simulated, real)
    assert any("nobody is paid" in line for line in plan_lines([simulated]))
    assert not any("nobody is paid" in line for line in plan_lines([real]))


def test_the_estimate_says_what_it_is_an_estimate_of_and_what_it_rests_on() -> None:
    plans = [
        a_plan("a/known", asking=usd(3, 12_000, "by 200 earlier answers"), carried=7),
        a_plan("b/new", asking=usd(1.2, 480), judging=usd(0.5, 480)),
        a_plan("c/unpriced", asking=Estimate(5, 0, 0, None, LENGTH)),
    ]

    told = plan_lines(plans)

    assert told[0] == (
        "Estimate for 3 models: 12,485 calls, 13.7 M tokens, about 4.20 USD; at most 480 verdicts, "
        "528.0 k tokens, about 0.50 USD; together about 4.70 USD."
    )
    assert told[1].startswith("It rests for 1 model on what earlier answers took, and for 2 models")
    assert told[2] == "Not in the cost: what nobody knows the price of, at 1 model."
    assert told[3] == "Taken over from earlier runs, at no cost: 7 answers."
    assert told[-1] == "Nobody was asked, and nothing was changed."


def test_of_a_model_that_is_new_to_a_suite_both_are_told() -> None:
    plan = a_plan("a/known", asking=usd(3, 12, f"by 200 earlier answers and {LENGTH}"))

    assert plan_lines([plan])[1].startswith(
        "It rests for 1 model on what earlier answers took, and for 1 model, in suites without "
        "any, on the length of the questions and 1,000 tokens per reply"
    )


def test_where_nothing_is_left_there_is_nothing_to_estimate() -> None:
    done = a_plan(planned=3, answered=3, limits=(of_run(20, 19),))

    assert plan_lines([done]) == [
        "Nothing is left to ask or to judge.",
        "Nobody was asked, and nothing was changed.",
    ]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((), []),
        (
            (of_run(20, 18),),
            ["The budget of 20 USD per run will do: about 10.00 USD are needed, 18.00 are left."],
        ),
        (
            (of_run(20, 8),),
            [
                "The budget of 20 USD per run will not do: about 10.00 USD are needed, 8.00 are "
                "left.",
                "Reached first, when about 80% is paid for: the budget of 20 USD per run.",
            ],
        ),
        (
            (of_run(20, -0.3),),
            [
                "The budget of 20 USD per run will not do: about 10.00 USD are needed, 0.00 are "
                "left.",
                "Reached first, when about 0% is paid for: the budget of 20 USD per run.",
            ],
        ),
        (
            (of_day(9, 5), of_run(20, 8), of_model("vendor/name", 50, 50)),
            [
                "The budget of 20 USD per run will not do: about 10.00 USD are needed, 8.00 are "
                "left.",
                "The budget of 50 USD per model will do: about 10.00 USD are needed, 50.00 are "
                "left.",
                "The budget of 9 USD per day will not do: about 10.00 USD are needed, 5.00 are "
                "left.",
                "Reached first, when about 50% is paid for: the budget of 9 USD per day.",
            ],
        ),
    ],
)
def test_each_budget_is_compared_with_what_is_needed(
    limits: tuple[Limit, ...], expected: list[str]
) -> None:
    plan = a_plan(asking=usd(7), judging=usd(3), limits=limits)

    assert about_budgets(plan) == expected


def test_of_budgets_per_model_those_are_named_that_will_not_do() -> None:
    def costing(model: str, cost: float) -> ModelPlan:
        limits = (of_run(100, 100), of_model(model, 5, 5))
        return a_plan(model, asking=usd(cost), limits=limits)

    told = about_budgets(costing("a/a", 10), costing("b/b", 1), costing("c/c", 20))
    fine = about_budgets(costing("a/a", 1), costing("b/b", 1))

    assert told == [
        "The budget of 100 USD per run will do: about 31.00 USD are needed, 100.00 are left.",
        "The budget of 5 USD per model will not do for 2 of 3: c/c (about 20.00 USD are needed, "
        "5.00 are left), a/a (about 10.00 USD are needed, 5.00 are left).",
        "Reached first, when about 25% is paid for: the budget of 5 USD per model (c/c).",
    ]
    assert fine[-1] == "The budget of 5 USD per model will do for each of 2."


def test_runs_that_go_on_have_a_budget_each() -> None:
    plans = [
        a_plan("a/a", asking=usd(5), limits=(of_run(20, 1, "0123456789"),)),
        a_plan("b/b", asking=usd(5), limits=(of_run(20, 20, "abcdefghij"),)),
    ]

    assert about_budgets(*plans)[0] == (
        "The budget of 20 USD per run will not do for 1 of 2: run 01234567 (about 5.00 USD are "
        "needed, 1.00 are left)."
    )


def test_a_model_that_is_not_asked_is_told_with_the_reason() -> None:
    plan = a_plan(why_not="vendor/name has no run abc; its latest runs: none.")

    assert "not asked" in shown(plan)
    assert "vendor/name has no run abc; its latest runs: none." in plan_lines([plan])


def test_of_many_warnings_some_are_told() -> None:
    plans = [a_plan(f"vendor/m{n}", asking=usd(1), warnings=(f"Warning {n}",)) for n in range(60)]

    told = [line for line in plan_lines(plans) if "arning" in line]

    assert len(told) == MOST_TOLD + 1
    assert told[-1] == "and 50 more warnings; --json has them all."


def test_programs_get_every_number_and_null_for_what_is_unknown() -> None:
    plans = [
        a_plan("a/unpriced", items=50, samples=2, planned=100, asking=UNPRICED),
        a_plan(
            "b/priced",
            run_id="old",
            planned=30,
            answered=15,
            carried=5,
            asking=usd(2),
            judging=usd(1, 5),
            limits=(of_run(2, 1.5, "old"),),
            warnings=("Mind this.",),
        ),
    ]

    told = json.loads(json.dumps(as_json(plans)))

    priced, unpriced = told["models"]
    assert (priced["model"], priced["run_id"], priced["warnings"]) == (
        "b/priced",
        "old",
        ["Mind this."],
    )
    assert [priced[name] for name in ("planned", "answered", "carried", "calls")] == [30, 15, 5, 10]
    assert (priced["cost_usd"], priced["judge_calls"], priced["judge_cost_usd"]) == (2, 5, 1)
    assert (unpriced["cost_usd"], unpriced["samples"], unpriced["run_id"]) == (None, 2, None)
    assert told["total"]["calls"] == 110
    assert told["total"]["cost_usd"] == 2
    assert told["budgets"] == [
        {
            "purpose": "run",
            "run_id": "old",
            "model": None,
            "limit_usd": 2,
            "left_usd": 1.5,
            "needed_usd": 3,
            "holds": False,
        }
    ]

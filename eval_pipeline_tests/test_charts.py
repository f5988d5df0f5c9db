"""Charts: points stand where their numbers say, within the frame."""

from datetime import timedelta
from typing import Any

import pytest

from eval_pipeline.viewer.charts import (
    HEIGHT,
    WIDTH,
    Chart,
    calibration_chart,
    cost_chart,
    history_chart,
)
from eval_pipeline_tests.builders import NOON


def a_row(model: str, accuracy: float, cost: float | None, **changes: Any) -> dict[str, Any]:
    return {
        "model": model,
        "accuracy": accuracy,
        "accuracy_low": accuracy - 0.1,
        "accuracy_high": accuracy + 0.1,
        "cost_usd": cost,
        "simulated": False,
        "experiment": "default",
        "opened_at": NOON,
        "complete": True,
        **changes,
    }


def is_within(chart: Chart) -> bool:
    points = [(dot.x, dot.y) for dot in chart.dots]
    return all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)


def test_the_front_is_of_those_whom_nobody_cheaper_beats() -> None:
    rows = [
        a_row("a", 0.9, 10.0),
        a_row("b", 0.5, 0.1),
        a_row("c", 0.4, 1.0),
        a_row("d", 0.8, None),
    ]

    chart = cost_chart(rows, ["1", "2", "3", "4"])

    assert chart is not None and is_within(chart)
    assert [(dot.kind, dot.link) for dot in chart.dots] == [
        ("front", "1"),
        ("front", "2"),
        ("", "3"),
    ]
    assert chart.dots[0].x > chart.dots[2].x > chart.dots[1].x
    assert chart.dots[0].y < chart.dots[1].y
    assert [mark.text for mark in chart.across] == ["0.1", "0.2", "0.5", "1", "2", "5", "10"]


def test_simulated_models_do_not_outshine_real_ones() -> None:
    rows = [a_row("real", 0.5, 1.0), a_row("demo", 0.9, 0.1, simulated=True)]

    chart = cost_chart(rows, ["", ""])

    assert chart is not None
    assert [dot.kind for dot in chart.dots] == ["front", ""]


@pytest.mark.parametrize("cost", [None, 0.0, float("nan"), float("inf")])
def test_without_costs_there_is_no_chart_of_them(cost: float | None) -> None:
    assert cost_chart([a_row("a", 0.5, cost)], [""]) is None


@pytest.mark.parametrize("costs", [[1e-9, 1e9], [5.0], [1.0, 1.0], [0.011, 0.012]])
def test_any_costs_have_a_few_marks(costs: list[float]) -> None:
    chart = cost_chart([a_row(str(cost), 0.5, cost) for cost in costs], [""] * len(costs))

    assert chart is not None and is_within(chart)
    assert len(chart.across) <= 8


def test_history_runs_from_left_to_right() -> None:
    later = a_row("a", 0.9, 1.0, opened_at=NOON + timedelta(days=40), complete=False)
    rows = [a_row("a", 0.5, 1.0), later, {**a_row("a", 0.5, 1.0), "accuracy": None}]

    chart = history_chart(rows, ["first", "later", "none"])

    assert chart is not None and is_within(chart)
    first, second = chart.dots
    assert first.x < second.x and (first.kind, second.kind) == ("", "part")
    assert history_chart([], []) is None


def test_calibration_is_beside_what_would_be_perfect() -> None:
    bins = [
        {**a_row("", 0.25, None), "mean_confidence": 0.25, "size": 100},
        {**a_row("", 0.5, None), "mean_confidence": 1.0, "size": 100},
    ]

    chart = calibration_chart(bins)

    assert chart is not None and is_within(chart)
    (x0, y0), (x1, y1) = chart.line
    on, below = chart.dots
    assert on.x == pytest.approx(x0 + (x1 - x0) / 4) and on.y == pytest.approx(y0 + (y1 - y0) / 4)
    assert below.y > y1 and calibration_chart([]) is None

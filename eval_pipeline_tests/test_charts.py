"""Charts: what they show, what they refuse to invent, and that any name can be drawn."""

import re
import time
import xml.etree.ElementTree as ET
from base64 import b64decode
from collections.abc import Callable
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.results.charts import (
    accuracy_chart,
    calibration_chart,
    category_chart,
    cost_chart,
    history_chart,
    pareto_front,
)
from eval_pipeline.results.svg import Chart, shown, width
from eval_pipeline_tests.builders import NOON

Draw = Callable[[list[dict[str, Any]]], Chart]
NAN = float("nan")
SVG = "{http://www.w3.org/2000/svg}"
SMALL = st.integers(0, 6).map(float)
HOSTILE = [
    r"a$\frac{1}{$b_",
    "two\nlines\tand\x00\x1b[31m",
    "\u202eright to left",
    "مرحبا/نموذج",
    "模型/通义千问🚀",
    "half a pair \ud83d",
    "\ufffe\uffff",
    "x" * 150 + "y" * 150,
    "W" * 300,
    "a" + "\u0301" * 50,
    "<script>alert(1)</script>&amp;",
    "\"'><style>*{}</style>",
    "]]><!--",
    "",
]


def a_row(model: str = "lab/one", **changes: Any) -> dict[str, Any]:
    """A row with the columns of every chart, so that each chart can take it."""
    accuracy = changes.get("accuracy", 0.5)
    row = {
        "model": model,
        "experiment": "default",
        "accuracy": accuracy,
        "accuracy_low": None if accuracy is None else accuracy - 0.05,
        "accuracy_high": None if accuracy is None else accuracy + 0.05,
        "rank_low": 1,
        "rank_high": 2,
        "ties": "A",
        "judged": 100,
        "cost_usd": 1.5,
        "simulated": False,
        "category": "math",
        "bin": 0,
        "mean_confidence": 0.8,
        "size": 20,
        "opened_at": NOON,
        "complete": True,
    }
    return row | changes


def many(count: int) -> list[dict[str, Any]]:
    return [
        a_row(
            f"lab-{n}/model-{n}",
            accuracy=0.1 + 0.8 * n / count,
            cost_usd=0.01 * 1.02 ** (n * 37 % 401),
        )
        for n in range(count)
    ]


def elements(chart: Chart, name: str) -> list[ET.Element]:
    return list(ET.fromstring(chart.svg()).iter(SVG + name))


def words(chart: Chart) -> list[str]:
    return ["".join(text.itertext()) for text in elements(chart, "text")]


def dots(chart: Chart) -> list[ET.Element]:
    """The marks with their place, as circles or as the paths of diamonds."""
    found = [*elements(chart, "circle"), *elements(chart, "path")]
    return [one for one in found if "dot" in one.get("class", "")]


def place(mark: ET.Element) -> tuple[float, float]:
    if mark.tag == SVG + "circle":
        return float(mark.get("cx", "")), float(mark.get("cy", ""))
    x, y = re.match(r"M(\S+) (\S+?)l", mark.get("d", "")).groups()  # type: ignore[union-attr]
    return float(x), float(y) + 6


def about(mark: ET.Element) -> str:
    return mark.findtext(SVG + "title", "")


every_chart = pytest.mark.parametrize(
    "draw", [accuracy_chart, cost_chart, calibration_chart, category_chart]
)


@every_chart
def test_a_chart_has_a_title_a_description_and_a_table_behind_it(draw: Draw) -> None:
    chart = draw([a_row("lab/one"), a_row("lab/two")])

    root = ET.fromstring(chart.svg())

    assert [one.tag for one in root][:2] == [SVG + "title", SVG + "desc"]
    assert root.findtext(SVG + "title") == chart.title
    assert len(root.findtext(SVG + "desc", "")) > 20
    assert [cells[0] for cells in chart.table] == ["lab/one", "lab/two"]
    assert {len(cells) for cells in chart.table} == {len(chart.columns)}


@every_chart
@pytest.mark.parametrize("nothing", [[], [a_row(accuracy=None)], [a_row(accuracy=NAN)]])
def test_without_a_judgement_a_chart_says_so(draw: Draw, nothing: list[dict[str, Any]]) -> None:
    assert "Nothing judged yet" in words(draw(nothing))


@every_chart
def test_the_same_rows_give_the_same_file_in_any_order(draw: Draw) -> None:
    given = many(5)

    assert draw(given).svg() == draw(given[::-1]).svg()


@every_chart
def test_any_name_can_be_drawn_and_is_shown_as_it_is(draw: Draw) -> None:
    chart = draw([a_row(name, category=name, experiment=name) for name in HOSTILE])

    svg, inline = chart.svg(), chart.__html__()
    said = " ".join([*words(chart), *(cells[0] for cells in chart.table)])

    assert [name for name in HOSTILE if shown(name, 12)[:6] not in said] == []
    assert "<script" not in svg + inline and svg.count("<style>") == 1
    assert "<style" not in inline and "style=" not in inline
    ET.fromstring(inline)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lab/model", "lab/model"),
        ("a\n b\tc", "a b c"),
        ("\u202ea\x00", "\ufffda\ufffd"),
        ("abcdefghijklm", "abcdef…ijklm"),
        ("abcdefghijkl", "abcdefghijkl"),
        ("a" + "\u0301" * 9 + "b", "a\u0301\u0301b"),
    ],
)
def test_names_are_cleaned_and_shortened_in_the_middle(name: str, expected: str) -> None:
    assert shown(name, 12) == expected


@every_chart
def test_simulated_models_are_called_so(draw: Draw) -> None:
    real, invented = a_row("lab/real"), a_row("demo/strong", simulated=True)

    alone, mixed, neither = (
        " ".join(words(draw(given))) for given in ([invented], [real, invented], [real])
    )

    assert "(SIMULATED models: their skill is invented)" in alone
    assert "(some models are SIMULATED" in mixed
    assert "(simulated)" in mixed
    assert "simulated" not in neither.lower()


@every_chart
def test_401_models_are_drawn_within_a_second(draw: Draw) -> None:
    given = many(401)
    began = time.process_time()

    svg = draw(given).svg()

    assert time.process_time() - began < 1
    assert len(svg) < 500_000


def test_accuracy_lists_the_best_first_with_rank_range_and_aligned_letters() -> None:
    chart = accuracy_chart(
        [
            a_row("lab/worse", accuracy=0.4, rank_low=2, rank_high=3, ties="BC", judged=1234),
            a_row("lab/best", accuracy=0.9, rank_low=1, rank_high=1, ties="A"),
            a_row("lab/unknown", accuracy=None, rank_low=None, rank_high=None, ties=None, judged=0),
        ]
    )

    said, (best, worse) = words(chart), dots(chart)

    assert [text for text in said if "lab/" in text] == ["lab/best", "lab/worse", "lab/unknown"]
    assert {"90.0%", "40.0%", "1,234", "1", "2–3", "A\u00a0\u00a0"} <= set(said)  # noqa: RUF001
    assert [text for text in said if text.strip() == "BC"] == ["\u00a0BC"]
    assert place(best)[0] > place(worse)[0] and place(best)[1] < place(worse)[1]
    assert about(best) == "lab/best: 90.0% (85.0% to 95.0%)"


def test_a_page_of_dagster_gets_the_best_only_and_says_how_many_are_left_out() -> None:
    markdown = accuracy_chart(many(60), most=50).markdown()

    start, _, content = markdown.removesuffix(")").partition("(data:image/svg+xml;base64,")
    svg = b64decode(content, validate=True).decode()
    assert start == "![Accuracy]"
    assert "The best 50 are shown; left out: 10." in svg
    assert svg.count("<title>") == 1
    ET.fromstring(svg)


def test_models_without_a_cost_are_named_but_not_drawn() -> None:
    chart = cost_chart(
        [
            a_row("lab/paid", cost_usd=2.0),
            a_row("lab/free", cost_usd=0.0),
            a_row("lab/unknown", cost_usd=None),
            a_row("lab/endless", cost_usd=float("inf")),
        ]
    )

    assert [about(one) for one in dots(chart)] == ["lab/paid: 50.0% (45.0% to 55.0%) for $2.00"]
    assert "Cost nothing, so not drawn: lab/free." in words(chart)
    assert "Cost unknown, so not drawn: lab/endless, lab/unknown." in words(chart)
    assert "No costs are known" in words(cost_chart([a_row(cost_usd=None)]))


def test_dearer_is_further_right_better_is_higher_and_the_front_has_another_shape() -> None:
    rows = [
        a_row("lab/a", accuracy=0.9, cost_usd=10.0),
        a_row("lab/b", accuracy=0.5, cost_usd=0.1),
        a_row("lab/c", accuracy=0.4, cost_usd=1.0),
    ]

    chart = cost_chart(rows, ["to-a", "to-b", "to-c"])

    by = {about(mark)[:5]: mark for mark in dots(chart)}
    a, b, c = (place(by[name]) for name in ("lab/a", "lab/b", "lab/c"))
    assert a[0] > c[0] > b[0] and a[1] < b[1] < c[1]
    assert [one for one, mark in by.items() if mark.tag == SVG + "path"] == ["lab/b", "lab/a"]
    assert {link.get("href") for link in elements(chart, "a")} == {"to-a", "to-b", "to-c"}


def test_simulated_models_do_not_push_real_ones_off_the_front() -> None:
    real = a_row("lab/real", accuracy=0.3, cost_usd=9)
    invented = a_row("demo/strong", accuracy=0.9, cost_usd=1, simulated=True)

    chart = cost_chart([real, invented])

    best = [about(mark) for mark in dots(chart) if "best" in mark.get("class", "")]
    assert [text[:8] for text in best] == ["lab/real"]
    assert "left out of this comparison" in chart.about


@pytest.mark.parametrize("costs", [[1e-9, 1e9], [5.0], [1.0, 1.0], [0.011, 0.012]])
def test_any_costs_have_a_few_marks_and_stay_in_the_frame(costs: list[float]) -> None:
    chart = cost_chart([a_row(f"lab/{at}", cost_usd=cost) for at, cost in enumerate(costs)])

    marks = [text for text in words(chart) if text.startswith("$")]
    assert len(marks) <= 8
    assert all(56 <= place(mark)[0] <= 940 for mark in dots(chart))


@pytest.mark.parametrize("count", [3, 60, 401])
def test_names_in_the_cost_chart_do_not_overlap(count: int) -> None:
    chart = cost_chart(many(count))

    names = [one for one in elements(chart, "text") if one.get("class") == "name"]
    boxes = [
        (float(one.get("x", "")), float(one.get("y", "")), width("".join(one.itertext())))
        for one in names
    ]
    clashes = [
        (one, other)
        for one, other in combinations(boxes, 2)
        if abs(one[1] - other[1]) < 12
        and one[0] < other[0] + other[2]
        and other[0] < one[0] + one[2]
    ]
    assert len(names) >= min(count, 10) and clashes == []
    assert count == len(names) or f"{count - len(names)} points have no room" in chart.about


@pytest.mark.parametrize(
    ("costs", "accuracies", "front"),
    [
        ([], [], []),
        ([3.0], [0.1], [0]),
        ([3, 1, 2], [0.9, 0.5, 0.4], [1, 0]),
        ([1, 1], [0.5, 0.6], [1]),
        ([1, 1], [0.5, 0.5], [0, 1]),
        ([2, 1], [0.5, 0.5], [1]),
        ([NAN, 1, 2], [0.9, NAN, 0.1], [2]),
    ],
)
def test_the_front_holds_who_is_not_beaten(
    costs: list[float], accuracies: list[float], front: list[int]
) -> None:
    assert pareto_front(costs, accuracies) == front


@given(st.lists(st.tuples(SMALL, SMALL), max_size=25))
@settings(deadline=None, max_examples=60)
def test_exactly_those_are_on_the_front_whom_nobody_beats(pairs: list[tuple[float, float]]) -> None:
    costs, accuracies = [cost for cost, _ in pairs], [accuracy for _, accuracy in pairs]

    front = pareto_front(costs, accuracies)

    unbeaten = [
        one
        for one, (cost, accuracy) in enumerate(pairs)
        if not any(c <= cost and a >= accuracy and (c, a) != (cost, accuracy) for c, a in pairs)
    ]
    assert sorted(front) == unbeaten
    assert [costs[one] for one in front] == sorted(costs[one] for one in front)


def test_calibration_shows_thirty_models_and_says_how_many_more_there_are() -> None:
    chart = calibration_chart(many(31))

    names = [text for text in words(chart) if text.startswith("lab-")]
    assert names == [f"lab-{n}/model-{n}" for n in range(30, 0, -1)]
    assert "The best 30 are shown; left out: 1." in words(chart)


def test_calibration_is_beside_what_would_be_perfect_and_larger_bins_have_larger_points() -> None:
    chart = calibration_chart(
        [
            a_row(accuracy=0.25, mean_confidence=0.25, size=10),
            a_row(accuracy=0.5, mean_confidence=1.0, size=90),
            a_row(accuracy=None, mean_confidence=None, size=0),
        ]
    )

    (even,) = [one for one in elements(chart, "line") if one.get("class") == "even"]
    x0, y0, x1, y1 = (float(even.get(name, "")) for name in ("x1", "y1", "x2", "y2"))
    on, below = dots(chart)
    assert place(on) == pytest.approx((x0 + (x1 - x0) / 4, y0 + (y1 - y0) / 4))
    assert place(below)[1] > y1 and float(on.get("r", "")) < float(below.get("r", ""))


def test_a_cell_without_judgements_stays_empty_and_is_no_zero() -> None:
    chart = category_chart(
        [
            a_row("lab/a", category="math", accuracy=0.0, judged=10),
            a_row("lab/a", category="art", accuracy=0.75, judged=20),
            a_row("lab/b", category="art", accuracy=0.25, judged=30),
            a_row("lab/b", category="math", accuracy=None, judged=0),
        ]
    )

    said = words(chart)
    assert [text for text in said if text in {"75", "0", "25"}] == ["75", "0", "25"]
    assert [text for text in said if "(n" in text] == ["art (n 20 to 30)", "math (n 10)"]
    assert [text for text in said if "lab/" in text] == ["lab/a", "lab/b"]
    (none,) = [one for one in elements(chart, "rect") if one.get("class") == "none"]
    assert about(none) == "lab/b, math (n 10): nothing judged"


def test_history_runs_from_left_to_right_and_incomplete_runs_are_hollow() -> None:
    later = a_row(accuracy=0.9, opened_at=NOON + timedelta(days=40), complete=False)

    chart = history_chart([a_row(), later, a_row(accuracy=None)], ["first", "later", "none"])

    assert chart is not None
    first, second = dots(chart)
    assert place(first)[0] < place(second)[0] and place(first)[1] > place(second)[1]
    assert (first.get("class"), second.get("class")) == ("dot", "dot hollow")
    assert history_chart([], []) is None

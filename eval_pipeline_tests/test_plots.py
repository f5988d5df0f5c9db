"""The pictures: what they show, what they refuse to invent, and that any name can be drawn."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from base64 import b64decode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from PIL import Image

from eval_pipeline.plots import (
    accuracy_plot,
    as_markdown,
    category_plot,
    cost_plot,
    png,
    reliability_plot,
    svg,
    write_plots,
)
from eval_pipeline.plots.categories import readable_on
from eval_pipeline.plots.labels import shown
from eval_pipeline.stats.pareto import pareto_front

Plot = Callable[[pd.DataFrame], Figure]
NAN = float("nan")
SMALL = st.integers(0, 6).map(float)
HOSTILE = [
    "$x^{",
    r"a$\frac{1}{$b_",
    "two\nlines\tand\x00\x1b[31m",
    "\u202eright to left",
    "مرحبا/نموذج",
    "模型/通义千问🚀",
    "half a pair \ud83d",
    "\ufffe\uffff",
    "x" * 150 + "y" * 150,
    "\ufdfd" * 50,  # the widest sign of the font
    "W" * 300,
    "a" + "\u0301" * 50,
    "<script>alert(1)</script>&amp;",
    "",
]


def a_row(model: str = "lab/one", **changes: Any) -> dict[str, Any]:
    """A row with the columns of every plot, so that each plot can take it."""
    accuracy = changes.get("accuracy", 0.5)
    row = {
        "model": model,
        "experiment": "default",
        "accuracy": accuracy,
        "accuracy_low": accuracy - 0.05,
        "accuracy_high": accuracy + 0.05,
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
    }
    return row | changes


def rows(*given: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(given) or None, columns=list(a_row()))


def many(count: int) -> pd.DataFrame:
    return rows(
        *(
            a_row(f"lab-{n}/model-{n}", accuracy=0.1 + 0.8 * n / count, cost_usd=0.01 * 1.1**n)
            for n in range(count)
        )
    )


def words(figure: Figure) -> list[str]:
    """Every text of the figure as its SVG carries it, in the order of drawing."""
    found = ET.fromstring(svg(figure)).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(text.itertext()) for text in found]


def size(picture: bytes) -> tuple[int, int]:
    with Image.open(BytesIO(picture), formats=["PNG"]) as image:
        image.load()
        return image.size


every_plot = pytest.mark.parametrize(
    "plot", [accuracy_plot, cost_plot, reliability_plot, category_plot]
)


@every_plot
def test_a_single_row_is_drawn(plot: Plot) -> None:
    figure = plot(rows(a_row("lab/one")))

    width, height = size(png(figure))

    assert width > 900
    assert height > 200
    assert "lab/one" in words(figure)


@pytest.mark.slow
@pytest.mark.parametrize("plot", [accuracy_plot, category_plot])
def test_sixty_models_fit_on_a_page_and_into_markdown(plot: Plot) -> None:
    figure = plot(many(60))

    text = as_markdown(figure, "By [model]\n<b>")

    start, _, picture = text.removesuffix(")").partition("(data:image/png;base64,")
    width, height = size(b64decode(picture, validate=True))
    assert start == r"![By \[model\] \<b\>]"
    assert len(text) < 151_000
    assert width > 600
    assert height > 900


@every_plot
@pytest.mark.parametrize(
    "nothing",
    [pd.DataFrame(), rows(), rows(a_row(accuracy=NAN))],
    ids=["no columns", "no rows", "nothing judged"],
)
def test_without_a_judgement_a_plot_says_so(plot: Plot, nothing: pd.DataFrame) -> None:
    figure = plot(nothing)

    assert "Nothing judged yet" in words(figure)


@every_plot
def test_the_same_rows_give_the_same_bytes_in_any_order(plot: Plot) -> None:
    given = many(2)
    first, second = plot(given), plot(given.iloc[::-1])

    once, picture, again = svg(first), png(first), svg(first)

    assert once == again == svg(second)
    assert picture == png(second)


@every_plot
def test_any_name_can_be_drawn_and_stands_as_it_is(plot: Plot) -> None:
    figure = plot(rows(*(a_row(name, category=name, experiment=name) for name in HOSTILE)))

    said = " ".join(words(figure))

    assert [name for name in HOSTILE if shown(name, 12)[:6] not in said] == []
    assert size(png(figure)) > (0, 0)


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


@every_plot
def test_simulated_models_are_called_so(plot: Plot) -> None:
    real, invented = a_row("lab/real"), a_row("demo/strong", simulated=True)

    alone, mixed, neither = (
        " ".join(words(plot(given))) for given in (rows(invented), rows(real, invented), rows(real))
    )

    assert "(SIMULATED models: their skill is invented)" in alone
    assert "(some models are SIMULATED" in mixed
    assert "(simulated)" in mixed
    assert "simulated" not in neither.lower()


def test_accuracy_lists_the_best_first_with_rank_range_and_aligned_letters() -> None:
    given = rows(
        a_row("lab/worse", accuracy=0.4, rank_low=2, rank_high=3, ties="BC", judged=1234),
        a_row("lab/best", accuracy=0.9, rank_low=1, rank_high=1, ties="A"),
        a_row("lab/unknown", accuracy=NAN, rank_low=NAN, rank_high=NAN, ties=None, judged=0),
    )

    said = words(accuracy_plot(given))

    assert [text for text in said if "lab/" in text] == ["lab/best", "lab/worse", "lab/unknown"]
    assert {"90.0%", "40.0%", "1,234", "1", "2–3", "A"} <= set(said)  # noqa: RUF001
    assert [text.rstrip() for text in said if text.strip() == "BC"] == [" BC"]


def test_who_has_no_cost_is_named_but_not_drawn() -> None:
    given = rows(
        a_row("lab/paid", cost_usd=2.0),
        a_row("lab/free", cost_usd=0.0),
        a_row("lab/unknown", cost_usd=NAN),
        a_row("lab/endless", cost_usd=float("inf")),
    )

    said = words(cost_plot(given))

    assert "Cost nothing, so not drawn: lab/free." in said
    assert "Cost unknown, so not drawn: lab/endless, lab/unknown." in said
    assert "$2.00" in said
    assert "lab/free" not in said


def test_without_any_cost_the_cost_plot_says_so() -> None:
    figure = cost_plot(rows(a_row("lab/free", cost_usd=0.0)))

    assert "No costs are known" in words(figure)


@pytest.mark.parametrize(("costs", "scale"), [((1, 15), "linear"), ((1, 25), "log")])
def test_costs_far_apart_get_a_log_scale(costs: tuple[float, float], scale: str) -> None:
    figure = cost_plot(rows(*(a_row(f"lab/{cost}", cost_usd=cost) for cost in costs)))

    assert figure.axes[0].get_xscale() == scale


def test_simulated_models_do_not_push_real_ones_off_the_front() -> None:
    real = a_row("lab/real", accuracy=0.3, cost_usd=9)
    invented = a_row("demo/strong", accuracy=0.9, cost_usd=1, simulated=True)

    figure = cost_plot(rows(real, invented))

    (front,) = figure.axes[0].get_lines()
    assert np.asarray(front.get_ydata()).tolist() == [0.3]
    assert "left out of this comparison" in " ".join(words(figure))


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


@pytest.mark.slow
def test_reliability_shows_thirty_models_and_says_how_many_more_there_are() -> None:
    figure = reliability_plot(many(31))

    titles = [panel.get_title(loc="left") for panel in figure.axes]

    assert titles == [f"lab-{n}/model-{n}" for n in range(30, 0, -1)]
    assert any("The best 30 are shown; left out: 1." in text.get_text() for text in figure.texts)


def test_reliability_draws_larger_points_for_larger_bins_and_none_for_empty_ones() -> None:
    given = rows(
        a_row(mean_confidence=0.2, size=10),
        a_row(mean_confidence=0.7, size=90),
        a_row(mean_confidence=NAN, accuracy=NAN, size=0),
    )

    (panel,) = reliability_plot(given).axes

    points = panel.collections[-1]
    assert isinstance(points, PathCollection)
    small, large = points.get_sizes()
    assert np.asarray(points.get_offsets()).tolist() == [[0.2, 0.5], [0.7, 0.5]]
    assert small < large


def test_a_cell_without_judgements_stays_empty_and_is_no_zero() -> None:
    given = rows(
        a_row("lab/a", category="math", accuracy=0.0, judged=10),
        a_row("lab/a", category="art", accuracy=0.75, judged=20),
        a_row("lab/b", category="art", accuracy=0.25, judged=30),
        a_row("lab/b", category="math", accuracy=NAN, judged=0),
    )

    said = words(category_plot(given))

    assert [text for text in said if text in {"75", "0", "25"}] == ["75", "0", "25"]
    assert [text for text in said if "(n" in text] == ["art (n 20 to 30)", "math (n 10)"]
    assert [text for text in said if "lab/" in text] == ["lab/a", "lab/b"]


def test_two_rows_for_one_cell_are_refused() -> None:
    with pytest.raises(ValueError, match="one run and one judge"):
        category_plot(rows(a_row(), a_row()))


@pytest.mark.parametrize(
    ("colour", "ink"),
    [
        ((0, 0, 0), "white"),
        ((1, 1, 1), "black"),
        ((1, 0.9, 0.2), "black"),
        ((0, 0.1, 0.4), "white"),
    ],
)
def test_numbers_stand_out_from_their_cell(colour: tuple[float, ...], ink: str) -> None:
    assert readable_on(colour) == ink


def test_rare_colours_survive_in_markdown() -> None:
    cells = [a_row(f"lab/{n}", accuracy=0.1, judged=n + 1) for n in range(20)]
    figure = category_plot(rows(a_row("lab/bright", accuracy=1.0), *cells))

    picture = as_markdown(figure, "t").removesuffix(")").partition("base64,")[2]

    with Image.open(BytesIO(b64decode(picture))) as image:
        colours = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
    yellow = np.array([254, 232, 56])
    assert np.abs(colours - yellow).max(axis=1).min() < 20


def test_plots_are_written_whole_and_leave_nothing_else(tmp_path: Path) -> None:
    folder, figure = tmp_path / "reports" / "plots", accuracy_plot(many(2))
    write_plots(folder, {"accuracy": cost_plot(many(2))})

    written = write_plots(folder, {"accuracy": figure})

    assert written == [folder / "accuracy.png", folder / "accuracy.svg"]
    assert sorted(folder.iterdir()) == written
    assert [path.read_bytes() for path in written] == [png(figure), svg(figure)]


def test_threads_draw_at_once_and_global_settings_stay_as_they_were() -> None:
    before, given = dict(mpl.rcParams), many(1)
    alone = svg(accuracy_plot(given))

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: svg(accuracy_plot(given)), range(4)))

    assert set(together) == {alone}
    assert dict(mpl.rcParams) == before


def test_the_users_own_settings_of_matplotlib_change_nothing() -> None:
    plain = png(accuracy_plot(many(2)))

    with mpl.rc_context({"font.size": 20, "axes.facecolor": "black", "svg.hashsalt": "x"}):
        styled = png(accuracy_plot(many(2)))

    assert styled == plain


def test_starting_the_pipeline_does_not_load_matplotlib() -> None:
    code = "import sys, eval_pipeline.cli, eval_pipeline.definitions as d; "
    code += "sys.exit('matplotlib' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

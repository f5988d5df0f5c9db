"""Tables in terminals of any width: names that differ, numbers in one line, nothing in silence."""

from io import StringIO

import pytest
from rich.console import Console

from eval_pipeline.reporting.cells import a_table, accuracy, named, usd
from eval_pipeline.reporting.fitting import Cell, FittedTable
from eval_pipeline.reporting.names import told_apart
from eval_pipeline.results.tables.listing import due_table

LONG = "some-provider/a-very-long-model-name-2026-05-12-preview"
NEXT_DAY = LONG.replace("12", "13")
TWO_PLACES = ["…1-x-2…", "…1-y-2…", "…1-x-3…"]
RATE = {"accuracy": 0.614, "accuracy_low": 0.58, "accuracy_high": 0.64}


def printed(table: FittedTable, width: int, *, terminal: bool = True) -> str:
    paper = StringIO()
    Console(width=width, file=paper, force_terminal=terminal, color_system=None).print(table)
    return paper.getvalue()


def a_board(*models: Cell, reason: str = "-") -> FittedTable:
    table = a_table(
        "Board",
        *("run", "model", "judged", "accuracy", "USD", "why"),
        right=("judged", "accuracy", "USD"),
        prose=("why",),
        dropped_first=("USD",),
        caption="Rates.",
    )
    for number, model in enumerate(models):
        cost = usd(1234.5678 if number else 0.0123)
        table.add(f"{number}1234567", model, "1000", accuracy(RATE), cost, Cell(reason))
    return table


@pytest.mark.parametrize(
    ("names", "width", "expected"),
    [
        (["demo/strong", "demo/weak"], 11, ["demo/strong", "demo/weak"]),
        (["demo/strong", "demo/weak"], 9, ["demo…rong", "demo/weak"]),
        ([LONG, NEXT_DAY], 20, ["some-provi…2-preview", "some-provi…3-preview"]),
        ([LONG, NEXT_DAY], 16, ["some-p…2-preview", "some-p…3-preview"]),
        (["a-model-x-of-many", "a-model-y-of-many"], 9, ["…el-x-of…", "…el-y-of…"]),
        (["実験/模型-試験版-一", "実験/模型-試験版-二"], 9, ["実験…-一", "実験…-二"]),
        (["a/same-1-x-2-end", "a/same-1-y-2-end", "a/same-1-x-3-end"], 7, TWO_PLACES),
    ],
)
def test_names_are_cut_as_far_as_needed_and_never_alike(
    names: list[str], width: int, expected: list[str]
) -> None:
    assert list(told_apart(names, width).values()) == expected


def test_names_stay_distinct_and_narrow_at_any_width() -> None:
    dated = [LONG.replace("12", f"{day:02}") for day in range(40)]
    names = [*dated, *(f"{vendor}/{'same-' * 9}name" for vendor in ("vendor-a", "vendor-b"))]

    for width in range(8, 70):
        short = told_apart([*names, *names], width)
        assert len(set(short.values())) == len(names)
        assert all(len(text) <= width for text in short.values())


@pytest.mark.parametrize("width", range(36, 180, 8))
def test_no_line_is_longer_than_the_terminal_and_no_number_is_broken(width: int) -> None:
    models = named(LONG, " (web_search)"), named(NEXT_DAY, " (simulated)"), named("demo/weak")

    lines = printed(a_board(*models, reason="timeout 3, rate_limited 12"), width).splitlines()

    assert max(map(len, lines)) <= width
    for number in range(len(models)):
        (line,) = [line for line in lines if f"{number}1234567" in line]
        assert " 1000 " in line
        assert "61.4% (58" in line
    assert any("2-preview" in line for line in lines)
    assert any("3-preview" in line for line in lines)


def test_room_is_made_by_shorter_numbers_then_by_cut_names_then_by_fewer_columns() -> None:
    board = a_board(named(LONG), named(NEXT_DAY))

    wide, narrower, narrow, tight = (printed(board, width) for width in (110, 85, 60, 53))

    assert "61.4% (58% to 64%)" in wide and "1234.5678" in wide and LONG in wide
    assert "61.4% (58% to 64%)" in narrower and LONG not in narrower
    assert "61.4% (58-64)" in narrow and " 1235 " in narrow and "USD" in narrow
    assert " 1235 " not in tight and "A wider terminal also shows: USD" in tight


def test_where_a_name_would_be_too_short_it_gets_a_line_of_its_own() -> None:
    shown = printed(a_board(named(LONG), reason="timeout 3, rate_limited 12"), 60).splitlines()

    place = shown.index(LONG.ljust(len(shown[0])))
    assert shown[place + 1].split()[:2] == ["01234567", "1000"]
    assert shown[place + 2].strip() == "why: timeout 3, rate_limited 12"


def test_why_a_model_is_due_can_be_read_in_a_narrow_terminal() -> None:
    when = "2026-05-12 14:03"
    reason = f"due since {when} UTC: last attempt 3.2 days ago, interval 3.0 days at an age of 12"

    shown = printed(due_table([(LONG, "yes", when, reason), (NEXT_DAY, "no", "", "not due")]), 60)

    assert max(map(len, shown.splitlines())) <= 60
    assert LONG in shown and NEXT_DAY in shown
    assert f"reason: {reason}" in " ".join(shown.split())


def test_without_a_terminal_nothing_is_cut_or_left_out() -> None:
    shown = printed(a_board(named(LONG), named(NEXT_DAY)), 160, terminal=False)

    assert LONG in shown and NEXT_DAY in shown
    assert "1234.5678" in shown and "61.4% (58% to 64%)" in shown
    assert "…" not in shown


def test_no_text_in_a_table_is_markup() -> None:
    table = a_board(named("[red]lab/model[/red]", " ([bold])"), reason="[link=x]y[/link]")

    for terminal in (True, False):
        shown = printed(table, 120, terminal=terminal)
        assert "[red]lab/model[/red] ([bold])" in shown
        assert "[link=x]y[/link]" in shown

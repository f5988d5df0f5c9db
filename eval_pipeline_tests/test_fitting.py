"""Tables in terminals of any width: names that differ, numbers in one line, nothing in silence."""

from io import StringIO

import pytest
from rich.console import Console

from eval_pipeline.results.tables.format import Cell, FittedTable, accuracy, named, usd
from eval_pipeline.results.tables.listing import due_table

LONG = "some-provider/a-very-long-model-name-2026-05-12-preview"
NEXT_DAY = LONG.replace("12", "13")
RATE = {"accuracy": 0.614, "accuracy_low": 0.58, "accuracy_high": 0.64}


def printed(table: FittedTable, width: int, *, terminal: bool = True) -> str:
    paper = StringIO()
    Console(width=width, file=paper, force_terminal=terminal, color_system=None).print(table)
    return paper.getvalue()


def a_board(*models: Cell, reason: str = "-") -> FittedTable:
    table = FittedTable(
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


@pytest.mark.parametrize("width", range(36, 180, 8))
def test_no_line_is_longer_than_the_terminal_and_no_number_is_broken(width: int) -> None:
    models = named(LONG, " (web_search)"), named(NEXT_DAY, " (simulated)"), named("demo/weak")

    lines = printed(a_board(*models, reason="timeout 3, rate_limited 12"), width).splitlines()

    assert max(map(len, lines)) <= width
    for number in range(len(models)):
        (line,) = [line for line in lines if f"{number}1234567" in line]
        assert " 1000 " in line
        assert "61.4% (58" in line
    assert not any("…" in line for line in lines)


def test_room_is_made_by_folded_names_then_by_shorter_numbers_then_by_fewer_columns() -> None:
    board = a_board(named(LONG), named(NEXT_DAY))

    wide, narrower, narrow, tight = (printed(board, width) for width in (115, 90, 63, 53))

    assert "61.4% (58% to 64%)" in wide and "1234.5678" in wide and LONG in wide
    assert "61.4% (58% to 64%)" in narrower and LONG not in narrower
    assert "61.4% (58-64)" in narrow and " 1235 " in narrow and "USD" in narrow
    assert " 1235 " not in tight and "A wider terminal also shows: USD" in tight


def test_why_a_model_is_due_can_be_read_in_a_narrow_terminal() -> None:
    when = "2026-05-12 14:03"
    reason = f"due since {when} UTC: last attempt 3.2 days ago, interval 3.0 days at an age of 12"

    shown = printed(due_table([(LONG, "yes", when, reason), (NEXT_DAY, "no", "", "not due")]), 60)

    assert max(map(len, shown.splitlines())) <= 60
    assert "…" not in shown
    assert all(word in shown for word in ("due since", "2026-05-12 14:03", "attempt"))


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

"""Tables of what was measured: printed as plain text that is Markdown too, or kept as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table as Shown

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """One table; None is where nothing can be said, `failed` where a measurement broke down."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    failed: bool = False

    def column(self, name: str) -> dict[str, Cell]:
        """The values of a column by the first cell of their row."""
        index = self.columns.index(name)
        return {str(row[0]): row[index] for row in self.rows}


def print_table(table: Table, console: Console) -> None:
    """Prints the table under its title, with its note below."""
    shown = Shown(box=box.MARKDOWN)
    for number, column in enumerate(table.columns):
        shown.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in table.rows:
        shown.add_row(*map(_text, row))
    with console.capture() as drawn:
        console.print(shown)
    # As drawn it stands between two lines of blanks.
    lines = [line for line in drawn.get().splitlines() if line.strip()]
    for text in (f"\n### {table.title}\n", "\n".join(lines), f"\n{table.note}".rstrip()):
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def as_json(tables: Sequence[Table]) -> list[dict[str, object]]:
    """The tables with their unrounded values."""
    return [
        {
            "title": table.title,
            "rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows],
        }
        for table in tables
    ]


def _text(cell: Cell) -> str:
    match cell:
        case None:
            return "-"
        case int():
            return f"{cell:,}"
        case float():
            return f"{cell:,.2f}" if abs(cell) < 100 else f"{cell:,.0f}"  # noqa: PLR2004
        case str():
            return cell

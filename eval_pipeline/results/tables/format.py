"""Tables that fit a terminal, and the cells, numbers and names in them as people read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from eval_pipeline.text import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

Row = Mapping[str, Any]
"""A row of a query by its columns."""
LONGEST_CELL = 300
THOUSAND, MILLION = 1_000, 1_000_000
SMALL_USD, LARGE_USD = 1, 100
SCOPES = {"text": "text only", "filtered": "only a part"}
NAME = "model"
ROOMY, TIGHT = 32, 16
"""The width that names and prose may fold to, before and after numbers are shortened."""


@dataclass(frozen=True)
class Cell:
    """The text of a cell, and a shorter one for narrow terminals; none of it is markup."""

    text: str
    short: str | None = None
    style: str = ""

    def __rich__(self) -> Text:
        return Text(self.text, self.style)

    def fitted(self, *, short: bool) -> Text:
        """Return the long or the short text."""
        return Text(self.short if short and self.short is not None else self.text, self.style)

    def followed_by(self, text: str) -> "Cell":
        """Return the cell with this behind it."""
        short = None if self.short is None else self.short + text
        return replace(self, text=self.text + text, short=short)


class FittedTable:
    """A table for terminals of any width; in a file or a pipe nothing is shortened or dropped.

    Names and prose fold, numbers get shorter, and in the end some columns are dropped.
    """

    def __init__(
        self,
        title: str,
        *columns: str,
        right: Sequence[str] = (),
        prose: Sequence[str] = (),
        dropped_first: Sequence[str] = (),
        caption: str = "",
    ) -> None:
        self.title, self.columns, self.caption = printable(title), columns, caption
        self.right, self.folding = right, {NAME, *prose}
        self.dropped_first = [name for name in dropped_first if name in columns]
        self.rows: list[list[Cell]] = []
        self.section_ends: set[int] = set()

    def add(self, *cells: Cell | str) -> None:
        """Add a row."""
        self.rows.append([Cell(one) if isinstance(one, str) else one for one in cells])

    def add_section(self) -> None:
        """Set the rows that follow apart."""
        self.section_ends.add(len(self.rows) - 1)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        if not console.is_terminal or self._width(ROOMY) <= options.max_width:
            yield self._table()
            return
        for number in range(len(self.dropped_first) + 1):
            dropped = self.dropped_first[:number]
            if self._width(TIGHT, dropped, short=True) <= options.max_width:
                break
        yield self._table(dropped, short=True)

    def _width(self, least: int, dropped: Sequence[str] = (), *, short: bool = False) -> int:
        """Return the width below which more than names and prose would be cut."""
        total = 0
        for place, name in enumerate(self.columns):
            texts = (row[place].fitted(short=short).plain for row in self.rows)
            widest = max(map(cell_len, (name, *texts)))
            if name not in dropped:
                total += 1 + (min(widest, least) if name in self.folding else widest)
        return total

    def _table(self, dropped: Sequence[str] = (), *, short: bool = False) -> Table:
        more = f"A wider terminal also shows: {', '.join(dropped)}" if dropped else ""
        table = Table(
            title=Text(self.title, style="table.title"),
            caption=" ".join(filter(None, (self.caption, more))) or None,
            box=SIMPLE,
            show_edge=False,
            pad_edge=False,
            padding=(0, 0 if short else 1, 0, 0),
        )
        kept = [place for place, name in enumerate(self.columns) if name not in dropped]
        for name in (self.columns[place] for place in kept):
            folds = name in self.folding
            table.add_column(
                Text(name),
                justify="right" if name in self.right else "left",
                overflow="fold" if folds else "ellipsis",
                no_wrap=not folds,
            )
        for number, row in enumerate(self.rows):
            cells = [row[place].fitted(short=short) for place in kept]
            table.add_row(*cells, end_section=number in self.section_ends)
        return table


def cell(text: object) -> Cell:
    """Return a cell of a text from elsewhere, made printable."""
    return Cell(printable(str(text)))


def named(model: str, more: str = "") -> Cell:
    """Return the cell of a model's name and the remarks on it."""
    return Cell(" ".join(printable(model).split()) + printable(more))


def one_line(text: str, longest: int = LONGEST_CELL) -> str:
    """Return the words of a text without its line breaks, cut where it is long."""
    words = " ".join(text[: 4 * longest].split())
    return words if len(words) <= longest else f"{words[: longest - 2]} …"


def number(value: float | None, form: str) -> str:
    """Return a number if there is one, else a dash."""
    return "-" if value is None or value != value else form.format(value)  # noqa: PLR0124  (NaN)


def minute(moment: datetime | None) -> Cell:
    """Return a time to the minute."""
    return Cell("") if moment is None else Cell(f"{moment:%Y-%m-%d %H:%M}", f"{moment:%m-%d %H:%M}")


def accuracy(row: Row) -> Cell:
    """Return a share with its 95 % interval, if anything was judged."""
    if row["accuracy"] is None:
        return Cell("-")
    share, low, high = row["accuracy"], row["accuracy_low"], row["accuracy_high"]
    short = f"{share:.1%} ({100 * low:.0f}-{100 * high:.0f})"
    return Cell(f"{share:.1%} ({low:.0%} to {high:.0%})", short)


def usd(amount: float | None, known: float | None = None) -> Cell:
    """Return an amount of money; if only a part of it is known, as a lower bound."""
    if amount is not None and amount == amount:  # noqa: PLR0124  (NaN)
        return Cell(f"{amount:.4f}", _few_digits(amount))
    return Cell("-") if not known else Cell(f">{known:.4f}", f">{_few_digits(known)}")


def whole(count: int | None) -> Cell:
    """Return a large number, in narrow terminals a rough one."""
    return Cell("-") if count is None else Cell(f"{count:,}", about(count))


def about(count: int) -> str:
    """Return a rough count."""
    if count >= MILLION:
        return f"{count / MILLION:,.1f} M"
    return f"{count / THOUSAND:.1f} k" if count >= THOUSAND else str(count)


def rank_range(low: int, high: int) -> str:
    """Return the ranks that the data allow."""
    return str(low) if low == high else f"{low}-{high}"


def all_simulated(rows: Sequence[Row]) -> bool:
    """Return whether a table is of simulated models only: then its title says so."""
    return bool(rows) and all(row["simulated"] for row in rows)


def titled(what: str, rows: Sequence[Row]) -> str:
    """Return the title of a table."""
    return f"{what} of SIMULATED models" if all_simulated(rows) else what


def remarks(row: Row, *, all_simulated: bool, more: str = "") -> str:
    """Return the remarks on a row that belong behind the model's name."""
    return in_brackets(
        "simulated" if row["simulated"] and not all_simulated else "",
        SCOPES.get(row["scope"], ""),
        "" if row["experiment"] == "default" else row["experiment"],
        more,
    )


def in_brackets(*remarks: str) -> str:
    """Return the remarks that are not empty, in brackets."""
    kept = ", ".join(filter(None, remarks))
    return f" ({kept})" if kept else ""


def _few_digits(amount: float) -> str:
    if amount >= LARGE_USD:
        return f"{amount:.0f}"
    return f"{amount:.2f}" if amount >= SMALL_USD else f"{amount:.4f}"

"""Tables that give way in a narrow terminal: shorter numbers, names cut, fewer columns."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from eval_pipeline.reporting.names import told_apart

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

NAME = "model"
"""The column whose names can be cut."""
ROOMY, TIGHT, PROSE = 32, 16, 24
"""What names get at least, if they want it, as long as other things can give way; and prose."""
INDENT = "  "
NOTHING = ("", "-")


@dataclass(frozen=True)
class Cell:
    """What stands in a table, after a name if there is one; and what does where room is short."""

    text: str
    short: str | None = None
    name: str = ""
    style: str = ""

    def __rich__(self) -> Text:
        return Text(self.told(short=False), self.style)

    def told(self, *, short: bool, names: Mapping[str, str] | None = None) -> str:
        """As it is, or as short as it can be, with the name as it is told there."""
        text = self.short if short and self.short is not None else self.text
        return (names or {}).get(self.name, self.name) + text

    def followed_by(self, text: str) -> "Cell":
        """With this behind it."""
        short = None if self.short is None else self.short + text
        return replace(self, text=self.text + text, short=short)


@dataclass(frozen=True)
class Column:
    """Where it stands, and how wide it is; prose wraps, names are cut, and all else is whole."""

    place: int
    head: str
    right: bool = False
    prose: bool = False
    width: int = 0

    @property
    def is_whole(self) -> bool:
        return self.head != NAME and not self.prose

    def padded(self, text: str) -> str:
        """With spaces up to its width."""
        spaces = " " * (self.width - cell_len(text))
        return spaces + text if self.right else text + spaces

    def shown(self, line: Sequence[Cell]) -> Text:
        """Its cell of a line, in short."""
        cell = line[self.place]
        return Text(self.padded(cell.told(short=True)), cell.style)


@dataclass(frozen=True)
class Way:
    """A way to show a table; where it is stacked, names and prose have lines of their own."""

    least: int = TIGHT
    gap: int = 1
    short: bool = True
    dropped: Sequence[str] = ()
    stacked: bool = False

    def needs(self, columns: Sequence[Column]) -> int:
        """How many columns of the terminal there must be."""
        whole = [one.width for one in columns if one.is_whole]
        if self.stacked:
            return len(INDENT) + sum(whole) + self.gap * (len(whole) - 1)
        names = [min(one.width, self.least) for one in columns if one.head == NAME]
        prose = [min(one.width, max(self.least, PROSE)) for one in columns if one.prose]
        return sum(whole + names + prose) + self.gap * (len(columns) - 1)


WHOLE = (Way(sys.maxsize, gap=2, short=False), Way(sys.maxsize, short=False))
"""The ways where nothing is cut; in the last one names fold, if they have to."""


class FittedTable:
    """A table that fits into a terminal; in a file or a pipe nothing of it is cut or left out."""

    def __init__(
        self, title: str, contents: Sequence[Column], dropped_first: Sequence[str], caption: str
    ) -> None:
        self.title, self.caption = title, caption
        self.contents, self.dropped_first = contents, dropped_first
        self.lines: list[tuple[Cell, ...]] = []
        self.section_ends: set[int] = set()

    def add(self, *cells: Cell | str) -> None:
        """Adds a row; nothing in it is markup."""
        self.lines.append(tuple(Cell(one) if isinstance(one, str) else one for one in cells))

    def add_section(self) -> None:
        """What is added from now on is set apart."""
        self.section_ends.add(len(self.lines) - 1)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        yield self.fitted(options.max_width, whole=not console.is_terminal)

    def fitted(self, width: int, *, whole: bool = False) -> Table:
        """As it looks in so many columns: the first way that has room, or else the last."""
        measured = {short: self._measured(short=short) for short in (False, True)}
        for way in WHOLE if whole else self._ways():
            columns = [one for one in measured[way.short] if one.head not in way.dropped]
            if way.needs(columns) <= width:
                break
        if way.stacked:
            return self._stacked(way, columns, width)
        columns = _shared(columns, width - way.gap * (len(columns) - 1))
        return self._side_by_side(way, columns, {} if whole else self._names(columns))

    def _measured(self, *, short: bool) -> list[Column]:
        def widest(column: Column) -> int:
            told = (line[column.place].told(short=short) for line in self.lines)
            return max(_width(text) for text in (column.head, *told))

        return [replace(one, width=widest(one)) for one in self.contents]

    def _ways(self) -> Iterator[Way]:
        """From the best to the narrowest."""
        yield Way(ROOMY, gap=2, short=False)
        yield Way(ROOMY, short=False)
        dropped = [self.dropped_first[:number] for number in range(len(self.dropped_first) + 1)]
        yield from (Way(dropped=those) for those in dropped)
        if any(one.head == NAME for one in self.contents):
            yield from (Way(dropped=those, stacked=True) for those in dropped)

    def _side_by_side(self, way: Way, columns: Sequence[Column], names: Mapping[str, str]) -> Table:
        table = self._empty(way, columns)
        for number, line in enumerate(self.lines):
            cells = [line[one.place] for one in columns]
            told = [Text(one.told(short=way.short, names=names), one.style) for one in cells]
            table.add_row(*told, end_section=number in self.section_ends)
        return table

    def _stacked(self, way: Way, columns: Sequence[Column], width: int) -> Table:
        """Each name in a line of its own, the numbers below it, and prose below them."""
        whole = [one for one in columns if one.is_whole]
        heads = " ".join(one.padded(one.head) for one in whole)
        table = self._empty(way, [Column(0, f"{NAME}\n{INDENT}{heads}", prose=True)])
        (named,) = (replace(one, width=width) for one in columns if one.head == NAME)
        names = self._names([named])
        for number, line in enumerate(self.lines):
            told = Text(line[named.place].told(short=True, names=names) + f"\n{INDENT}")
            told.append_text(Text(" ").join(one.shown(line) for one in whole))
            for one in columns:
                said = line[one.place].told(short=True) if one.prose else ""
                told.append("" if said in NOTHING else f"\n{INDENT}{one.head}: {said}")
            table.add_row(told, end_section=number in self.section_ends)
        return table

    def _empty(self, way: Way, columns: Sequence[Column]) -> Table:
        """With the looks that all tables have."""
        more = f"A wider terminal also shows: {', '.join(way.dropped)}" if way.dropped else ""
        table = Table(
            title=Text(self.title, style="table.title"),
            caption=" ".join(filter(None, (self.caption, more))) or None,
            box=SIMPLE,
            show_edge=False,
            pad_edge=False,
            padding=(0, way.gap - 1, 0, 0),
        )
        for one in columns:
            table.add_column(
                Text(one.head),
                justify="right" if one.right else "left",
                overflow="ellipsis" if one.is_whole else "fold",
                no_wrap=one.is_whole,
                width=one.width or None,
            )
        return table

    def _names(self, columns: Sequence[Column]) -> dict[str, str]:
        """How the names are told in their column, if there is one."""
        for one in columns:
            if one.head == NAME:
                return told_apart((line[one.place].name for line in self.lines), one.width)
        return {}


def _shared(columns: Sequence[Column], room: int) -> list[Column]:
    """With what is left for names and prose, each as much as the other unless it wants less."""
    left = room - sum(one.width for one in columns if one.is_whole)
    flexible = sorted((one for one in columns if not one.is_whole), key=lambda one: one.width)
    widths = {}
    for number, one in enumerate(flexible):
        widths[one.place] = max(1, min(one.width, left // (len(flexible) - number)))
        left -= widths[one.place]
    return [replace(one, width=widths.get(one.place, one.width)) for one in columns]


def _width(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)

"""`evals query`: SQL on the results, as a table for people or in a format for programs."""

import json
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from eval_pipeline.cli.options import AsJson
from eval_pipeline.cli.output import WIDE, console, end_in_order, escaped, open_warehouse, show
from eval_pipeline.errors import MendableError
from eval_pipeline.text import printable

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    from duckdb import DuckDBPyConnection
    from rich.table import Table

    from eval_pipeline.results.user_query import FirstRows

LONGEST_CELL = 300
LARGE = 1000
"""From here on six digits would say less than the number."""
NARROWEST, BETWEEN = 12, 2
"""Columns of the terminal: what a long text can be folded to, and what is between two columns."""
AT_ONCE = 64 * 1024
STDOUT = {Path("-"), Path("/dev/stdout")}
STREAMED = {"csv", "jsonl"}
"""What can be used without its end; the rest is whole or not there."""


class FormatError(MendableError):
    """A format that does not go where it is to go; the message says what to do."""


def query(
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="One statement; - reads it from stdin.")
    ],
    form: Annotated[
        Literal["table", "csv", "json", "jsonl", "parquet"] | None,
        typer.Option("--format", "-f", help="By default a table, and CSV in a pipe or a file."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; its suffix says the format.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Run read-only SQL on the results, also while a run writes.

    The tables are described by `evals schema`. One statement at a time: several are refused.
    """
    file = None if output in STDOUT else output
    chosen = _format_of(form, file, as_json=as_json)
    text = sys.stdin.read() if sql == "-" else sql
    warehouse = open_warehouse()
    end_in_order()
    with warehouse.reading(apart=True) as db:
        _print_rows(db, text, chosen, file)


def _format_of(chosen: str | None, output: Path | None, *, as_json: bool) -> str:
    """Return the format: as given, by the file's suffix, or as fits the terminal or the pipe."""
    if as_json and chosen not in (None, "json"):
        raise FormatError(f"--json and --format {chosen} are two formats: choose one.")
    form = "json" if as_json else chosen
    if output is not None:
        form = form or _by_suffix(output)
        if form == "table":
            raise FormatError("A table is for the terminal: choose another --format for a file.")
        return form
    form = form or ("table" if sys.stdout.isatty() else "csv")
    if form == "parquet" and sys.stdout.isatty():
        raise FormatError("Parquet is nothing to read: name a file with -o, or pipe it.")
    return form


def _by_suffix(path: Path) -> str:
    from eval_pipeline.results.export import SUFFIXES

    form = SUFFIXES.get(path.suffix.lower())
    if form is None:
        known = ", ".join(SUFFIXES)
        raise FormatError(f"{path.name} does not end in {known}: say the --format.")
    return form


def _print_rows(db: "DuckDBPyConnection", sql: str, form: str, output: Path | None) -> None:
    """Run the query and print its rows or write them to a file."""
    from eval_pipeline.results.export import opened, stream_rows, write_result, write_rows
    from eval_pipeline.results.user_query import first_rows, in_words, interruptibly, only_reading

    statement = interruptibly(db, lambda: only_reading(db, sql))
    if form == "table":
        return _show_rows(interruptibly(db, lambda: first_rows(db, statement)))
    with in_words():
        if output is not None:
            return interruptibly(db, lambda: write_result(db, statement, output, form))
        send = _sender(form)
        if form in STREAMED:
            return stream_rows(db, statement, form, send)
        with TemporaryFile() as file:  # without a name, so that nothing is left of it
            interruptibly(db, lambda: write_rows(db, statement, opened(file.fileno()), form))
            file.seek(0)
            while data := file.read(AT_ONCE):
                send(data)
    return None


def _sender(form: str) -> Callable[[bytes], None]:
    """Return what writes to stdout; a terminal must not obey what models have written."""
    decoder = getincrementaldecoder("utf-8")()
    shown: Callable[[str], str] = str
    if sys.stdout.isatty():
        shown = printable if form == "csv" else escaped

    def send(data: bytes) -> None:
        typer.echo(data if form == "parquet" else shown(decoder.decode(data)), nl=False)

    return send


def _show_rows(found: "FirstRows") -> None:
    """Print one table; of many columns, one for each row."""
    cells = [[_cell(value) for value in row] for row in found.rows]
    if not cells or _fits(found, cells):
        show(_table(found, cells))
    else:
        show(*(_record(number, found, row) for number, row in enumerate(cells, 1)))
    if not found.rows:
        show("No rows.")
    if found.more:
        show(f"… {found.more} more rows. All of them: --format csv, or -o with a file.")


def _fits(found: "FirstRows", cells: list[list[str]]) -> bool:
    columns = zip(found.columns, *cells, strict=True)
    widths = [min(NARROWEST, max(map(len, column))) for column in columns]
    terminal = console()
    room = terminal.width if terminal.is_terminal else WIDE
    return sum(widths) + BETWEEN * (len(widths) - 1) <= room


def _table(found: "FirstRows", cells: list[list[str]]) -> "Table":
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for name, is_number in zip(found.columns, found.are_numbers, strict=True):
        table.add_column(
            Text(_line(name)),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number,
        )
    for row in cells:
        table.add_row(*map(Text, row))
    return table


def _record(number: int, found: "FirstRows", row: list[str]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_edge=False, pad_edge=False, show_header=False)
    table.title, table.title_justify = Text(f"row {number}"), "left"
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in zip(found.columns, row, strict=True):
        table.add_row(Text(_line(name), style="bold"), Text(text))
    return table


def _cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:.6g}" if abs(value) < LARGE else f"{value:.2f}"
        case list() | dict():
            return _line(json.dumps(value, ensure_ascii=False, default=str))
        case _:
            return _line(str(value))


def _line(text: str) -> str:
    """Return the beginning of a text, in one line; other formats have all of it."""
    cut = text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
    return printable(cut.replace("\r", "").replace("\n", "↵").replace("\t", " "))

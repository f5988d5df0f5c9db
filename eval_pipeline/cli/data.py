"""The `evals` commands about the data themselves: SQL, deletion, the file and its schema."""

import json
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eval_pipeline.cli.options import AsJson, Run, Yes
from eval_pipeline.cli.output import (
    WIDE,
    End,
    complain,
    end,
    end_in_order,
    escaped,
    print_json,
    report,
    say,
    show,
)
from eval_pipeline.cli.project import open_warehouse, read_settings
from eval_pipeline.errors import RunError
from eval_pipeline.text import printable

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    from duckdb import DuckDBPyConnection

    from eval_pipeline.evaluation.deletion import DoomedRun, RunKey
    from eval_pipeline.results.user_query import FirstRows
    from eval_pipeline.settings.settings import Settings

LONGEST_CELL = 300
LARGE = 1000
"""From here on six digits would say less than the number."""
NARROWEST, BETWEEN = 12, 2
"""Columns of the terminal: what a long text can be folded to, and what is between two columns."""
AT_ONCE = 64 * 1024
STDOUT = {Path("-"), Path("/dev/stdout")}
STREAMED = {"csv", "jsonl"}
"""What can be used without its end; the rest is whole or not there."""


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
    from eval_pipeline.results.export import SUFFIXES

    if as_json and chosen not in (None, "json"):
        raise RunError(f"--json and --format {chosen} are two formats: choose one.")
    form = "json" if as_json else chosen
    if output is not None:
        form = form or SUFFIXES.get(output.suffix.lower())
        if form is None:
            known = ", ".join(SUFFIXES)
            raise RunError(f"{output.name} does not end in {known}: say the --format.")
        if form == "table":
            raise RunError("A table is for the terminal: choose another --format for a file.")
        return form
    form = form or ("table" if sys.stdout.isatty() else "csv")
    if form == "parquet" and sys.stdout.isatty():
        raise RunError("Parquet is nothing to read: name a file with -o, or pipe it.")
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
    more = f"… {found.more} more rows. All of them: --format csv, or -o with a file."
    show(None if found.rows else "No rows.", more if found.more else None)


def _fits(found: "FirstRows", cells: list[list[str]]) -> bool:
    columns = zip(found.columns, *cells, strict=True)
    widths = [min(NARROWEST, max(map(len, column))) for column in columns]
    terminal = Console()
    room = terminal.width if terminal.is_terminal else WIDE
    return sum(widths) + BETWEEN * (len(widths) - 1) <= room


def _table(found: "FirstRows", cells: list[list[str]]) -> Table:
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


def _record(number: int, found: "FirstRows", row: list[str]) -> Table:
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


def delete(run: Run, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a run and all that belongs to it, for good.

    A run of several models goes with all of them, unless one is named: model@RUN. Deleting that
    was interrupted is finished by whoever deletes next.
    """
    from eval_pipeline.evaluation.deletion import doomed_runs

    _delete(partial(doomed_runs, name=run), yes=yes, as_json=as_json)


def prune(
    *,
    older_than: Annotated[
        int, typer.Option("--older-than", min=1, metavar="DAYS", help="Opened so long ago.")
    ] = 90,
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Instead, delete what Dagster keeps of its own runs that ended so long ago.",
        ),
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete old runs on which no number rests, for good.

    Kept is what is on a leaderboard, and of each model, experiment and benchmark version the latest
    run. What only deleted runs have been told is asked anew if it is needed again.

    With --history no result is touched: what goes are Dagster's records, event logs and captured
    output of its runs, but for those of the latest materialization of each asset and partition.
    """
    from eval_pipeline.evaluation.deletion import prunable_runs
    from eval_pipeline.records.base import now

    since = now() - timedelta(days=older_than)
    if history:
        _forget(since, yes=yes, as_json=as_json)
        return
    before = since.replace(tzinfo=None)
    _delete(lambda warehouse, finished: prunable_runs(warehouse, before), yes=yes, as_json=as_json)


def _delete(choose: "Callable[..., Sequence[DoomedRun]]", *, yes: bool, as_json: bool) -> None:
    """Finish what was interrupted before, then delete what is chosen, if that is confirmed."""
    from eval_pipeline.analysis.report.paths import known_report
    from eval_pipeline.evaluation.deletion import delete_runs, finish_deletions, in_words

    settings = read_settings(writes=True)
    warehouse, tell = open_warehouse(settings), partial(_tell, settings)
    finished = finish_deletions(warehouse, tell)
    for one in finished:
        complain(f"The deletion of run {one.run_id[:8]} of {one.model} is finished.")
    doomed = choose(warehouse, finished=finished)
    if doomed:
        _confirm(in_words(doomed), yes=yes, as_json=as_json)
        delete_runs(warehouse, doomed, tell)
    if as_json:
        print_json([*finished, *doomed])
        return
    for run_id in dict.fromkeys(one.run_id for one in doomed):
        say(f"Run {run_id[:8]} is deleted.")
    if not doomed and not finished:
        say("There is nothing to delete.")
    for run in doomed:
        if path := known_report(settings.reports, run.run_id, run.model):
            say(f"The report {path} is left where it is.")


def _forget(before: datetime, *, yes: bool, as_json: bool) -> None:
    """Delete what Dagster has on its old runs, if that is confirmed."""
    from eval_pipeline.defs.instance import forget_runs, forgettable_runs

    settings = read_settings(writes=True)
    runs = forgettable_runs(settings, before)
    if runs:
        some = f"{len(runs):,} runs that ended before {before:%Y-%m-%d %H:%M} UTC"
        told = f"What Dagster keeps of {some} would be deleted for good. No result is touched."
        _confirm([told], yes=yes, as_json=as_json)
    gone = forget_runs(settings, runs)
    told = f"Dagster has forgotten {gone:,} runs." if runs else "There is nothing to delete."
    report({"forgotten": gone}, told, as_json=as_json)


def rebuild() -> None:
    """Build the DuckDB file anew from the journal; no model is asked anything."""
    warehouse = open_warehouse(read_settings(writes=True))
    warehouse.publish(force=True)
    say(f"{warehouse.path} is built from {warehouse.journal.root}.")


def schema() -> None:
    """Print the description of every table and column, as in docs/schema.md."""
    from eval_pipeline.results.schema import schema_page

    typer.echo(schema_page(), nl=False)


def _confirm(lines: Iterable[str], *, yes: bool, as_json: bool) -> None:
    """Print what would go, and end the command unless that is confirmed."""
    if not as_json:
        say(*lines)
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise RunError("Nothing was deleted, for nobody can be asked here: --yes says you mean it.")
    try:
        how = End.DONE if typer.confirm("Delete it?") else End.FAILED
    except typer.Abort:  # Ctrl-C or Ctrl-D, after which the cursor still stands in that line
        typer.echo()
        how = End.INTERRUPTED
    if how is not End.DONE:
        say("Nothing was deleted.")
    end(how)


def _tell(settings: "Settings", runs: "Sequence[RunKey]") -> None:
    """Record deletions in Dagster, which takes a second to load, so only when there are some."""
    from eval_pipeline.defs.instance import tell_of_deletion

    tell_of_deletion(settings, runs)

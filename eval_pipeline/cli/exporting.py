"""The `evals export` commands: every table as files, and runs in the formats of other projects."""

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from eval_pipeline.cli import completion
from eval_pipeline.cli.data import export as export_tables
from eval_pipeline.cli.output import AsJson, print_json, say
from eval_pipeline.cli.places import open_warehouse, results

TABLES = "tables"
_HELP = ("-h", "--help")


class _TablesByDefault(TyperGroup):
    """`evals export DIR`, with whatever options, is about the tables."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if args and args[0] not in self.commands and args[0] not in _HELP:
            args = [TABLES, *args]
        return super().parse_args(ctx, args)


exports = typer.Typer(
    cls=_TablesByDefault,
    no_args_is_help=True,
    help="Every table as files (evals export DIR), or runs in other projects' formats.",
)
exports.command(TABLES)(export_tables)


@exports.command("zenmux")
def zenmux(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="The first characters of its id, latest, or model@RUN.",
            autocompletion=completion.runs,
        ),
    ],
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where the run gets a folder of its own.")
    ],
    judge: Annotated[
        str | None, typer.Option(help="Whose verdicts; by default who has judged the most.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Write a run as zenmux-benchmark keeps its results: predictions/, judged/ and summaries.

    A launch for several models is written with all of them, unless one is named: model@RUN.
    """
    from eval_pipeline.finding import find_runs
    from eval_pipeline.importing.zenmux.writing import Exporter

    journal = open_warehouse().journal
    with results() as db:
        target, written = Exporter(db, journal, judge).write(find_runs(db, run), folder)
    if as_json:
        print_json({"folder": str(target), "models": [one._asdict() for one in written]})
        return
    for one in written:
        say(f"{one.model}: {one.predictions} answers, {one.judgements} verdicts")
    say(f"Written to {target}.")

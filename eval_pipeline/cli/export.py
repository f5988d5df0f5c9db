"""The `evals export` commands: all tables as files, and runs in the formats of others."""

from collections.abc import Sequence
from copy import copy
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from eval_pipeline.cli import options
from eval_pipeline.cli.options import AsJson, Run
from eval_pipeline.cli.output import open_warehouse, print_json, results, say

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    from eval_pipeline.results.runs import FoundRun


TABLES = "DIR"
"""What the export of tables is called among the commands; to use it, a folder is named instead."""
HELP = ("-h", "--help")


class FileFormat(StrEnum):
    """What tables can be exported as."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


class TablesOrCommand(TyperGroup):
    """Whatever is no command is a folder, or an option, of the export of tables."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """That of this group if a command of it is named, or may still be typed; else of tables."""
        first = args[0] if args else ""
        typing = not args and extra.get("resilient_parsing", False)
        if typing or first in HELP or (first in self.commands and first != TABLES):
            return super().make_context(info_name, args, parent, **extra)
        return self.commands[TABLES].make_context(info_name, args, parent, **extra)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """That of tables, and the commands."""
        shown, tables = copy(self), self.commands[TABLES]
        shown.params, shown.help = tables.params, tables.help
        super(TablesOrCommand, shown).format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands, and folders."""
        folders = self.commands[TABLES].params[0].shell_complete(ctx, incomplete)
        return [*super().shell_complete(ctx, incomplete), *folders]


export = typer.Typer(
    cls=TablesOrCommand,
    subcommand_metavar="| COMMAND ...",
    help="Write every table to a file, or a run in the format of another program.",
)


@export.command(TABLES, hidden=True)
def tables(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder, new or empty.")],
    form: Annotated[FileFormat, typer.Option("--format", "-f", help="Of the files.")] = (
        FileFormat.PARQUET
    ),
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            "-r",
            help="Only what belongs to this run; may be given again.",
            autocompletion=options.runs,
        ),
    ] = None,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files of the same name in DIR.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write every table to a file, with a description of its columns.

    With --run, tables that compare runs or judges with each other are left out.
    """
    from eval_pipeline.results.export import export_tables
    from eval_pipeline.results.runs import find_runs
    from eval_pipeline.results.user_query import in_words, interruptibly

    with open_warehouse().reading(apart=True) as db:
        chosen = [found for name in run or () for found in find_runs(db, name)]
        with in_words():
            exported = interruptibly(
                db, lambda: export_tables(db, folder, form, runs=chosen, force=force)
            )
    if as_json:
        return print_json([one._asdict() for one in exported])
    for one in exported:
        say(f"{one.rows:>9} rows  {folder / one.file}")
    return say(f"What the columns mean: {folder / 'schema.md'}")


@export.command("inspect")
def inspect(
    run: Run,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Ends in .eval (an archive) or .json.")
    ],
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a run as a log that `inspect view` opens (PyPI: inspect-ai).

    Every reply is a sample with prompt, target, output, scores and steps. What could not be asked
    or judged is an error there, never a 0.
    """
    from eval_pipeline.interop.inspect.export import RunToLog, export_log
    from eval_pipeline.journal.deployment import open_journal
    from eval_pipeline.results.runs import find_runs
    from eval_pipeline.results.user_query import in_words
    from eval_pipeline.settings.settings import Settings

    settings = Settings.from_env()
    with results(settings, apart=True) as db, in_words():
        found = only_one(find_runs(db, run), f"evals export inspect {{}} {file}")
        log = RunToLog(db, settings, open_journal(settings), found)
        samples = export_log(log, file, force=force)
    if as_json:
        return print_json({**found._asdict(), "file": str(file), "samples": samples})
    return say(
        f"{samples} samples in {file}. To look at them: inspect view --log-dir {file.parent}"
    )


def only_one(found: "Sequence[FoundRun]", example: str) -> "FoundRun":
    """The run of the only model that is meant; refused with an example if there are several."""
    from eval_pipeline.errors import RunError

    if len(found) == 1:
        return found[0]
    names = [f"{one.model}@{one.run_id[:8]}" for one in found]
    raise RunError(
        f"That run is of several models: {', '.join(names)}. For example: "
        f"{example.format(names[0])}"
    )

"""The `evals` commands that exchange runs with other programs and deployments."""

from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from eval_pipeline.cli import options
from eval_pipeline.cli.options import AsJson, OnlyModels, Run
from eval_pipeline.cli.output import End, complain, end, print_json, report, say
from eval_pipeline.cli.project import open_warehouse, read_settings, results
from eval_pipeline.errors import RunError

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    from eval_pipeline.interop.convex_scores.load import Imported
    from eval_pipeline.interop.remote.transfer import Pushed
    from eval_pipeline.interop.zenmux.convert import Compared
    from eval_pipeline.interop.zenmux.load import Taken

TABLES = "DIR"
"""The name of the export of tables among the commands; to use it, a folder is named instead."""


class TablesOrCommand(TyperGroup):
    """Takes what is no command for a folder, or an option, of the export of tables."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Return the group's if a command of it is named, or may still be typed; else of tables."""
        first = args[0] if args else ""
        typing = not args and extra.get("resilient_parsing", False)
        if typing or first in {"-h", "--help", *self.commands} - {TABLES}:
            return super().make_context(info_name, args, parent, **extra)
        return self.commands[TABLES].make_context(info_name, args, parent, **extra)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of tables, and the commands."""
        shown, tables = copy(self), self.commands[TABLES]
        shown.params, shown.help = tables.params, tables.help
        super(TablesOrCommand, shown).format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete the commands, and folders."""
        folders = self.commands[TABLES].params[0].shell_complete(ctx, incomplete)
        return [*super().shell_complete(ctx, incomplete), *folders]


exports = typer.Typer(
    cls=TablesOrCommand,
    subcommand_metavar="| COMMAND ...",
    help="Write every table to a file, or a run in the format of another program.",
)


@exports.command(TABLES, hidden=True)
def tables(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder, new or empty.")],
    form: Annotated[
        Literal["parquet", "csv", "jsonl"], typer.Option("--format", "-f", help="Of the files.")
    ] = "parquet",
    run: Annotated[
        list[str] | None,
        typer.Option(
            *("--run", "-r"),
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
    report(
        exported,
        *(f"{one.rows:>9} rows  {folder / one.file}" for one in exported),
        f"What the columns mean: {folder / 'schema.md'}",
        as_json=as_json,
    )


@exports.command("inspect")
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
    from eval_pipeline.results.runs import find_runs
    from eval_pipeline.results.user_query import in_words

    settings = read_settings()
    with results(settings, apart=True) as db, in_words():
        found, *others = find_runs(db, run)
        if others:
            names = [f"{one.model}@{one.run_id[:8]}" for one in (found, *others)]
            raise RunError(
                f"That run is of several models: {', '.join(names)}. For example: "
                f"evals export inspect {names[0]} {file}"
            )
        log = RunToLog(db, settings, open_warehouse(settings).journal, found)
        samples = export_log(log, file, force=force)
    report(
        {**found._asdict(), "file": str(file), "samples": samples},
        f"{samples} samples in {file}. To look at them: inspect view --log-dir {file.parent}",
        as_json=as_json,
    )


imports = typer.Typer(no_args_is_help=True, help="Results of other projects, as runs here.")


@imports.command("convex-scores")
def convex_scores(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="What `npx convex export` writes, a folder of it, or JSON lines."
        ),
    ],
    *,
    publish: Annotated[
        bool | None,
        typer.Option(
            "--publish/--no-publish",
            help="Whether the leaderboard may be about their minted versions; by default if there "
            "is no run of your own.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take in the runs, evals and steps of convex-evals' scores backend.

    What is here already is left as it is, so that it may be repeated with a later export. No model
    is asked anything.
    """
    from eval_pipeline.interop.convex_scores.load import import_scores
    from eval_pipeline.interop.remote.receive import Receiver

    settings = read_settings(writes=True)
    found = import_scores(file, Receiver(open_warehouse(settings)), settings, publish=publish)
    if as_json:
        print_json(vars(found))
    else:
        _print_imported(found)
    end(End.FAILED if found.wrong else End.DONE)


def _print_imported(found: "Imported") -> None:
    for trouble in found.troubles:
        complain(trouble)
    if more := found.wrong - len(found.troubles):
        complain(f"And {more} more.")
    say(
        *(f"Left out: {number} {what}." for what, number in found.left_out.items()),
        f"{found.runs} runs, {found.new_runs} of them new; {found.predictions} new predictions, "
        f"{found.judgements} new verdicts.",
        *(
            f"{name} is the benchmark version {version}."
            for name, version in found.versions.items()
        ),
    )
    if not found.published:
        say("The leaderboard is about what it was about before: --publish shows these versions.")


@imports.command("zenmux")
def zenmux(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A folder such as results/20250922_122904, or the one above."
        ),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Import results of zenmux-benchmark: answers, failures, verdicts, tokens and times.

    What is here already is left as it is, so that it may be repeated, also if it was interrupted. A
    damaged file is named and left out, and the command then ends with 1.
    """
    from eval_pipeline.interop.zenmux.convert import compared
    from eval_pipeline.interop.zenmux.load import OWN, Importer
    from eval_pipeline.interop.zenmux.read import results_folders

    settings = read_settings(writes=True)
    folders, warehouse = results_folders(folder), open_warehouse(settings)
    importer, taken = Importer(warehouse.journal, settings), []
    # The largest first: those that asked some of its questions then belong with it.
    for one in sorted(folders, key=lambda each: -len(each.question_ids)):
        for run in importer.take(one):
            taken.append(run)
            if not as_json:
                say(_taken_line(run))
    warehouse.publish()
    with warehouse.reading() as db:
        numbers = [one for each in folders for one in compared(db, each)]
    problems = [problem for one in folders for problem in one.problems]
    if as_json:
        print_json(
            {
                "ended": "failed" if problems else "done",
                "runs": taken,
                "left_out": problems,
                "numbers": [{**one._asdict(), "same": one.same} for one in numbers],
                "warning": importer.warning,
            }
        )
    else:
        for file, problem in problems:
            complain(f"Left out: {file}: {problem}")
        if importer.warning and any(run.suite == OWN for run in taken):
            complain(importer.warning)
        say(*_taken_lines(taken, numbers))
    end(End.FAILED if problems else End.DONE)


def _taken_line(run: "Taken") -> str:
    opened = "" if run.is_new else " (known)"
    error = f"; there it ended with: {run.error[:200]}" if run.error else ""
    return (
        f"{run.model}, run {run.run_id[:8]}{opened}: {run.predictions} new answers to "
        f"{run.planned} planned, {run.judgements} new verdicts{error}"
    )


def _taken_lines(taken: "Sequence[Taken]", numbers: "Sequence[Compared]") -> Iterator[str]:
    from eval_pipeline.interop.zenmux.load import OWN

    changed = sum(run.is_changed for run in taken)
    yield f"{len(taken)} runs, {changed} of them with something new."
    if any(run.suite == OWN for run in taken):
        yield (
            f"No suite of the settings has these questions, so they are in the suite {OWN}, by "
            "their ids alone: the numbers are there, but nothing more can be asked or judged."
        )
    if numbers:
        same = sum(one.same for one in numbers)
        yield f"Its own summary has numbers of {len(numbers)} models; {same} are the same here."
    form = "{:.2f} ± {:.2f}, calibration error {:.2f}"
    for one in numbers:
        if not one.same:
            yield f"{one.model}: there {form.format(*one.there)}; here {form.format(*one.here)}"


def push(
    run: Run,
    to: Annotated[str, typer.Option("--to", metavar="URL", help="Where `evals view` serves.")],
    model: OnlyModels = None,
    *,
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Send the token unencrypted to another machine.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send a run to another deployment, with its answers and verdicts; by token, in EVALS_TOKEN.

    What is there already is left as it is, so that it may be repeated, also if it was interrupted.
    """
    from eval_pipeline.interop.remote.transfer import (
        Server,
        checked_address,
        chosen_runs,
        push_run,
    )
    from eval_pipeline.journal import RUNS
    from eval_pipeline.results.runs import find_runs
    from eval_pipeline.settings.loading import SettingsError
    from eval_pipeline.settings.settings import TOKEN

    settings, address = read_settings(), checked_address(to, insecure_http=insecure_http)
    if (token := settings.key(TOKEN)) is None:
        raise SettingsError(
            f"environment variable {TOKEN}: put a token of the server into it, or into .env "
            "(evals tokens create, where the server is)."
        )
    with results(settings, RUNS) as db:
        chosen = chosen_runs(find_runs(db, run), model or [])
    journal, pushed = open_warehouse(settings).journal, []
    with Server(address, token, redact=settings.redact) as server:
        for one in chosen:
            pushed.append(push_run(journal, server, one.model, one.run_id))
            if not as_json:
                say(_pushed_line(pushed[-1]))
    if as_json:
        print_json(pushed)


def _pushed_line(pushed: "Pushed") -> str:
    opened = "opened there" if pushed.is_new else "known there"
    replies, verdicts = pushed.predictions, pushed.judgements
    return (
        f"{pushed.model}, run {pushed.run_id[:8]} ({opened}): {replies.records} answers to "
        f"{pushed.planned} planned, {replies.new} of them new; {verdicts.records} verdicts, "
        f"{verdicts.new} of them new."
    )


def sync(
    source: Annotated[
        str, typer.Option("--from", metavar="DEPLOYMENT", help="One of [deployments].")
    ],
    model: OnlyModels = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Copy the runs of another deployment into this one; what is here stays as it is."""
    from eval_pipeline.interop.remote.receive import Receiver
    from eval_pipeline.interop.remote.transfer import copy_run
    from eval_pipeline.journal import RUNS, Journal
    from eval_pipeline.settings.loading import SettingsError

    settings = read_settings(writes=True)
    other = settings.of_deployment(source)
    if other.journal.resolve() == settings.journal.resolve():
        raise SettingsError(f"--from: {source} keeps its results where this deployment does.")
    if not other.journal.is_dir():
        raise SettingsError(f"--from: {other.journal} is not there: mount the folder of {source}.")
    journal = Journal(other.journal, read_only=True)
    here = Receiver(open_warehouse(settings))
    names = [(run.model, run.run_id) for run in journal.read(RUNS)]
    synced = [copy_run(journal, here, *name) for name in names if not model or name[0] in model]
    here.warehouse.publish()
    changed = [one for one in synced if one.is_changed]
    report(
        {"runs": len(synced), "changed": [_changes(one) for one in changed]},
        *(
            f"{one.model}, run {one.run_id[:8]}: {one.predictions.new} new answers, "
            f"{one.judgements.new} new verdicts."
            for one in changed
        ),
        f"{len(synced)} runs of {source}, {len(changed)} of them with something new.",
        as_json=as_json,
    )


def _changes(copied: "Pushed") -> dict[str, object]:
    about = {"run_id": copied.run_id, "model": copied.model, "is_new": copied.is_new}
    return {**about, "predictions": copied.predictions.new, "judgements": copied.judgements.new}

"""The `evals` commands about the data themselves: SQL, and away with them."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import AsJson, Run, Yes
from eval_pipeline.cli.output import (
    End,
    complain,
    end,
    open_warehouse,
    print_json,
    read_settings,
    report,
    report_on,
    say,
)

if TYPE_CHECKING:  # these take a moment to load that `evals --help` does without
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from eval_pipeline.evaluation.deletion import DoomedRun, RunKey
    from eval_pipeline.settings.settings import Settings


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
    from datetime import timedelta

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
    for path in filter(None, (report_on(settings, *one.key) for one in doomed)):
        say(f"The report {path} is left where it is.")


def _forget(before: "datetime", *, yes: bool, as_json: bool) -> None:
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


def _confirm(lines: "Iterable[str]", *, yes: bool, as_json: bool) -> None:
    """Print what would go, and end the command unless that is confirmed."""
    from eval_pipeline.errors import RunError

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

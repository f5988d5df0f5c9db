"""The `evals import` commands: results of other projects become runs here."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import AsJson
from eval_pipeline.cli.output import End, complain, end, open_warehouse, print_json, say

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    from collections.abc import Sequence

    from eval_pipeline.interop.convex_scores.load import Imported
    from eval_pipeline.interop.zenmux.convert import Compared
    from eval_pipeline.interop.zenmux.load import Taken
    from eval_pipeline.interop.zenmux.read import Problem
    from eval_pipeline.results.stats.calibration import Published


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
    from eval_pipeline.journal.deployment import refuse_production
    from eval_pipeline.settings.settings import Settings

    settings = Settings.from_env()
    refuse_production(settings)
    found = import_scores(file, Receiver(open_warehouse(settings)), settings, publish=publish)
    if as_json:
        print_json(vars(found))
    else:
        _tell(found)
    end(End.FAILED if found.wrong else End.DONE)


def _tell(found: "Imported") -> None:
    for trouble in found.troubles:
        complain(trouble)
    if more := found.wrong - len(found.troubles):
        complain(f"And {more} more.")
    for what, number in found.left_out.items():
        say(f"Left out: {number} {what}.")
    say(
        f"{found.runs} runs, {found.new_runs} of them new; {found.predictions} new predictions, "
        f"{found.judgements} new verdicts."
    )
    for name, version in found.versions.items():
        say(f"{name} is the benchmark version {version}.")
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
    from eval_pipeline.interop.zenmux.load import Importer
    from eval_pipeline.interop.zenmux.read import results_folders
    from eval_pipeline.journal.deployment import refuse_production
    from eval_pipeline.settings.settings import Settings

    settings = Settings.from_env()
    refuse_production(settings)
    folders, warehouse = results_folders(folder), open_warehouse(settings)
    importer, taken = Importer(warehouse.journal, settings), []
    # The largest first: those that asked some of its questions then belong with it.
    for one in sorted(folders, key=lambda each: -len(each.question_ids)):
        for run in importer.take(one):
            taken.append(run)
            if not as_json:
                say(_told(run))
    warehouse.publish()
    with warehouse.reading() as db:
        numbers = [one for each in folders for one in compared(db, each)]
    problems = [problem for one in folders for problem in one.problems]
    if as_json:
        print_json(_document(taken, problems, numbers, importer.warning))
    else:
        _sum_up(taken, problems, importer.warning)
        _tell_numbers(numbers)
    end(End.FAILED if problems else End.DONE)


def _told(run: "Taken") -> str:
    opened = "" if run.is_new else " (known)"
    error = f"; there it ended with: {run.error[:200]}" if run.error else ""
    return (
        f"{run.model}, run {run.run_id[:8]}{opened}: {run.predictions} new answers to "
        f"{run.planned} planned, {run.judgements} new verdicts{error}"
    )


def _sum_up(taken: "Sequence[Taken]", problems: "Sequence[Problem]", warning: str | None) -> None:
    from eval_pipeline.interop.zenmux.load import OWN

    for file, problem in problems:
        complain(f"Left out: {file}: {problem}")
    changed = sum(run.is_changed for run in taken)
    say(f"{len(taken)} runs, {changed} of them with something new.")
    if any(run.suite == OWN for run in taken):
        if warning:
            complain(warning)
        say(
            f"No suite of the settings has these questions, so they are in the suite {OWN}, by "
            "their ids alone: the numbers are there, but nothing more can be asked or judged."
        )


def _tell_numbers(numbers: "Sequence[Compared]") -> None:
    if not numbers:
        return
    same = sum(one.same for one in numbers)
    say(f"Its own summary has numbers of {len(numbers)} models; {same} are the same here.")
    for one in numbers:
        if not one.same:
            say(f"{one.model}: there {_numbers(one.there)}; here {_numbers(one.here)}")


def _numbers(shown: "Published") -> str:
    accuracy, interval, calibration = shown
    return f"{accuracy:.2f} ± {interval:.2f}, calibration error {calibration:.2f}"


def _document(
    taken: "Sequence[Taken]",
    problems: "Sequence[Problem]",
    numbers: "Sequence[Compared]",
    warning: str | None,
) -> dict[str, object]:
    return {
        "ended": "failed" if problems else "done",
        "runs": [run._asdict() for run in taken],
        "left_out": [problem._asdict() for problem in problems],
        "numbers": [
            {
                "model": one.model,
                "there": one.there._asdict(),
                "here": one.here._asdict(),
                "same": one.same,
            }
            for one in numbers
        ],
        "warning": warning,
    }

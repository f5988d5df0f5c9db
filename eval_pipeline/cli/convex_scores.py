"""`evals import convex-scores`: what convex-evals' scores backend has kept, as runs of ours."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.output import AsJson, End, complain, end, print_json, say
from eval_pipeline.cli.places import open_warehouse

if TYPE_CHECKING:  # loading it takes a moment that `evals --help` does without
    from eval_pipeline.importing.convex_scores.taking import Imported


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
    from eval_pipeline.importing.convex_scores.taking import import_scores
    from eval_pipeline.journal.deployment import refuse_production
    from eval_pipeline.remote.receiving import Receiver
    from eval_pipeline.settings import Settings

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

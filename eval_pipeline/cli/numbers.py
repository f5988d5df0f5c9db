"""The `evals` commands about results: who is how good, and is that more than chance?"""

from typing import Annotated

import typer

from eval_pipeline.cli.output import AsJson, say, show
from eval_pipeline.cli.places import open_warehouse

MINT = "evals benchmark mint"
benchmark = typer.Typer(no_args_is_help=True, help="What is measured, version by version.")


def leaderboard(*, as_json: AsJson = False) -> None:
    """Print the leaderboard, and which runs are not on it."""
    from eval_pipeline.queries import query
    from eval_pipeline.reporting import leaderboard_tables, steps_table

    with open_warehouse().reading() as db:
        rows = query(db, "summaries/leaderboard").df()
        if rows.empty:
            say("No run of the published benchmark version is complete yet: evals run")
        else:
            show(*leaderboard_tables(rows))
        if not (steps := query(db, "summaries/steps").df()).empty:
            show(steps_table(steps))
        for line in query(db, "summaries/left_out").fetchall():
            say("Not on it: {} ({}, run {}): {}".format(*line))
        for runs, version in query(db, "summaries/draft").fetchall():
            say(f"Not on it: runs of the draft {version}: {runs}. To publish it: {MINT}")


def metrics(
    run: Annotated[str | None, typer.Argument(help="A run; by default the latest ones.")] = None,
    *,
    moderate: Annotated[bool, typer.Option("--moderate", help="Incomplete runs too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print accuracy with its interval, calibration, cost and speed of each model's latest run."""
    raise NotImplementedError


def compare(
    a: Annotated[str, typer.Argument(help="A model on the leaderboard, a run, or model@run.")],
    b: Annotated[str, typer.Argument(help="The other one.")],
    experiment: Annotated[
        str | None, typer.Option("-e", "--experiment", help="Of models: under which experiment.")
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Whose verdicts count.")] = None,
    items: Annotated[int, typer.Option(min=0, help="How many differing items to list.")] = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """Compare two models or runs item by item: who is better, and is that more than chance?"""
    from eval_pipeline.reporting import comparison_lines, differences_table
    from eval_pipeline.settings import Settings
    from eval_pipeline.side_by_side import compare_sides

    settings = Settings.from_env()
    with open_warehouse().reading() as db:
        experiment = experiment or settings.experiment
        found = compare_sides(db, a, b, experiment=experiment, judge=judge)
    for line in comparison_lines(found):
        say(line)
    if found.differences and items:
        show(differences_table(found, items))


@benchmark.command("mint")
def mint_version(
    name: Annotated[str | None, typer.Argument(help="Its name; by default v1, v2, …")] = None,
) -> None:
    """Publish the benchmark as it is now: the leaderboard starts anew, nothing is run."""
    from eval_pipeline.benchmark import mint
    from eval_pipeline.settings import Settings

    settings, warehouse = Settings.from_env(), open_warehouse()
    version = mint(warehouse.journal, settings, name)
    warehouse.publish()
    items = sum(suite.items for suite in version.suites)
    say(
        f"{version.minted_as} is published: version {version.benchmark_version}, {items} items. "
        "Runs of other versions are kept, and no longer on the leaderboard."
    )


@benchmark.command("list")
def list_versions(*, as_json: AsJson = False) -> None:
    """Every version with its runs; the published one is what the leaderboard shows."""
    from eval_pipeline.queries import query
    from eval_pipeline.reporting import versions_table

    with open_warehouse().reading() as db:
        show(versions_table(query(db, "summaries/versions").df()))

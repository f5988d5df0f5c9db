"""The `evals` commands that tell what there is and how it went."""

from typing import Annotated

import typer

from eval_pipeline.cli.output import AsJson, say, show


def list_items(*, as_json: AsJson = False) -> None:
    """List suites, categories and items, and the experiments."""
    raise NotImplementedError


def models(
    *,
    only_due: Annotated[bool, typer.Option("--due", help="Which are due, and why.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the models that gateways offer: prices, abilities, which are selected."""
    if only_due:
        return due(as_json=as_json)
    raise NotImplementedError


def due(*, as_json: AsJson = False) -> None:
    """Print which models are due to be evaluated again, and why or why not."""
    from eval_pipeline.defs.launch import dagster_instance
    from eval_pipeline.defs.schedules import NOBODY, decide_all
    from eval_pipeline.due import for_people, summed_up
    from eval_pipeline.records import now
    from eval_pipeline.reporting import due_table
    from eval_pipeline.settings import Settings

    settings = Settings.from_env()
    with dagster_instance(settings) as instance:
        decisions = decide_all(settings, instance, now())
    if decisions:
        show(due_table(for_people(decisions)))
    say(summed_up(decisions) if decisions else NOBODY)


def status(
    run: Annotated[str | None, typer.Argument(help="A run; by default the latest ones.")] = None,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="The items that failed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell how the latest runs, or one, stand: answered, failed, judged, and what to do next."""
    raise NotImplementedError


def runs(*, as_json: AsJson = False) -> None:
    """List all runs, the newest first."""
    raise NotImplementedError


def show_item(
    run: Annotated[str, typer.Argument(help="A run (the first characters of its id).")],
    item: Annotated[str, typer.Argument(help="An item, or suite/item.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Show one item in full: prompt, reply, reference, verdict, steps and files."""
    raise NotImplementedError

"""The `evals` commands that evaluate: run, fix, and Dagster's jobs by name."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.output import End, complain, end, say

if TYPE_CHECKING:  # loading these takes a moment that `evals --help` does without
    from eval_pipeline.settings import Settings

NO_SANDBOX = typer.Option(
    "--unsafe-no-sandbox",
    help="Run unknown code with no sandbox at all: it can do whatever you can.",
)


def run(
    *,
    fresh: Annotated[bool, typer.Option(help="Ask everything anew, in new runs.")] = False,
    unsafe_no_sandbox: Annotated[bool, NO_SANDBOX] = False,
) -> None:
    """Evaluate every selected model: ask what is missing or failed, judge, compute."""
    from eval_pipeline.defs.launch import evaluate
    from eval_pipeline.runs import Mode

    show_log()
    with ends_in_order():
        settings = read_settings(unsafe_no_sandbox=unsafe_no_sandbox)
        end_with(evaluate(settings, Mode.FRESH if fresh else Mode.FIX))


def fix() -> None:
    """Try again what failed, and nothing else."""
    raise NotImplementedError


def job(
    name: Annotated[
        str | None, typer.Argument(help="Which one; without a name, all are listed.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("-m", "--model", help="Of evaluate: the model, its partition.")
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="Run config as JSON, instead of what the settings say.")
    ] = None,
) -> None:
    """Run one of Dagster's jobs, with the same history as in the UI."""
    from eval_pipeline.definitions import find_job, named_jobs
    from eval_pipeline.defs.launch import dagster_instance, run_job
    from eval_pipeline.settings import Settings

    settings = Settings.from_env()
    if name is None:
        for known in named_jobs(settings).values():
            say(f"{known.name}: {known.description}")
        return
    show_log()
    chosen = find_job(settings, name)
    with ends_in_order(), dagster_instance(settings) as instance:
        end_with(run_job(chosen, instance, partition=model, config=config))


@contextmanager
def ends_in_order() -> Iterator[None]:
    """Interrupted, it says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        complain("Interrupted. What was answered is kept: the same command goes on.")
        sys.exit(End.INTERRUPTED)


def end_with(failures: Sequence[str]) -> None:
    """Tells what went wrong, if anything did, and ends with 1."""
    if failures:
        complain("\n".join(failures))
        end(End.FAILED)


def read_settings(*, unsafe_no_sandbox: bool) -> "Settings":
    """The settings, and that there is to be no sandbox: only a launch itself can say so."""
    from eval_pipeline.settings import Settings

    settings = Settings.from_env()
    if unsafe_no_sandbox:
        return settings.overridden({"coding": {"isolation": "none"}})
    return settings


def show_log() -> None:
    """What the stages say, on the terminal too and not in Dagster's log alone."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.getLogger("eval_pipeline").addHandler(handler)
    logging.getLogger("eval_pipeline").setLevel(logging.INFO)

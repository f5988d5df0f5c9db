"""The `evals` commands that evaluate: run, fix, and Dagster's jobs by name."""

from typing import Annotated, Any

import typer

from eval_pipeline.cli import checked, completion
from eval_pipeline.cli.output import AsJson

WHICH, HOW, LIMITS, REPAIR = "Which models and items", "How", "Limits", "Earlier work"


def _no_sandbox(panel: str | None = None) -> Any:
    return typer.Option(
        "--unsafe-no-sandbox",
        help="Run unknown code with no sandbox at all: it can do whatever you can.",
        rich_help_panel=panel,
    )


NO_SANDBOX = _no_sandbox()


def run(
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="A model, or a pattern such as openai/*; may be repeated.",
            autocompletion=completion.models,
            rich_help_panel=WHICH,
        ),
    ] = None,
    exclude_model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="Leave out these models.",
            autocompletion=completion.models,
            rich_help_panel=WHICH,
        ),
    ] = None,
    exclude_provider: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROVIDER", help="Leave out what these providers serve.", rich_help_panel=WHICH
        ),
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            "-s",
            "--suite",
            metavar="SUITE",
            help="Only this suite; may be repeated.",
            autocompletion=completion.suites,
            callback=checked.some_suites,
            rich_help_panel=WHICH,
        ),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            "-c",
            "--category",
            metavar="CATEGORY",
            help="Only this category; may be repeated.",
            autocompletion=completion.categories,
            rich_help_panel=WHICH,
        ),
    ] = None,
    test_filter: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--filter",
            metavar="REGEX",
            help="Only items whose suite/category/id matches this regular expression.",
            callback=checked.a_filter,
            rich_help_panel=WHICH,
        ),
    ] = None,
    text_only: Annotated[
        bool, typer.Option("--text-only", help="No items with images.", rich_help_panel=WHICH)
    ] = False,
    max_samples: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="The first N items of each suite.", rich_help_panel=WHICH
        ),
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(
            "-e",
            "--experiment",
            metavar="EXPERIMENT",
            help="A named variation of how models are asked.",
            autocompletion=completion.experiments,
            callback=checked.an_experiment,
            rich_help_panel=HOW,
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", help="How often each item is asked.", rich_help_panel=HOW),
    ] = None,
    no_judge: Annotated[
        bool, typer.Option("--no-judge", help="Only ask; judge later.", rich_help_panel=HOW)
    ] = False,
    unsafe_no_sandbox: Annotated[bool, _no_sandbox(HOW)] = False,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Ask everything anew, in new runs.", rich_help_panel=REPAIR),
    ] = False,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Ask anew, in a new run, what failed or was wrong in the latest one.",
            rich_help_panel=REPAIR,
        ),
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Go on with this run: ask what is missing or failed in it.",
            autocompletion=completion.runs,
            rich_help_panel=REPAIR,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="USD",
            help="Stop when the run has cost so much.",
            callback=checked.a_budget,
            rich_help_panel=LIMITS,
        ),
    ] = None,
    num_workers: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Requests at a time, per model.", rich_help_panel=LIMITS
        ),
    ] = None,
    max_concurrent_models: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Models at a time.", rich_help_panel=LIMITS),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be asked and what it would cost.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate models: ask what is missing or failed, judge, compute. Without options: all."""
    chosen = {
        "models": model or [],
        "exclude_models": exclude_model or [],
        "exclude_providers": exclude_provider or [],
    }
    asking = {
        "suites": suite,
        "categories": category,
        "test_filter": test_filter,
        "text_only": text_only or None,
        "max_samples": max_samples,
        "samples": samples,
        "experiment": experiment,
    }
    checked.refuse_contradictions({**chosen, **asking}, resume=resume, fresh=fresh, failed=failed)
    from eval_pipeline.cli.launches import Wanted, start

    wanted = Wanted(
        chosen=chosen,
        asking=asking,
        limits={"num_workers": num_workers, "max_concurrent_models": max_concurrent_models},
        budget_usd=budget,
        resume=resume,
        fresh=fresh,
        failed=failed,
        judge=not no_judge,
        unsafe_no_sandbox=unsafe_no_sandbox,
    )
    start(wanted, dry_run=dry_run, as_json=as_json)


def fix(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run; by default the latest one of each model.",
            autocompletion=completion.runs,
        ),
    ] = None,
    *,
    evaluation: Annotated[
        bool, typer.Option("--evaluation", help="Only ask again; do not judge.")
    ] = False,
    judge: Annotated[bool, typer.Option("--judge", help="Only judge again; ask nobody.")] = False,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="USD", help="Stop when the run has cost so much.", callback=checked.a_budget
        ),
    ] = None,
    unsafe_no_sandbox: Annotated[bool, NO_SANDBOX] = False,
    as_json: AsJson = False,
) -> None:
    """Try again what failed, and nothing else: answers that did not come, verdicts that did not."""
    from eval_pipeline.cli.launches import repair

    both = evaluation == judge
    repair(
        name,
        ask=evaluation or both,
        judge=judge or both,
        budget_usd=budget,
        unsafe_no_sandbox=unsafe_no_sandbox,
        as_json=as_json,
    )


def job(
    name: Annotated[
        str | None, typer.Argument(help="Which one; without a name, all are listed.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            help="Of evaluate: the model, its partition.",
            autocompletion=completion.models,
        ),
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="Run config as JSON, instead of what the settings say.")
    ] = None,
    *,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="USD", help="Stop when the run has cost so much.", callback=checked.a_budget
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask (or judge, or analyse) everything anew.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run one of Dagster's jobs, with the same history as in the UI."""
    from eval_pipeline.cli.launches import list_jobs, start_job

    if name is None:
        list_jobs(as_json=as_json)
    else:
        start_job(name, model, config, budget_usd=budget, fresh=fresh, as_json=as_json)

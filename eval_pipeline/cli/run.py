"""The `evals` commands that evaluate: run, fix, and Dagster's jobs by name."""

from functools import partial
from typing import Annotated

import typer

from eval_pipeline.cli import options
from eval_pipeline.cli.options import AsJson, Budget, NoSandbox, RunOrLatestOfEach

HOW, LIMITS = "How", "Limits"
which_option = partial(typer.Option, rich_help_panel="Which models and items")
how_option = partial(typer.Option, rich_help_panel=HOW)
limit_option = partial(typer.Option, rich_help_panel=LIMITS)
repair_option = partial(typer.Option, rich_help_panel="Earlier work")
MODEL = "A model, or a pattern such as openai/*; may be repeated."
SUITE, CATEGORY = "Only this suite; may be repeated.", "Only this category; may be repeated."
FILTER = "Only items whose suite/category/id matches this regular expression."
FAILED = "Ask anew, in a new run, what failed or was wrong in the latest one."
RESUME = "Go on with this run: ask what is missing or failed in it."
FRESH = "Ask everything anew, in new runs."
MAX_SAMPLES, SAMPLES = "The first N items of each suite.", "How often each item is asked."
NUM_WORKERS, MAX_MODELS = "Requests at a time, per model.", "Models at a time."
DRY_RUN = "Print what would be asked and what it would cost."

Models = Annotated[
    list[str] | None,
    which_option("-m", "--model", metavar="MODEL", help=MODEL, autocompletion=options.models),
]
ExcludedModels = Annotated[
    list[str] | None,
    which_option(metavar="MODEL", help="Leave out these models.", autocompletion=options.models),
]
ExcludedProviders = Annotated[
    list[str] | None, which_option(metavar="PROVIDER", help="Leave out what these providers serve.")
]
Suites = Annotated[
    list[str] | None,
    which_option(
        *("-s", "--suite"),
        metavar="SUITE",
        help=SUITE,
        autocompletion=options.suites,
        callback=options.validate_suites,
    ),
]
Categories = Annotated[
    list[str] | None,
    which_option(
        *("-c", "--category"), metavar="CATEGORY", help=CATEGORY, autocompletion=options.categories
    ),
]
Filter = Annotated[
    str | None,
    which_option("-f", "--filter", metavar="REGEX", help=FILTER, callback=options.validate_filter),
]
Experiment = Annotated[
    str | None,
    how_option(
        *("-e", "--experiment"),
        metavar="EXPERIMENT",
        help="A named variation of how models are asked.",
        autocompletion=options.experiments,
        callback=options.validate_experiment,
    ),
]


def run(
    *,
    model: Models = None,
    exclude_model: ExcludedModels = None,
    exclude_provider: ExcludedProviders = None,
    suite: Suites = None,
    category: Categories = None,
    test_filter: Filter = None,
    text_only: Annotated[bool, which_option("--text-only", help="No items with images.")] = False,
    max_samples: Annotated[int | None, which_option(min=1, metavar="N", help=MAX_SAMPLES)] = None,
    experiment: Experiment = None,
    samples: Annotated[int | None, how_option(min=1, metavar="K", help=SAMPLES)] = None,
    no_judge: Annotated[bool, how_option("--no-judge", help="Only ask; judge later.")] = False,
    unsafe_no_sandbox: Annotated[bool, options.no_sandbox_option(HOW)] = False,
    fresh: Annotated[bool, repair_option("--fresh", help=FRESH)] = False,
    failed: Annotated[bool, repair_option("--failed", help=FAILED)] = False,
    resume: Annotated[
        str | None, repair_option(metavar="RUN", help=RESUME, autocompletion=options.runs)
    ] = None,
    budget: Annotated[float | None, options.budget_option(options.RUN_BUDGET, LIMITS)] = None,
    num_workers: Annotated[int | None, limit_option(min=1, metavar="N", help=NUM_WORKERS)] = None,
    max_concurrent_models: Annotated[
        int | None, limit_option(min=1, metavar="N", help=MAX_MODELS)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)] = False,
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
    options.refuse_contradictions({**chosen, **asking}, resume=resume, fresh=fresh, failed=failed)
    from eval_pipeline.cli.launch import start

    start(
        chosen,
        {**asking, "only_failed": failed},
        {"num_workers": num_workers, "max_concurrent_models": max_concurrent_models},
        {"budget_usd": budget, "unsafe_no_sandbox": unsafe_no_sandbox},
        resume=resume,
        fresh=fresh,
        judge=not no_judge,
        dry_run=dry_run,
        as_json=as_json,
    )


def fix(
    name: RunOrLatestOfEach = None,
    *,
    evaluation: Annotated[
        bool, typer.Option("--evaluation", help="Only ask again; do not judge.")
    ] = False,
    judge: Annotated[bool, typer.Option("--judge", help="Only judge again; ask nobody.")] = False,
    budget: Budget = None,
    unsafe_no_sandbox: NoSandbox = False,
    as_json: AsJson = False,
) -> None:
    """Try again what failed, and nothing else: answers that did not come, verdicts that did not."""
    from eval_pipeline.cli.launch import repair

    both = evaluation == judge
    judging = {"budget_usd": budget, "unsafe_no_sandbox": unsafe_no_sandbox}
    repair(name, judging, ask=evaluation or both, judge=judge or both, as_json=as_json)


def job(
    name: Annotated[
        str | None, typer.Argument(help="Which one; without a name, all are listed.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            *("-m", "--model"),
            help="Of evaluate: the model, its partition.",
            autocompletion=options.models,
        ),
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="Run config as JSON, instead of what the settings say.")
    ] = None,
    *,
    budget: Budget = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask (or judge, or analyse) everything anew.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run one of Dagster's jobs, with the same history as in the UI."""
    from eval_pipeline.cli.launch import list_jobs, start_job

    if name is None:
        list_jobs(as_json=as_json)
    else:
        given = {"partition": model, "config": config, "budget_usd": budget, "fresh": fresh}
        start_job(name, as_json=as_json, **given)

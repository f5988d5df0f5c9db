"""The `evals` commands that tell what there is and how it went."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from eval_pipeline.cli import options
from eval_pipeline.cli.options import AsJson, Item, RunOrLatest, Sample
from eval_pipeline.cli.output import print_json, results, say, show

NO_RUNS = "There is no run yet: evals run"
NO_CATALOG = (
    "No gateway was asked yet what it offers: evals job refresh_catalog, which asks no model "
    "anything but a tiny question; or evals run"
)
LONGEST_QUESTION = 60
FEW = 20
"""So many failed replies of a run are told of each kind, unless all are asked for."""
Model = Annotated[
    str | None, typer.Option("-m", "--model", help="Only models with this in the id.")
]


def list_items(
    suite: Annotated[
        str | None,
        typer.Option(
            "-s", "--suite", help="The items of this suite.", autocompletion=options.suites
        ),
    ] = None,
    category: Annotated[
        str | None,
        typer.Option(
            "-c",
            "--category",
            help="The items of this category.",
            autocompletion=options.categories,
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option("-f", "--filter", help="The items whose suite/category/id matches."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List what there is to run: suites, categories, experiments; or the items themselves."""
    from eval_pipeline.results.tables.listing import experiments_table, items_table, suites_table
    from eval_pipeline.settings.settings import Settings
    from eval_pipeline.suites import listing
    from eval_pipeline.suites.benchmark import load_benchmark

    settings = Settings.from_env()
    benchmark = load_benchmark(settings)
    if suite is pattern is category is None:
        suites, experiments = listing.suites(benchmark), listing.experiments(settings)
        if as_json:
            return print_json(listing.as_json(suites, experiments))
        return show(suites_table(suites), experiments_table(experiments))
    items = list(listing.items(benchmark, suite=suite, category=category, pattern=pattern or ""))
    if as_json:
        return print_json([one._asdict() for one in items])
    if items:
        show(items_table(items, LONGEST_QUESTION))
    return say(f"Items: {len(items)} of {len(benchmark.items)}.")


def models(
    pattern: Annotated[
        str | None, typer.Option("-f", "--filter", help="All models with this in the id.")
    ] = None,
    *,
    only_due: Annotated[bool, typer.Option("--due", help="Which are due, and why.")] = False,
    all_of_them: Annotated[
        bool, typer.Option("--all", help="Also those that are not selected.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the models that gateways offer: prices, abilities, which are selected."""
    from eval_pipeline.results.runs import chosen_models, model_rows
    from eval_pipeline.results.tables.listing import models_table
    from eval_pipeline.text import unknown

    if only_due:
        return due(as_json=as_json)
    with results() as db:
        known = model_rows(db)
    rows = chosen_models(known, pattern, everything=all_of_them)
    if as_json:
        return print_json(rows)
    if rows:
        show(models_table(rows))
    more = len(known) - len(rows)
    if not known:
        return say(NO_CATALOG)
    if pattern and not rows:
        return say(unknown("model", pattern, [row["model"] for row in known]))
    return say(
        f"Models: {len(rows)}, and {more} more (--all)." if more else f"Models: {len(rows)}."
    )


def due(*, as_json: AsJson = False) -> None:
    """Print which models are due to be evaluated again, and why or why not."""
    from eval_pipeline.defs.automation import NOBODY, decide_all
    from eval_pipeline.defs.instance import dagster_instance
    from eval_pipeline.evaluation.schedule import for_people, summed_up
    from eval_pipeline.records.base import now
    from eval_pipeline.results.tables.listing import due_table
    from eval_pipeline.settings.settings import Settings

    settings = Settings.from_env()
    with dagster_instance(settings) as instance:
        decisions = decide_all(settings, instance, now())
    if as_json:
        by_model = {one.model: vars(one) for one in decisions}
        return print_json([by_model[row.model] for row in for_people(decisions)])
    if decisions:
        show(due_table(for_people(decisions)))
    return say(summed_up(decisions) if decisions else NOBODY)


def runs(
    model: Model = None,
    limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """List all runs, the newest first."""
    from eval_pipeline.journal.locks import running_run_ids
    from eval_pipeline.results.runs import named_judges, run_rows
    from eval_pipeline.results.tables.runs import runs_table
    from eval_pipeline.settings.settings import Settings

    settings = Settings.from_env()
    at_work = running_run_ids(settings.journal)
    with results(settings) as db:
        known = run_rows(db, at_work, judges=named_judges(settings.judge), model=model)
    rows = known[:limit]
    if as_json:
        return print_json(rows)
    if not rows:
        return say(NO_RUNS)
    show(runs_table(rows))
    if len(known) > limit:
        say(f"{len(known) - limit} more: --limit {len(known)}")
    return None


def status(
    run: RunOrLatest = None,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="The items that failed.")] = False,
    all_of_them: Annotated[
        bool, typer.Option("--all", help="With --failed: every one, however many there are.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell how the latest runs, or one, stand: answered, failed, judged, and what to do next."""
    from eval_pipeline.journal.locks import running_run_ids
    from eval_pipeline.results.runs import (
        failed_replies,
        find_runs,
        named_judges,
        other_rows_to_fix,
        rows_of,
        run_rows,
    )
    from eval_pipeline.results.tables.runs import other_steps_left
    from eval_pipeline.settings.settings import Settings

    settings = Settings.from_env()
    at_work, judges = running_run_ids(settings.journal), named_judges(settings.judge)
    with results(settings) as db:
        if run is None:
            rows = run_rows(db, at_work, judges=judges, latest=True)
            others = other_rows_to_fix(db, at_work, rows, judges)
        else:
            rows, others = rows_of(db, at_work, find_runs(db, run), judges), []
        most = None if all_of_them or as_json else FEW
        replies = failed_replies(db, rows, most) if failed else []
    if as_json:
        return print_json(replies if failed else rows)
    if not rows:
        return say(NO_RUNS)
    if failed:
        return _show_failed(rows, replies)
    _show_status(rows, run)
    for line in other_steps_left(others):
        say(line)
    return None


def show_item(
    run: Annotated[
        str,
        typer.Argument(help="A run (the first characters of its id).", autocompletion=options.runs),
    ],
    item: Item,
    sample: Sample = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show one item in full: prompt, reply, reference, verdict, steps and files."""
    from eval_pipeline.cli.output import page_through
    from eval_pipeline.evaluation.item import gather, sections
    from eval_pipeline.evaluation.item_prompt import choose_item
    from eval_pipeline.journal.deployment import open_journal
    from eval_pipeline.settings.settings import Settings

    settings = Settings.from_env()
    with results(settings) as db:
        report = gather(db, settings, open_journal(settings), choose_item(db, run, item), sample)
    if as_json:
        print_json(report.as_json())
    else:
        page_through(sections(report))


def _show_status(rows: Sequence[dict[str, Any]], run: str | None) -> None:
    from eval_pipeline.results.tables.runs import (
        categories_table,
        code_table,
        status_table,
        steps_left,
    )

    show(status_table(rows, "Latest runs" if run is None else "Run"))
    for row in rows:
        if row.get("categories"):
            show(categories_table(row))
        if row.get("steps"):
            show(code_table(row))
    for line in steps_left(rows):
        say(line)


def _show_failed(rows: Sequence[dict[str, Any]], replies: Sequence[dict[str, Any]]) -> None:
    from eval_pipeline.results.tables.runs import failed_line, failed_tables, show_line

    by_run: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in replies:
        by_run.setdefault((one["run_id"], one["model"]), []).append(one)
    for row in rows:
        failed = by_run.get((row["run_id"], row["model"]), [])
        say(failed_line(row, failed))
        if failed:
            show(*failed_tables(failed))
            say(show_line(failed[0]))

"""The `evals` commands that show items, models, runs and their status, and check the setup."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from eval_pipeline.cli import options
from eval_pipeline.cli.options import AsJson, Item, RunOrLatest, Sample
from eval_pipeline.cli.output import End, end, page_through, print_json, report, say, show
from eval_pipeline.cli.project import open_warehouse, read_settings, results
from eval_pipeline.text import printable, unknown

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    from eval_pipeline.evaluation.doctor.report import Check, Topic
    from eval_pipeline.results.runs import Row
    from eval_pipeline.settings.settings import Settings

NO_RUNS = "There is no run yet: evals run"
NO_CATALOG = (
    "No gateway was asked yet what it offers: evals job refresh_catalog, which asks no model "
    "anything but a tiny question; or evals run"
)
LONGEST_QUESTION = 60
FEW = 20
"""So many failed replies of a run are told of each kind, unless all are asked for."""
_MARKS = {"ok": ("✓", "green"), "warning": ("!", "bold yellow"), "wrong": ("✗", "bold red")}
_NAMES = 20
"""Columns for the names, alike in all topics."""
Model = Annotated[
    str | None, typer.Option("-m", "--model", help="Only models with this in the id.")
]


def list_items(
    suite: Annotated[
        str | None,
        typer.Option(
            *("-s", "--suite"), help="The items of this suite.", autocompletion=options.suites
        ),
    ] = None,
    category: Annotated[
        str | None,
        typer.Option(
            *("-c", "--category"),
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
    from eval_pipeline.suites import listing
    from eval_pipeline.suites.benchmark import load_benchmark

    settings = read_settings()
    benchmark = load_benchmark(settings)
    if suite is pattern is category is None:
        suites, experiments = listing.suites(benchmark), listing.experiments(settings)
        document = listing.as_json(suites, experiments)
        tables = suites_table(suites), experiments_table(experiments)
        return report(document, *tables, as_json=as_json)
    items = list(listing.items(benchmark, suite=suite, category=category, pattern=pattern or ""))
    table = items_table(items, LONGEST_QUESTION) if items else None
    return report(items, table, f"Items: {len(items)} of {len(benchmark.items)}.", as_json=as_json)


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

    if only_due:
        return due(as_json=as_json)
    with results() as db:
        known = model_rows(db)
    rows = chosen_models(known, pattern, everything=all_of_them)
    more = len(known) - len(rows)
    told = f"Models: {len(rows)}{f', and {more} more (--all)' if more else ''}."
    if not known:
        told = NO_CATALOG
    elif pattern and not rows:
        told = unknown("model", pattern, [row["model"] for row in known])
    return report(rows, models_table(rows) if rows else None, told, as_json=as_json)


def due(*, as_json: AsJson = False) -> None:
    """Print which models are due to be evaluated again, and why or why not."""
    from eval_pipeline.defs.automation import NOBODY, decide_all
    from eval_pipeline.defs.instance import dagster_instance
    from eval_pipeline.evaluation.schedule import for_people, summed_up
    from eval_pipeline.records.base import now
    from eval_pipeline.results.tables.listing import due_table

    settings = read_settings()
    with dagster_instance(settings) as instance:
        decisions = decide_all(settings, instance, now())
    report(
        [vars(one) for one in for_people(decisions)],
        due_table(one.row for one in for_people(decisions)) if decisions else NOBODY,
        summed_up(decisions) if decisions else None,
        as_json=as_json,
    )


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

    settings = read_settings()
    at_work = running_run_ids(settings.journal)
    with results(settings) as db:
        known = run_rows(db, at_work, judges=named_judges(settings.judge), model=model)
    rows = known[:limit]
    more = f"{len(known) - limit} more: --limit {len(known)}" if len(known) > limit else None
    report(rows, runs_table(rows) if rows else NO_RUNS, more, as_json=as_json)


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
    from eval_pipeline.results import runs as known
    from eval_pipeline.results.tables.runs import other_steps_left

    settings = read_settings()
    at_work, judges = running_run_ids(settings.journal), known.named_judges(settings.judge)
    with results(settings) as db:
        if run is None:
            rows = known.run_rows(db, at_work, judges=judges, latest=True)
            others = known.other_rows_to_fix(db, at_work, rows, judges)
        else:
            rows, others = known.rows_of(db, at_work, known.find_runs(db, run), judges), []
        most = None if all_of_them or as_json else FEW
        replies = known.failed_replies(db, rows, most) if failed else []
    if as_json:
        return print_json(replies if failed else rows)
    if not rows:
        return say(NO_RUNS)
    if failed:
        return _show_failed(rows, replies)
    _show_status(rows, "Latest runs" if run is None else "Run")
    return say(*other_steps_left(others))


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
    from eval_pipeline.evaluation.item import gather, sections
    from eval_pipeline.evaluation.item_prompt import choose_item

    settings = read_settings()
    journal = open_warehouse(settings).journal
    with results(settings) as db:
        found = gather(db, settings, journal, choose_item(db, run, item), sample)
    if as_json:
        print_json(found.as_json())
    else:
        page_through(sections(found))


def _show_status(rows: "Sequence[Row]", title: str) -> None:
    from eval_pipeline.results.tables import runs as tables
    from eval_pipeline.results.tables.leaderboard import steps_table

    show(tables.status_table(rows, title))
    for row in rows:
        show(tables.categories_table(row) if row.get("categories") else None)
        show(steps_table(row["steps"]) if row.get("steps") else None)
    say(*tables.steps_left(rows))


def _show_failed(rows: "Sequence[Row]", replies: "Sequence[Row]") -> None:
    from eval_pipeline.results.tables import runs as tables

    by_run: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for one in replies:
        by_run[one["run_id"], one["model"]].append(one)
    for row in rows:
        failed = by_run[row["run_id"], row["model"]]
        say(tables.failed_line(row, failed))
        if failed:
            show(*tables.failed_tables(failed), tables.show_line(failed[0]))


def doctor(
    *,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no gateway and no hub for anything.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check keys, gateways, sandbox, toolchains, disk, locks and versions; say what to do."""
    found, at_a_terminal = [], Console().is_terminal
    for topic in _topics(offline=offline):
        found.append(topic)
        if not as_json and topic.findings:
            _tell(topic, at_a_terminal=at_a_terminal)
    checks = [{"topic": topic.name, **asdict(one)} for topic in found for one in topic.findings]
    states = [one["state"] for one in checks]
    wrong, warnings = states.count("wrong"), states.count("warning")
    begins = "" if wrong else " An evaluation can begin."
    told = f"{len(states)} looked at: {wrong} wrong, {warnings} to be warned of.{begins}"
    report({"ok": not wrong, "checks": checks}, told, as_json=as_json)
    end(End.FAILED if wrong else End.DONE)


def _topics(*, offline: bool) -> "Iterator[Topic]":
    """Yield the installation first: if it does not fit, the rest may not even load."""
    from eval_pipeline.evaluation.doctor.report import (
        SET_UP,
        Topic,
        installation_checks,
        look_at,
        wrong,
    )

    yield look_at("installation", installation_checks())
    try:
        from eval_pipeline.evaluation.doctor.checkup import check_up
    except ImportError as error:
        yield Topic("code", [wrong("eval_pipeline", f"It cannot be loaded ({error}).", SET_UP)])
        return
    yield from check_up(offline=offline, besides=_of_dagster)


def _of_dagster(settings: "Settings") -> "Sequence[Check]":
    from eval_pipeline.defs.instance import dagster_checks

    return dagster_checks(settings)


def _tell(topic: "Topic", *, at_a_terminal: bool) -> None:
    """Print marks and colours for people; in a pipe, a line for each."""
    if at_a_terminal:
        return show(_block(topic))
    for one in topic.findings:
        advice = f" To do: {one.advice}" if one.advice else ""
        say(f"{one.state.value:<7}  {topic.name}: {one.name}: {one.found}{advice}")
    return None


def _block(topic: "Topic") -> Group:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column(width=_NAMES, overflow="fold")
    table.add_column(overflow="fold")
    for one in topic.findings:
        words = Text(printable(one.found))
        if one.advice:
            words.append(f"\n→ {printable(one.advice)}", "bold")
        table.add_row(Text(*_MARKS[one.state.value]), Text(printable(one.name)), words)
    return Group(Text(topic.name, "bold"), table)

"""The `evals` commands that tell why items failed, and where people say whose fault it was."""

import shlex
from typing import Annotated

import typer

from eval_pipeline.cli import options
from eval_pipeline.cli.options import AsJson, Item, Run, RunOrLatestOfEach, Sample
from eval_pipeline.cli.output import page_through, print_json, say, show
from eval_pipeline.cli.project import open_warehouse, read_settings, results


def analyze(
    run: RunOrLatestOfEach = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="Only models with this in the id, or a pattern; may be repeated.",
            autocompletion=options.models,
        ),
    ] = None,
    *,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Look again into what is explained already.")
    ] = False,
    budget: Annotated[
        float | None, options.budget_option("Stop when a run has cost so much, all told.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find out why items failed: an analyst looks into each, and a report is written."""
    from eval_pipeline.cli.launch import start_analysis

    start_analysis(run, model or (), fresh=fresh, budget_usd=budget, as_json=as_json)


def failures(
    run: Run,
    model: Annotated[
        str | None,
        typer.Option("-m", "--model", help="Only models with this in the id, or a pattern."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List what failed in a run: items with step, reason and whose fault it was."""
    from eval_pipeline.analysis import failures as failed
    from eval_pipeline.analysis.tables import debug_line, failures_tables, totals_lines
    from eval_pipeline.journal.locks import running_run_ids
    from eval_pipeline.results.runs import named_judges

    settings = read_settings()
    at_work, judges = running_run_ids(settings.journal), named_judges(settings.judge)
    with results(settings) as db:
        found = failed.chosen_runs(db, run, [model] if model else ())
        document = failed.as_json(db, found, at_work=at_work, judges=judges)
    if as_json:
        return print_json(document)
    for one in failed.documents_of(document):
        show(*totals_lines(one))
        if one["failures"]:
            show(*failures_tables(one["failures"]), debug_line(one["run"], one["failures"]))
    return None


def debug(run: Run, item: Item, sample: Sample = None, *, as_json: AsJson = False) -> None:
    """Show all it takes to find out why an item failed: as `show`, with grader and analysis."""
    from eval_pipeline.analysis.evidence import debug_document, debug_sections, look_into
    from eval_pipeline.evaluation.item_prompt import choose_item

    settings = read_settings()
    journal = open_warehouse(settings).journal
    with results(settings) as db:
        case = look_into(db, settings, journal, choose_item(db, run, item, command="debug"), sample)
    if as_json:
        print_json(debug_document(case))
    else:
        page_through(debug_sections(case))


def classify(
    run: Run,
    item: Item,
    classification: Annotated[
        str | None,
        typer.Argument(
            help="MODEL_FAULT, OVERLY_STRICT, AMBIGUOUS_TASK or KNOWN_GAP.",
            autocompletion=options.classifications,
        ),
    ] = None,
    note: Annotated[str, typer.Option(help="Why: it is kept and shown.")] = "",
    sample: Sample = None,
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Leave it to the analyst again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say whose fault a failure is; that wins over what the analyst says."""
    from eval_pipeline.analysis import overrides as classifying
    from eval_pipeline.analysis.report.paths import known_report
    from eval_pipeline.evaluation.item_prompt import choose_item
    from eval_pipeline.journal import RECLASSIFIED

    settings = read_settings(writes=True)
    word = classifying.read_word(classification, note, sample, undo=undo)
    with results(settings) as db:
        chosen = choose_item(db, run, item, command="classify")
        before = classifying.wrong_replies(db, chosen, sample)
    classifying.check(before, word)
    classifying.keep(open_warehouse(settings).journal, chosen, word)
    with results(settings, RECLASSIFIED) as db:
        after = classifying.wrong_replies(db, chosen, sample)
    if as_json:
        return print_json(after)
    say(*map(classifying.told, before, after))
    if report := known_report(settings.reports, chosen.run_id, chosen.model):
        named = shlex.quote(f"{chosen.model}@{chosen.run_id[:8]}")
        say(f"{report} does not say so yet: evals analyze {named}")
    return None

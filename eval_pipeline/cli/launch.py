"""Launches of `evals run`, `fix`, `job` and `analyze`: through Dagster, followed and summed up."""

import logging
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from eval_pipeline.analysis.analyse import Scope, analyst_of, scope_of
from eval_pipeline.analysis.failures import chosen_runs
from eval_pipeline.analysis.report.write import reports_on
from eval_pipeline.analysis.tables import analysed_table
from eval_pipeline.cli.output import End, complain, end, end_in_order, print_json, report, show
from eval_pipeline.cli.progress import following
from eval_pipeline.cli.project import read_settings, results
from eval_pipeline.cli.summary import LaunchSummary, conclude
from eval_pipeline.defs.config import JudgedConfig, PredictionsConfig, ReportsConfig
from eval_pipeline.defs.instance import dagster_instance
from eval_pipeline.defs.jobs import find_job, named_jobs, run_job
from eval_pipeline.defs.launch import Evaluation, Instance, analyse_runs, evaluate_all, judge_all
from eval_pipeline.evaluation.catalog import look, look_up, pick
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.progress import watching
from eval_pipeline.evaluation.runs import untold, untold_error
from eval_pipeline.journal import RUNS
from eval_pipeline.journal.deployment import open_journal, refuse_production
from eval_pipeline.journal.locks import running_run_ids
from eval_pipeline.records.run import Mode
from eval_pipeline.results.runs import FoundRun, Row, find_runs, named_judges, runs_to_fix
from eval_pipeline.runtime import graceful_interrupt, raise_if_interrupted, run_async
from eval_pipeline.settings.sections import Selection
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import load_benchmark
from eval_pipeline.suites.listing import check_filter
from eval_pipeline.text import printable

COMMAND = "evals/command"
"""The tag by which Dagster's history tells what was typed."""
# Dagster's storage would log every Ctrl-C with a traceback; it is raised all the same.
logging.getLogger("sqlalchemy.pool").addHandler(logging.NullHandler())
Work = Callable[[Instance], list[str]]
"""What is done within Dagster; it returns what went wrong, in sentences."""


def start(
    chosen: Mapping[str, list[str]],
    asked: Mapping[str, Any],
    limits: Mapping[str, Any],
    judged: Mapping[str, Any],
    *,
    resume: str | None,
    fresh: bool,
    judge: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Evaluate, or print what would be asked and cost; what is None keeps the settings' value."""
    settings, judging = Settings.from_env(), JudgedConfig(**judged)
    limits = {**limits, "budget_usd": judging.budget_usd}
    if resume is not None:
        evaluation = _continuing(_named(settings, resume), judging, limits)
    else:
        asking = PredictionsConfig(mode=Mode.FRESH if fresh else Mode.FIX, **asked, **limits)
        selection = Selection.model_validate(chosen)
        evaluation = Evaluation(asking, judging, None if selection == Selection() else selection)
    evaluation = _tagged(evaluation, settings, judge=judge)
    evaluation.apply(settings)  # what is wrong is better reported before anything is done
    if dry_run:
        _print_plans(settings, evaluation, as_json=as_json)
    else:
        carry_out(settings, partial(_evaluate, settings, [evaluation]), as_json=as_json)


def repair(
    name: str | None, judged: Mapping[str, Any], *, ask: bool, judge: bool, as_json: bool
) -> None:
    """Try again what failed in that run, or in the latest one of each model."""
    settings = read_settings(writes=True)
    runs = _named(settings, name) if name else _failed(settings)
    if not runs:
        nothing = "Nothing is missing in the latest run of any model, so there is nothing to fix."
        return report({"ended": "done", "runs": [], "failures": []}, nothing, as_json=as_json)
    judging = JudgedConfig(mode=Mode.FIX, **judged)
    limits = {"budget_usd": judging.budget_usd}
    evaluations = [
        _tagged(_continuing(group, judging, limits), settings, judge=judge)
        for group in _launchable(runs)
    ]
    work = partial(_evaluate, settings, evaluations, ask=ask)
    return carry_out(settings, work, as_json=as_json)


def list_jobs(*, as_json: bool) -> None:
    """Print every job of Dagster's by name."""
    jobs = named_jobs(Settings.from_env()).values()
    report(
        [{"job": one.name, "description": one.description} for one in jobs],
        *(f"{one.name}: {one.description}" for one in jobs),
        as_json=as_json,
    )


def start_job(name: str, *, as_json: bool, **given: Any) -> None:
    """Run one of Dagster's jobs, with what `run_job` is given besides."""
    settings = Settings.from_env()
    work = partial(run_job, find_job(settings, name), tags=command(settings), **given)
    carry_out(settings, work, as_json=as_json)


def _evaluate(
    settings: Settings, evaluations: list[Evaluation], instance: Instance, *, ask: bool = True
) -> list[str]:
    failures = []
    for one in evaluations:
        if ask:
            failures += evaluate_all(settings, instance, one)
        elif one.judging is not None:
            failures += judge_all(settings, instance, one.judging, one.models, one.tags)
    return failures


def carry_out(
    settings: Settings, work: Work, *, as_json: bool, finish: Callable[..., None] = conclude
) -> None:
    """Do the work and show its progress; `finish` prints a summary and exits, like `conclude`."""
    refuse_production(settings)
    if settings.output_dir is not None:  # that there is no room is better reported before
        settings.path(settings.output_dir).mkdir(parents=True, exist_ok=True)
    end_in_order()
    failures, interrupted = [], False
    with watching() as watch, following(as_json=as_json):
        try:
            with graceful_interrupt(), dagster_instance(settings) as instance:
                failures = work(instance)
                raise_if_interrupted()
        except KeyboardInterrupt:
            interrupted = True
            # It stops already: another Ctrl-C would only hide how to go on.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    tallies = [tally for stage in watch.stages for tally in stage.tallies]
    finish(settings, LaunchSummary(tallies, failures, interrupted), as_json=as_json)


def _named(settings: Settings, name: str) -> list[FoundRun]:
    with results(settings, RUNS) as db:
        found = find_runs(db, name)
    for run in untold(open_journal(settings), found):
        raise untold_error(run)
    return found


def _failed(settings: Settings) -> list[FoundRun]:
    at_work = running_run_ids(settings.journal)
    with results(settings) as db:
        found = runs_to_fix(db, named_judges(settings.judge), at_work)
    out = {(run.model, run.run_id) for run in untold(open_journal(settings), found)}
    if out:
        complain(f"Left out, since they were imported without their questions: {len(out)} runs.")
    return [run for run in found if (run.model, run.run_id) not in out]


def _launchable(runs: list[FoundRun]) -> Iterator[list[FoundRun]]:
    """Yield groups that one launch can go on with: of one experiment, and of each model one."""
    left = list(runs)
    while left:
        one_each = {run.model: run for run in left if run.experiment == left[0].experiment}
        yield list(one_each.values())
        left = [run for run in left if run not in one_each.values()]


def _continuing(
    runs: list[FoundRun], judging: JudgedConfig, limits: Mapping[str, Any]
) -> Evaluation:
    """Return a launch that goes on with these runs, all of one experiment, as they were begun."""
    named = {run.model: run.run_id for run in runs}
    asking = PredictionsConfig(mode=Mode.FIX, runs=named, experiment=runs[0].experiment, **limits)
    return Evaluation(asking, judging.model_copy(update={"runs": named}), models=tuple(named))


def _tagged(evaluation: Evaluation, settings: Settings, *, judge: bool) -> Evaluation:
    judging = evaluation.judging if judge else None
    return replace(evaluation, tags=command(settings), judging=judging)


def command(settings: Settings) -> dict[str, str]:
    """Return the tag of a launch that holds the typed command."""
    typed = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    return {COMMAND: settings.redact(printable(typed))}


def _print_plans(settings: Settings, evaluation: Evaluation, *, as_json: bool) -> None:
    """Print what the launch would do; nothing is kept, and no model is asked."""
    from eval_pipeline.evaluation import plan_table as tables
    from eval_pipeline.evaluation.plan import draw_up

    journal, set_here = open_journal(settings), evaluation.apply(settings)
    benchmark = load_benchmark(set_here)
    check_filter(benchmark.items, set_here.plan)
    if evaluation.models:
        models = look_up(journal, evaluation.models)
    else:
        seen, chosen = run_async(look(settings, journal)), evaluation.chosen or Selection()
        some = seen.catalog.models if chosen.models else seen.selected.models
        models = pick(some, chosen, settings.selection)
    asking = evaluation.asking
    launch = Launch("planned", asking.mode, continue_runs=asking.runs)
    if asking.only_failed:
        launch = launch.for_failed()
    judging = evaluation.judging is not None
    plans = run_async(draw_up(set_here, models, benchmark, launch, journal, judging=judging))
    document, lines = tables.as_json(plans), tables.plan_lines(plans)
    report(document, tables.plan_table(plans), *lines, as_json=as_json)


def start_analysis(
    name: str | None, models: Sequence[str], *, fresh: bool, budget_usd: float | None, as_json: bool
) -> None:
    """Analyse the failures of these runs; where there are none, say so."""
    settings = read_settings(writes=True)
    with results(settings) as db:
        runs = chosen_runs(db, name, models)
        scope = scope_of(db, runs, running_run_ids(settings.journal))
    if not scope.runs:
        return _print_analysis(scope, (), (), End.DONE, as_json=as_json)
    analyst_of(settings, open_journal(settings))  # that there is none is better reported before
    # What `latest` means may change meanwhile.
    config = ReportsConfig(
        run=runs[0].run_id if name else None,
        models=[row["model"] for row in scope.runs],
        fresh=fresh,
        budget_usd=budget_usd,
    )
    work = partial(analyse_runs, settings, config=config, tags=command(settings))
    return carry_out(settings, work, as_json=as_json, finish=partial(_conclude_analysis, scope))


def _conclude_analysis(
    scope: Scope, settings: Settings, summary: LaunchSummary, *, as_json: bool
) -> None:
    with results(settings) as db:
        reports = reports_on(db, settings, scope.runs)
    # That an analyst refuses, say, is its last word for now, and explains nothing.
    unexplained = any(one["unexplained"] for one in reports)
    how = End.FAILED if summary.how is End.DONE and unexplained else summary.how
    # If the launch itself had no failure, report one error per model.
    errors = ((one.model, one.stopped if one.failed else one.trouble) for one in summary.tallies)
    failures = summary.failures or [f"{model}: {text}" for model, text in errors if text]
    _print_analysis(scope, reports, failures, how, as_json=as_json)


def _print_analysis(
    scope: Scope, reports: Sequence[Row], failures: Sequence[str], how: End, *, as_json: bool
) -> None:
    """Print where the reports are, and why others are not; exit."""
    if how is End.DONE and any(one.is_early for one in scope.passed_over):
        how = End.FAILED
    if as_json:
        passed_over = [one.sentence for one in scope.passed_over]
        left = {"incomplete": scope.incomplete, "passed_over": passed_over}
        print_json({"ended": how.word, "reports": reports, **left, "failures": failures})
    else:
        show(*_analysis_parts(scope, reports))
        early = [one.sentence for one in scope.passed_over if one.is_early]
        for sentence in (*early, *failures, *_advice(how, reports)):
            complain(sentence)
    end(how)


def _analysis_parts(scope: Scope, reports: Sequence[Row]) -> Iterator[RenderableType]:
    if reports:
        yield analysed_table(reports)
    for one in reports:
        if one["path"]:
            yield one["path"]
        if one["kept"]:
            yield f"edited by hand, and kept as {', '.join(one['kept'])}"
    yield from scope.incomplete
    yield from (one.sentence for one in scope.passed_over if not one.is_early)


def _advice(how: End, reports: Sequence[Row]) -> list[str]:
    """Return what to do next, where something is left."""
    goes_on = "the same command asks for what is left (with --fresh it begins again with all)"
    if how is End.INTERRUPTED:
        return [f"Stopped. What is explained is kept; {goes_on}."]
    if how is End.BUDGET:
        return [f"The budget is reached. With a larger one, --budget, {goes_on}."]
    unexplained = any(one["unexplained"] for one in reports)
    return [f"Some failures are not explained; {goes_on}."] if unexplained else []

"""Launches of `evals run`, `fix`, `job` and `analyze`: through Dagster, followed and summed up."""

import logging
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.analysis.analyse import PassedOver, Scope, analyst_of, scope_of
from eval_pipeline.analysis.failures import chosen_runs
from eval_pipeline.analysis.report.write import reports_on
from eval_pipeline.analysis.tables import analysed_table
from eval_pipeline.cli.interrupts import end_in_order
from eval_pipeline.cli.output import End, complain, end, print_json, results, say, show
from eval_pipeline.cli.progress import following
from eval_pipeline.cli.summary import NAMES, Ended, conclude
from eval_pipeline.defs.config import JudgedConfig, PredictionsConfig, ReportsConfig
from eval_pipeline.defs.instance import dagster_instance
from eval_pipeline.defs.jobs import find_job, named_jobs, run_job
from eval_pipeline.defs.launch import Evaluation, Instance, analyse_runs, evaluate_all, judge_all
from eval_pipeline.evaluation.catalog import look, look_up, pick
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.progress import Watch, watching
from eval_pipeline.evaluation.runs import untold, untold_error
from eval_pipeline.evaluation.workers import StageProgress
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

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    from eval_pipeline.evaluation.plan import ModelPlan


COMMAND = "evals/command"
"""The tag by which Dagster's history tells what was typed."""
# Dagster's storage would tell of every Ctrl-C with a traceback; it is raised all the same.
logging.getLogger("sqlalchemy.pool").addHandler(logging.NullHandler())
Work = Callable[[Instance], list[str]]
"""What is done within Dagster; it returns what went wrong, in sentences."""
Tell = Callable[..., None]
"""Sums up how a launch ended, as `conclude` does, and ends the command."""


@dataclass(frozen=True)
class LaunchOptions:
    """What `evals run` was given; what is None or empty keeps its value from the settings."""

    chosen: Mapping[str, list[str]]
    asking: Mapping[str, Any]
    limits: Mapping[str, Any]
    budget_usd: float | None = None
    resume: str | None = None
    fresh: bool = False
    failed: bool = False
    judge: bool = True
    unsafe_no_sandbox: bool = False

    def evaluation(self, settings: Settings) -> Evaluation:
        """The launch that it means."""
        limits = {**self.limits, "budget_usd": self.budget_usd}
        judging = JudgedConfig(budget_usd=self.budget_usd, unsafe_no_sandbox=self.unsafe_no_sandbox)
        if self.resume is not None:
            runs = _named(settings, self.resume)
            evaluation = _continuing(runs, judging, limits)
        else:
            mode = Mode.FRESH if self.fresh else Mode.FIX
            asking = PredictionsConfig(mode=mode, only_failed=self.failed, **self.asking, **limits)
            chosen = Selection.model_validate(self.chosen)
            evaluation = Evaluation(asking, judging, None if chosen == Selection() else chosen)
        return evaluation if self.judge else replace(evaluation, judging=None)


def start(wanted: LaunchOptions, *, dry_run: bool, as_json: bool) -> None:
    """Carries it out, or tells what it would ask and cost."""
    settings = Settings.from_env()
    evaluation = replace(wanted.evaluation(settings), tags=command(settings))
    evaluation.apply(settings)  # what is wrong is better said before anything is done
    if dry_run:
        _print_plans(_planned(settings, evaluation), as_json=as_json)
    else:
        work = partial(_evaluate, settings, [evaluation])
        carry_out(settings, work, as_json=as_json)


def repair(
    name: str | None,
    *,
    ask: bool,
    judge: bool,
    budget_usd: float | None,
    unsafe_no_sandbox: bool,
    as_json: bool,
) -> None:
    """Tries again what failed in that run, or in the latest one of each model."""
    settings = Settings.from_env()
    refuse_production(settings)
    runs = _named(settings, name) if name else _failed(settings)
    if not runs:
        if as_json:
            print_json({"ended": "done", "runs": [], "failures": []})
        else:
            say("Nothing is missing in the latest run of any model, so there is nothing to fix.")
        return
    judging = JudgedConfig(
        mode=Mode.FIX, budget_usd=budget_usd, unsafe_no_sandbox=unsafe_no_sandbox
    )
    limits = {"budget_usd": budget_usd}
    evaluations = [_continuing(group, judging, limits) for group in _launchable(runs)]
    tagged = [
        replace(one, tags=command(settings), judging=one.judging if judge else None)
        for one in evaluations
    ]
    work = partial(_evaluate if ask else _judge, settings, tagged)
    carry_out(settings, work, as_json=as_json)


def list_jobs(*, as_json: bool) -> None:
    """Every job of Dagster's by name."""
    jobs = named_jobs(Settings.from_env()).values()
    if as_json:
        print_json([{"job": one.name, "description": one.description} for one in jobs])
        return
    for one in jobs:
        say(f"{one.name}: {one.description}")


def start_job(
    name: str,
    model: str | None,
    config: str | None,
    *,
    budget_usd: float | None,
    fresh: bool,
    as_json: bool,
) -> None:
    """Runs one of them."""
    settings = Settings.from_env()
    found, tags = find_job(settings, name), command(settings)
    work = partial(
        run_job,
        found,
        partition=model,
        config=config,
        tags=tags,
        budget_usd=budget_usd,
        fresh=fresh,
    )
    carry_out(settings, work, as_json=as_json)


def _evaluate(settings: Settings, evaluations: list[Evaluation], instance: Instance) -> list[str]:
    return [failure for one in evaluations for failure in evaluate_all(settings, instance, one)]


def _judge(settings: Settings, evaluations: list[Evaluation], instance: Instance) -> list[str]:
    return [
        failure
        for one in evaluations
        if one.judging is not None
        for failure in judge_all(settings, instance, one.judging, one.models, one.tags)
    ]


def carry_out(settings: Settings, work: Work, *, as_json: bool, tell: Tell = conclude) -> None:
    """Does it while progress is shown, and ends as it ended, which `tell` sums up."""
    refuse_production(settings)
    if settings.output_dir is not None:  # that there is no room is better said before
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
            # It stops already: whoever goes on pressing would only miss how to go on.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    tell(settings, watch, failures, interrupted=interrupted, as_json=as_json)


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
    """Those that one launch can go on with: of one experiment, and of each model one."""
    left = list(runs)
    while left:
        one_each = {run.model: run for run in left if run.experiment == left[0].experiment}
        yield list(one_each.values())
        left = [run for run in left if run not in one_each.values()]


def _continuing(
    runs: list[FoundRun], judging: JudgedConfig, limits: Mapping[str, Any]
) -> Evaluation:
    """A launch that goes on with these runs, all of one experiment, as they were begun."""
    named = {run.model: run.run_id for run in runs}
    asking = PredictionsConfig(mode=Mode.FIX, runs=named, experiment=runs[0].experiment, **limits)
    return Evaluation(asking, judging.model_copy(update={"runs": named}), models=tuple(named))


def command(settings: Settings) -> dict[str, str]:
    """The tag of a launch that tells what was typed."""
    typed = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    return {COMMAND: settings.redact(printable(typed))}


def _planned(settings: Settings, evaluation: Evaluation) -> "list[ModelPlan]":
    """What the launch would do; nothing is kept, and no model is asked."""
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
    return run_async(draw_up(set_here, models, benchmark, launch, journal, judging=judging))


def _print_plans(plans: "list[ModelPlan]", *, as_json: bool) -> None:
    from eval_pipeline.evaluation.plan_table import as_json as plan_as_json
    from eval_pipeline.evaluation.plan_table import plan_lines, plan_table

    if as_json:
        print_json(plan_as_json(plans))
        return
    show(plan_table(plans))
    for line in plan_lines(plans):
        say(line)


GOES_ON = "the same command asks for what is left (with --fresh it begins again with all)"


def start_analysis(
    name: str | None,
    models: Sequence[str],
    *,
    fresh: bool,
    budget_usd: float | None,
    as_json: bool,
) -> None:
    """Has the failures of these runs looked into; where there are none, says so."""
    settings = Settings.from_env()
    refuse_production(settings)
    with results(settings) as db:
        runs = chosen_runs(db, name, models)
        scope = scope_of(db, runs, running_run_ids(settings.journal))
    if not scope.runs:
        _tell(scope, (), (), how=End.DONE, as_json=as_json)
        return
    analyst_of(settings, open_journal(settings))  # that there is none is better said before
    # What `latest` means may change meanwhile.
    config = ReportsConfig(
        run=runs[0].run_id if name else None,
        models=[row["model"] for row in scope.runs],
        fresh=fresh,
        budget_usd=budget_usd,
    )

    def work(instance: Instance) -> list[str]:
        return analyse_runs(settings, instance, config, command(settings))

    carry_out(settings, work, as_json=as_json, tell=partial(_conclude, scope))


def _conclude(
    scope: Scope,
    settings: Settings,
    watch: Watch,
    failures: Sequence[str],
    *,
    interrupted: bool,
    as_json: bool,
) -> None:
    tallies = [tally for stage in watch.stages for tally in stage.tallies]
    ended = Ended(tallies, failures, interrupted=interrupted)
    with results(settings) as db:
        reports = reports_on(db, settings, scope.runs)
    # That an analyst refuses, say, is its last word for now, and explains nothing.
    unexplained = any(one["unexplained"] for one in reports)
    how = End.FAILED if ended.how is End.DONE and unexplained else ended.how
    _tell(scope, reports, failures or _troubles(tallies), how=how, as_json=as_json)


def _troubles(tallies: Sequence[StageProgress]) -> list[str]:
    """What was said where something could not be explained, of each model one thing."""
    told = ((one.model, one.stopped if one.failed else one.trouble) for one in tallies)
    return [f"{model}: {text}" for model, text in told if text]


def _tell(
    scope: Scope, reports: Sequence[Row], failures: Sequence[str], *, how: End, as_json: bool
) -> None:
    """Where the reports are, and why others are not; and ends the command so."""
    if how is End.DONE and any(one.is_early for one in scope.passed_over):
        how = End.FAILED
    if as_json:
        left = {"incomplete": scope.incomplete, "passed_over": _sentences(scope.passed_over)}
        print_json({"ended": NAMES[how], "reports": reports, **left, "failures": list(failures)})
    else:
        _say(scope, reports)
        for sentence in (*failures, *_advice(how, reports)):
            complain(sentence)
    end(how)


def _say(scope: Scope, reports: Sequence[Row]) -> None:
    if reports:
        show(analysed_table(reports))
    for report in filter(lambda one: one["path"], reports):
        say(report["path"])
        if report["kept"]:
            say(f"edited by hand and left as it is: {', '.join(report['kept'])}")
    for sentence in scope.incomplete:
        say(sentence)
    for one in scope.passed_over:
        (complain if one.is_early else say)(one.sentence)


def _sentences(passed_over: Sequence[PassedOver]) -> list[str]:
    return [one.sentence for one in passed_over]


def _advice(how: End, reports: Sequence[Row]) -> list[str]:
    """What to do next, where something is left."""
    match how:
        case End.INTERRUPTED:
            return [f"Stopped. What is explained is kept; {GOES_ON}."]
        case End.BUDGET:
            return [f"The budget is reached. With a larger one, --budget, {GOES_ON}."]
    if any(one["unexplained"] for one in reports):
        return [f"Some failures are not explained; {GOES_ON}."]
    return []

"""What `evals analyze` does: a launch of `run_reports`, followed here and summed up."""

from collections.abc import Sequence
from functools import partial

from eval_pipeline.analysis.analyse import PassedOver, Scope, analyst_of, chosen_runs, scope_of
from eval_pipeline.analysis.report.write import reports_on
from eval_pipeline.analysis.tables import analysed_table
from eval_pipeline.cli.endings import NAMES, Ended
from eval_pipeline.cli.launches import carry_out, command
from eval_pipeline.cli.output import End, complain, end, print_json, say, show
from eval_pipeline.cli.places import results
from eval_pipeline.defs.config import ReportsConfig
from eval_pipeline.defs.launch import Instance, analyse_runs
from eval_pipeline.journal.deployment import open_journal, refuse_production
from eval_pipeline.journal.locks import running_run_ids
from eval_pipeline.progress import Watch
from eval_pipeline.results.runs import FoundRun, Row
from eval_pipeline.settings import Settings
from eval_pipeline.stages.workers import Tally

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
    runs = [FoundRun.of(row) for row in scope.runs]
    with results(settings) as db:
        reports = reports_on(db, settings, runs)
    # That an analyst refuses, say, is its last word for now, and explains nothing.
    unexplained = any(one["unexplained"] for one in reports)
    how = End.FAILED if ended.how is End.DONE and unexplained else ended.how
    _tell(scope, reports, failures or _troubles(tallies), how=how, as_json=as_json)


def _troubles(tallies: Sequence[Tally]) -> list[str]:
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
            say(f"edited by hand, and kept as {', '.join(report['kept'])}")
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

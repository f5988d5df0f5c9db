"""Materializing from the command line, with the same history as the UI and `dagster`."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import dagster as dg

from eval_pipeline.defs.assets import build_graph
from eval_pipeline.defs.automation import RESULTS, SEES_TO_THE_REST
from eval_pipeline.defs.config import JudgedConfig, PredictionsConfig, ReportsConfig
from eval_pipeline.defs.instance import dagster_instance
from eval_pipeline.defs.notifications import cause_of
from eval_pipeline.defs.partitions import MODELS, SOME, tags_for
from eval_pipeline.evaluation.catalog import listed_models, look_up, pick
from eval_pipeline.evaluation.grading import CodeGraderFactory
from eval_pipeline.evaluation.state import PAST_RUNS
from eval_pipeline.journal import RUNS, Journal
from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import Item
from eval_pipeline.records.run import Mode
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.sections import Selection
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import current, past_items
from eval_pipeline.suites.listing import check_filter, planned

INPUTS = ("dataset", "model_catalog")
STAGES = ("predictions", "judged", *RESULTS)
# What failed is told in a sentence; the stack trace is in Dagster's history.
QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}

log = logging.getLogger(__name__)
Instance = dg.DagsterInstance
"""For front doors, which do without Dagster itself."""


@dataclass(frozen=True)
class Evaluation:
    """One launch: which models are asked and how, and how their answers are judged, if at all.

    Without `models` or `chosen`, these are all that the settings select.
    """

    asking: PredictionsConfig
    judging: JudgedConfig | None = field(default_factory=JudgedConfig)
    chosen: Selection | None = None
    models: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    def items(self, journal: Journal) -> Iterator[Item]:
        """Yield the items of the runs that this launch continues."""
        for model in self.models:
            begins = self.asking.runs.get(model, self.asking.run_id or "")
            for past in journal.read(PAST_RUNS, model):
                if past.run_id.startswith(begins):
                    run = next(journal.read_file(RUNS, model, past.run_id))
                    items = past_items(journal, run.benchmark_version)
                    yield from (items[key] for key in run.plan)

    def apply(self, settings: Settings) -> Settings:
        """The settings with what this launch says instead."""
        asking = self.asking.apply(settings)
        return asking if self.judging is None else self.judging.apply(asking)


def evaluate(settings: Settings, mode: Mode) -> list[str]:
    """The whole graph for every selected model; returns what went wrong, in sentences."""
    with dagster_instance(settings) as instance:
        return evaluate_all(settings, instance, Evaluation(PredictionsConfig(mode=mode)))


def evaluate_all(
    settings: Settings, instance: dg.DagsterInstance, evaluation: Evaluation
) -> list[str]:
    """Inputs, then all stages for all models in one run; returns what went wrong."""
    graph, tags = build_graph(settings), dict(evaluation.tags)
    if failures := _materialize(graph, instance, INPUTS, tags, {}):
        return failures
    journal, set_here = open_journal(settings), evaluation.apply(settings)
    models = _models(evaluation, settings, journal, instance.get_dynamic_partitions(MODELS))
    # Better to miss an item, a judge or a sandbox before the models are asked and paid.
    _check(evaluation, set_here, journal)
    instance.add_dynamic_partitions(MODELS, models)
    # As one run, which asks all models, several at a time.
    tags |= tags_for(models, instance.get_dynamic_partitions(MODELS))
    config: dict[str, dg.Config] = {"predictions": evaluation.asking}
    if evaluation.judging is None:
        return _materialize(graph, instance, ["predictions"], tags, config)
    config["judged"] = evaluation.judging
    return _materialize(graph, instance, STAGES, {**tags, SEES_TO_THE_REST: "true"}, config)


def judge_all(
    settings: Settings,
    instance: dg.DagsterInstance,
    judging: JudgedConfig,
    models: Sequence[str],
    tags: Mapping[str, str],
) -> list[str]:
    """Judges what has no score, of these models or of all, and computes; asks no other model."""
    about = {SOME: ",".join(models)} if models else {}
    assets, config = ["judged", *RESULTS], {"judged": judging}
    return _materialize(build_graph(settings), instance, assets, {**tags, **about}, config)


def analyse_runs(
    settings: Settings,
    instance: dg.DagsterInstance,
    config: ReportsConfig,
    tags: Mapping[str, str],
) -> list[str]:
    """Has failures looked into and reports written; asks nobody but the analyst."""
    told = {"run_reports": config}
    return _materialize(build_graph(settings), instance, ["run_reports"], tags, told)


def _check(evaluation: Evaluation, settings: Settings, journal: Journal) -> None:
    """That there is something to ask, and whoever is to grade it."""
    asked = _asked(evaluation, settings, journal)
    if evaluation.judging is None:
        return
    look_up(journal, [*settings.judge.models, *settings.coding.reviewers])
    tasks = [item for item in asked if isinstance(item, CodingTask)]
    if tasks:
        run_async(CodeGraderFactory(settings).open(tasks))


def _asked(evaluation: Evaluation, settings: Settings, journal: Journal) -> Iterable[Item]:
    """The items of the runs that go on, or those that the filter leaves."""
    if evaluation.asking.names_runs:
        return evaluation.items(journal)
    items = current(journal, settings).items
    check_filter(items, settings.plan)
    return (items[brief.key] for brief in planned(items, settings.plan))


def _models(
    evaluation: Evaluation, settings: Settings, journal: Journal, known: Sequence[str]
) -> Sequence[str]:
    """Who is asked: all partitions, or those that the launch names, which become some."""
    if evaluation.models:
        return [model.id for model in look_up(journal, evaluation.models)]
    if evaluation.chosen is None:
        return known
    chosen = evaluation.chosen
    some = listed_models(journal) if chosen.models else look_up(journal, known)
    return [model.id for model in pick(some, chosen, settings.selection)]


def _materialize(
    graph: dg.Definitions,
    instance: dg.DagsterInstance,
    assets: Sequence[str],
    tags: Mapping[str, str],
    config: Mapping[str, dg.Config],
) -> list[str]:
    run_id = str(uuid4())
    try:
        result = graph.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            run_id=run_id,
            asset_selection=[dg.AssetKey(name) for name in assets],
            tags=dict(tags),
            run_config=dg.RunConfig(ops=dict(config), loggers=QUIET),
            raise_on_error=False,
        )
    except BaseException:
        # Interrupted at the very beginning, Dagster would have the run wait for ever.
        run = instance.get_run_by_id(run_id)
        if run is not None and run.status is dg.DagsterRunStatus.NOT_STARTED:
            instance.report_run_canceled(run)
        raise
    return failures_of(result)


def failures_of(result: dg.ExecuteInProcessResult) -> list[str]:
    """Failed steps and checks; what a check only warns of is told in the log."""
    failed = result.filter_events(lambda event: event.is_step_failure or event.is_job_failure)
    causes = [(event, cause_of(event)) for event in failed]
    if any(cause and cause.is_interruption for _, cause in causes):
        raise KeyboardInterrupt
    told = [
        f"{event.step_key}: {cause.words if cause else 'it failed'}"
        for event, cause in causes
        if event.is_step_failure
    ]
    for check in result.get_asset_check_evaluations():
        if check.passed:
            continue
        if check.severity is dg.AssetCheckSeverity.ERROR:
            told.append(f"The check {check.check_name} failed: {check.description}.")
        else:
            log.warning("Worth a look: %s.", check.description)
    return told

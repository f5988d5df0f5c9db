"""Materializing from the command line, with the same history as the UI and `dagster`."""

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.instance.ref import InstanceRef
from dagster_shared.error import SerializableErrorInfo

from eval_pipeline.benchmark import current
from eval_pipeline.defs.automation import RESULTS
from eval_pipeline.defs.config import CatalogConfig, JudgedConfig, PredictionsConfig
from eval_pipeline.defs.graph import build_graph
from eval_pipeline.defs.partitions import MODELS, SOME, tags_for
from eval_pipeline.defs.sensors.dead_runs import close_dead_runs
from eval_pipeline.discovery import known_models, look_up, pick
from eval_pipeline.journal import Journal
from eval_pipeline.options import Selection
from eval_pipeline.running import run_async
from eval_pipeline.runs import Mode, RunError, check_filter, planned
from eval_pipeline.settings import Settings
from eval_pipeline.stages.workshop import Workshop

INPUTS = ("dataset", "model_catalog")
STAGES = ("predictions", "judged", *RESULTS)
# What failed is told in a sentence; the stack trace is in Dagster's history.
QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}
# What is said stands in the run's log. To capture stderr too, Dagster starts processes that show
# it here, and a Ctrl-C ends those with a traceback.
UNCAPTURED = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}
# The second is what the first becomes when the run was part of another one.
INTERRUPTIONS = {"DagsterExecutionInterruptedError", "KeyboardInterrupt"}

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
    catalog = CatalogConfig(also=list(evaluation.chosen.models) if evaluation.chosen else [])
    if failures := _materialize(graph, instance, INPUTS, tags, {"model_catalog": catalog}):
        return failures
    # Better to miss an item, a judge or a sandbox before the models are asked and paid.
    journal, set_here = Journal(settings.journal), evaluation.apply(settings)
    _check(journal, set_here, judging=evaluation.judging is not None)
    models = _models(evaluation, instance, journal)
    # As one run, which asks all models, several at a time.
    tags |= tags_for(models, instance.get_dynamic_partitions(MODELS))
    if evaluation.judging is None:
        config: dict[str, dg.Config] = {"predictions": evaluation.asking}
        return _materialize(graph, instance, ["predictions"], tags, config)
    config = {"predictions": evaluation.asking, "judged": evaluation.judging}
    return _materialize(graph, instance, STAGES, tags, config)


def judge_all(
    settings: Settings,
    instance: dg.DagsterInstance,
    judging: JudgedConfig,
    models: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
) -> list[str]:
    """Judges what has no score, of these models or of all, and computes; asks no other model."""
    tags = {**(tags or {}), **({SOME: ",".join(models)} if models else {})}
    config = {"judged": judging}
    return _materialize(build_graph(settings), instance, ["judged", *RESULTS], tags, config)


def _check(journal: Journal, settings: Settings, *, judging: bool) -> None:
    """That there is something to ask, and whoever is to grade it."""
    benchmark = current(journal, settings)
    check_filter(benchmark.items, settings.plan)
    if not judging:
        return
    look_up(journal, [*settings.judge.models, *settings.coding.reviewers])
    coding, asked = benchmark.version.coding_suites, planned(benchmark.items, settings.plan)
    tasks = [benchmark.items[brief.key] for brief in asked if brief.key.suite in coding]
    run_async(Workshop(settings.coding, settings.data).check(tasks))


def _models(
    evaluation: Evaluation, instance: dg.DagsterInstance, journal: Journal
) -> Sequence[str]:
    """Who is asked: partitions, which those that a run names become if they are none."""
    known = instance.get_dynamic_partitions(MODELS)
    if evaluation.models:
        look_up(journal, evaluation.models)
        missing = [model for model in evaluation.models if model not in known]
        instance.add_dynamic_partitions(MODELS, missing)
        return evaluation.models
    if evaluation.chosen is None:
        return known
    return pick(known_models(journal), evaluation.chosen, among=known)


def run_job(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    *,
    partition: str | None = None,
    config: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> list[str]:
    """One job as `dagster job execute` runs it; returns what went wrong, in sentences."""
    if job.partitions_def is not None and partition is None:
        raise RunError(f"{job.name} needs a model: --model. For all of them there is evaluate_all.")
    if job.partitions_def is None and partition is not None:
        raise RunError(f"{job.name} is for all models at once: leave out --model.")
    given = _default_config(job, partition) if config is None else _parsed(config)
    try:
        result = job.execute_in_process(
            instance=instance,
            partition_key=partition,
            tags=dict(tags or {}),
            run_config={**given, "loggers": QUIET},
            raise_on_error=False,
        )
    except dg.DagsterInvalidConfigError as error:
        raise RunError(f"The config of {job.name} is wrong: {error.errors[0].message}") from None
    return _failures(result)


def _default_config(job: dg.JobDefinition, partition: str | None) -> Mapping[str, object]:
    if job.partitioned_config is not None and partition is not None:
        return job.partitioned_config.get_run_config_for_partition_key(partition)
    return job.run_config or {}


def _parsed(config: str) -> dict[str, object]:
    try:
        parsed = json.loads(config)
    except ValueError as error:
        raise RunError(f"The config is no JSON: {error}.") from None
    if not isinstance(parsed, dict):
        raise RunError('The config must be an object, such as {"ops": {…}}.')
    return parsed


@contextmanager
def dagster_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The instance that `dagster` uses in the project root, with or without DAGSTER_HOME."""
    # dagster.yaml speaks of folders relative to the project root.
    with chdir(settings.root), _instance(settings) as instance:
        for sentence in close_dead_runs(instance, settings.journal):
            log.warning(sentence)
        yield instance


def _materialize(
    graph: dg.Definitions,
    instance: dg.DagsterInstance,
    assets: Sequence[str],
    tags: Mapping[str, str],
    config: Mapping[str, dg.Config],
) -> list[str]:
    result = graph.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(name) for name in assets],
        tags=dict(tags),
        run_config=dg.RunConfig(ops=dict(config), loggers=QUIET),
        raise_on_error=False,
    )
    return _failures(result)


def _failures(result: dg.ExecuteInProcessResult) -> list[str]:
    """Failed steps and checks; what a check only warns of is told in the log."""
    ended = result.filter_events(lambda event: event.is_job_failure)
    if any(is_interruption(innermost(event.job_failure_data.error)) for event in ended):
        raise KeyboardInterrupt
    failed = result.filter_events(lambda event: event.is_step_failure)
    told = [f"{event.step_key}: {_root_cause(event)}" for event in failed]
    for check in result.get_asset_check_evaluations():
        sentence = f"The check {check.check_name} failed: {check.description}."
        if not check.passed and check.severity is dg.AssetCheckSeverity.ERROR:
            told.append(sentence)
        elif not check.passed:
            log.warning(sentence)
    return told


def _root_cause(event: dg.DagsterEvent) -> str:
    error = innermost(event.step_failure_data.error)
    if is_interruption(error):
        raise KeyboardInterrupt
    return words_of(error)


def innermost(error: SerializableErrorInfo | None) -> SerializableErrorInfo | None:
    """The error that the others came from."""
    while error and error.cause:
        error = error.cause
    return error


def is_interruption(error: SerializableErrorInfo | None) -> bool:
    """Whether somebody ended the run, and nothing went wrong."""
    return error is not None and error.cls_name in INTERRUPTIONS


def words_of(error: SerializableErrorInfo | None) -> str:
    """What the error says; Dagster puts the exception's class before its words."""
    return error.message.strip().split(": ", 1)[-1] if error else "it failed"


@contextmanager
def _instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    overrides: dict[str, Any] = {**UNCAPTURED}
    if home := os.environ.get("DAGSTER_HOME"):
        folder = Path(home).expanduser()
    elif Path("dagster.yaml").exists():
        folder = settings.root
    else:
        folder = settings.data / "dagster"
        folder.mkdir(parents=True, exist_ok=True)
        overrides["telemetry"] = {"enabled": False}
    ref = InstanceRef.from_dir(str(folder), overrides=overrides)
    with dg.DagsterInstance.from_ref(ref) as instance:
        yield instance

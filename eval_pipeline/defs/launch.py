"""Materializing from the command line, with the same history as the UI and `dagster`."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path

import dagster as dg
from dagster._core.instance.ref import InstanceRef

from eval_pipeline.benchmark import current
from eval_pipeline.definitions import build_definitions
from eval_pipeline.defs.partitions import MODELS
from eval_pipeline.discovery import look_up
from eval_pipeline.journal import Journal
from eval_pipeline.records import Item
from eval_pipeline.running import run_async
from eval_pipeline.runs import Mode, planned
from eval_pipeline.settings import Settings
from eval_pipeline.stages.workshop import Workshop

INPUTS = ("dataset", "model_catalog")
STAGES = ("predictions", "judged", "metrics", "comparisons", "leaderboard")
RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def evaluate(settings: Settings, mode: Mode) -> list[str]:
    """The whole graph for every selected model, in two runs; returns what went wrong."""
    # dagster.yaml speaks of folders relative to the project root.
    with chdir(settings.root), _instance(settings) as instance:
        if failures := _materialize(settings, instance, INPUTS, {}, {}):
            return failures
        # Better to miss a judge or a sandbox before the models are asked and paid.
        journal = Journal(settings.journal)
        look_up(journal, [*settings.judge.models, *settings.coding.reviewers])
        run_async(Workshop(settings.coding, settings.data).check(_tasks(journal, settings)))
        models = instance.get_dynamic_partitions(MODELS)
        # All partitions are one range, so one run asks all models, several at a time.
        tags = {RANGE_START: models[0], RANGE_END: models[-1]}
        config = {"predictions": {"config": {"mode": mode.name}}}
        return _materialize(settings, instance, STAGES, tags, config)


def _tasks(journal: Journal, settings: Settings) -> list[Item]:
    """The coding tasks among the items that will be asked."""
    benchmark = current(journal, settings)
    coding, asked = benchmark.version.coding_suites, planned(benchmark.items, settings.plan)
    return [benchmark.items[brief.key] for brief in asked if brief.key.suite in coding]


def _materialize(
    settings: Settings,
    instance: dg.DagsterInstance,
    assets: Sequence[str],
    tags: dict[str, str],
    config: Mapping[str, object],
) -> list[str]:
    result = (
        build_definitions(settings)
        .resolve_implicit_global_asset_job_def()
        .execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(name) for name in assets],
            tags=tags,
            # What failed is told in a sentence; the stack trace is in Dagster's history.
            run_config={
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                "ops": dict(config),
            },
            raise_on_error=False,
        )
    )
    failed = result.filter_events(lambda event: event.is_step_failure)
    checks = [check for check in result.get_asset_check_evaluations() if not check.passed]
    return [f"{event.step_key}: {_root_cause(event)}" for event in failed] + [
        f"The check {check.check_name} failed: {check.description}." for check in checks
    ]


def _root_cause(event: dg.DagsterEvent) -> str:
    error = event.step_failure_data.error
    while error and error.cause:
        error = error.cause
    if error and error.cls_name == "DagsterExecutionInterruptedError":
        raise KeyboardInterrupt
    # Dagster puts the exception's class before its words.
    return error.message.strip().split(": ", 1)[-1] if error else "it failed"


@contextmanager
def _instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The instance that `dagster` uses in the project root, with or without DAGSTER_HOME."""
    if os.environ.get("DAGSTER_HOME"):
        instance = dg.DagsterInstance.get()
    elif Path("dagster.yaml").exists():
        instance = dg.DagsterInstance.from_config(str(settings.root))
    else:
        folder = settings.data / "dagster"
        folder.mkdir(parents=True, exist_ok=True)
        quiet = {"telemetry": {"enabled": False}}
        instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(folder), overrides=quiet))
    with instance:
        yield instance

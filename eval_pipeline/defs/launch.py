"""Materializing from the command line, with the same history as the UI and `dagster`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from eval_pipeline.definitions import build_definitions
from eval_pipeline.defs.partitions import MODELS
from eval_pipeline.runs import RunError
from eval_pipeline.settings import Settings

RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def evaluate(settings: Settings) -> bool:
    """The whole graph for every selected model; says whether everything succeeded."""
    job = build_definitions(settings).resolve_implicit_global_asset_job_def()
    with _instance(settings) as instance:
        inputs = _materialize(job, instance, ["dataset", "model_catalog"], {})
        models = instance.get_dynamic_partitions(MODELS)
        if not inputs or not models:
            raise RunError("No model is selected: see the settings under [selection], and MODELS.")
        tags = {RANGE_START: models[0], RANGE_END: models[-1]}
        return _materialize(
            job, instance, ["predictions", "judged", "metrics", "leaderboard"], tags
        )


def _materialize(
    job: dg.JobDefinition, instance: dg.DagsterInstance, assets: list[str], tags: dict[str, str]
) -> bool:
    result = job.execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(name) for name in assets],
        tags=tags,
        run_config={"loggers": {"console": {"config": {"log_level": "WARNING"}}}},
        raise_on_error=False,
    )
    return result.success


@contextmanager
def _instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The instance that `dagster` uses in the project root, with or without DAGSTER_HOME."""
    if os.environ.get("DAGSTER_HOME"):
        with dg.DagsterInstance.get() as instance:
            yield instance
    else:
        with dg.DagsterInstance.from_config(str(settings.root)) as instance:
            yield instance

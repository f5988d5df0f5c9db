"""What Dagster's history says of runs that were deleted: it keeps its own of them."""

from collections.abc import Sequence

import dagster as dg

from eval_pipeline.defs.instance import dagster_instance
from eval_pipeline.deleting import RunKey
from eval_pipeline.settings import Settings


def tell_of_deletion(settings: Settings, runs: Sequence[RunKey]) -> None:
    """An observation of `predictions` for each run, in the partition of its model."""
    with dagster_instance(settings) as instance:
        for run in runs:
            instance.report_runless_asset_event(
                dg.AssetObservation(
                    "predictions",
                    partition=run.model,
                    description=f"Run {run.run_id[:8]} was deleted: evals delete",
                    metadata={"deleted_run": run.run_id},
                )
            )

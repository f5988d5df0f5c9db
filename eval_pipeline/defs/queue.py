"""How many runs Dagster has waiting and under way, for whoever watches over them."""

import time
from typing import NamedTuple

import dagster as dg

from eval_pipeline.defs.instance import instance_from_anywhere
from eval_pipeline.settings import Settings

STATUSES = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


class Waiting(NamedTuple):
    """Runs by status, and for how long the first of those that are queued has been."""

    runs: dict[str, int]
    oldest_queued_s: float


def look_at_queue(settings: Settings) -> Waiting | None:
    """How it is now; None where nothing was ever launched."""
    with instance_from_anywhere(settings) as instance:
        if instance is None:
            return None
        runs = {
            status.value.lower(): instance.get_runs_count(dg.RunsFilter(statuses=[status]))
            for status in STATUSES
        }
        queued = dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED])
        first = instance.get_run_records(queued, limit=1, ascending=True)
    since = [time.time() - record.create_timestamp.timestamp() for record in first]
    return Waiting(runs, max(0.0, *since) if since else 0.0)

"""The definitions that Dagster loads: a function of the settings, so that tests build the same."""

import dagster as dg

from eval_pipeline.defs.assets import build_graph
from eval_pipeline.defs.automation import build_automation, build_schedules
from eval_pipeline.defs.jobs import build_jobs
from eval_pipeline.defs.sensors import build_dead_runs, build_discovery, build_notifications
from eval_pipeline.logs import JsonLines, write_lines
from eval_pipeline.settings.settings import Settings


def build_definitions(settings: Settings) -> dg.Definitions:
    """Return the assets, and everything that materializes them: jobs, schedules, sensors."""
    materialized_by = (build_jobs, build_automation, build_schedules)
    watching = (build_discovery, build_dead_runs, build_notifications)
    parts = (build_graph, *materialized_by, *watching)
    return dg.Definitions.merge(*(build(settings) for build in parts))


def load_definitions(settings: Settings) -> dg.Definitions:
    """Return the same for a process of Dagster's, which logs as the settings say."""
    if settings.log == "json":
        write_lines(JsonLines(settings.redact))
    return build_definitions(settings)


defs = load_definitions(Settings.from_env())

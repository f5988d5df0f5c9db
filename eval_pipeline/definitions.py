"""What Dagster loads: a function of the settings, so that tests build the same graph elsewhere."""

import dagster as dg

from eval_pipeline.defs.automation import build_automation
from eval_pipeline.defs.graph import build_graph
from eval_pipeline.defs.jobs import build_jobs
from eval_pipeline.defs.schedules import build_schedules
from eval_pipeline.defs.sensors.dead_runs import build_dead_runs
from eval_pipeline.defs.sensors.discovery import build_discovery
from eval_pipeline.defs.sensors.failures import build_notifications
from eval_pipeline.logs import JsonLines, write_lines
from eval_pipeline.runs import RunError
from eval_pipeline.settings import Settings


def build_definitions(settings: Settings) -> dg.Definitions:
    """The assets, and everything that materializes them: jobs, schedules, sensors."""
    return dg.Definitions.merge(
        build_graph(settings),
        build_jobs(settings),
        build_automation(settings),
        build_schedules(settings),
        build_discovery(settings),
        build_dead_runs(settings),
        build_notifications(settings),
    )


def find_job(settings: Settings, name: str) -> dg.JobDefinition:
    """The job of that name; an unknown one is refused with those there are."""
    jobs = named_jobs(settings)
    if name not in jobs:
        raise RunError(f"There is no job {name}. There are: {', '.join(jobs)}.")
    return jobs[name]


def named_jobs(settings: Settings) -> dict[str, dg.JobDefinition]:
    """The jobs that people launch by name; Dagster has one more, for any selection of assets."""
    jobs = build_definitions(settings).resolve_all_job_defs()
    return {job.name: job for job in jobs if not job.name.startswith("__")}


def load_definitions(settings: Settings) -> dg.Definitions:
    """The same for a process of Dagster's, whose log is to be what the settings say."""
    if settings.log == "json":
        write_lines(JsonLines(settings.redact))
    return build_definitions(settings)


defs = load_definitions(Settings.from_env())

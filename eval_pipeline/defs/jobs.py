"""Jobs: launched by name from the UI, `dagster job execute -j` or `evals job`."""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import dagster as dg

from eval_pipeline.defs.assets import build_graph
from eval_pipeline.defs.automation import RESULTS, SEES_TO_THE_REST, build_schedules
from eval_pipeline.defs.config import (
    AllConfig,
    CatalogConfig,
    JudgedConfig,
    PredictionsConfig,
    ReportsConfig,
)
from eval_pipeline.defs.launch import QUIET, STAGES, Evaluation, evaluate_all, failures_of
from eval_pipeline.defs.partitions import PART_OF
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.errors import RunError
from eval_pipeline.records.run import Mode
from eval_pipeline.settings.settings import Settings

WHOLE = {SEES_TO_THE_REST: "true"}
"""The tag of a run to which conditions have nothing to add."""


def build_jobs(settings: Settings) -> dg.Definitions:
    """Every job, with what the settings say as its config, to be seen and changed."""
    asking, judging = PredictionsConfig.of(settings), JudgedConfig.of(settings)
    fixing = PredictionsConfig.of(settings, Mode.FIX)
    jobs: list[Any] = [
        dg.define_asset_job(
            "evaluate",
            STAGES,
            tags=WHOLE,
            config=_begins_with(predictions=asking, judged=judging),
            description="One model, which is the partition: ask what is missing or failed in its "
            "latest run, or everything in a new one; judge, compute, rank.",
        ),
        _for_all(
            "evaluate_all",
            AllConfig(predictions=asking, judged=judging),
            "Every selected model in one run, several at a time: load the data set, refresh the "
            "catalog, ask, judge, compute, rank.",
        ),
        _for_all(
            "fix_evaluation",
            AllConfig(predictions=fixing, judged=judging),
            "Ask again what is missing or failed in the latest run of every selected model; "
            "opens no new run where there is one. Then judge, compute, rank.",
        ),
        dg.define_asset_job(
            "fix_judge",
            ["judged", *RESULTS],
            tags=WHOLE,
            config=_begins_with(judged=JudgedConfig.of(settings, Mode.FIX)),
            description="Judge whatever has no score yet, of all models. Then compute and rank.",
        ),
        dg.define_asset_job(
            "metrics_only",
            RESULTS,
            tags=WHOLE,
            description="Compute all numbers anew from what is there; nobody is asked anything.",
        ),
        dg.define_asset_job(
            "analyze",
            ["run_reports"],
            config=_begins_with(run_reports=ReportsConfig.of(settings)),
            description="Have an analyst look into every failure of the latest runs, or of one "
            "run, and write a report about each run.",
        ),
        dg.define_asset_job(
            "refresh_catalog",
            ["model_catalog"],
            config=_begins_with(model_catalog=CatalogConfig.of(settings)),
            description="Ask every gateway for its models; those selected become partitions.",
        ),
    ]
    return dg.Definitions(jobs=jobs)


def find_job(settings: Settings, name: str) -> dg.JobDefinition:
    """Return the job of that name; refuse an unknown one with those there are."""
    jobs = named_jobs(settings)
    if name not in jobs:
        raise RunError(f"There is no job {name}. There are: {', '.join(jobs)}.")
    return jobs[name]


def named_jobs(settings: Settings) -> dict[str, dg.JobDefinition]:
    """Return the jobs to launch by name; Dagster has one more, for any selection of assets."""
    parts = (build_graph, build_jobs, build_schedules)  # the last refuses a wrong cron line
    jobs = dg.Definitions.merge(*(build(settings) for build in parts)).resolve_all_job_defs()
    return {job.name: job for job in jobs if not job.name.startswith("__")}


@dg.op
def every_model(
    context: dg.OpExecutionContext, config: AllConfig, warehouse: WarehouseResource
) -> None:
    """Materializes the assets for all partitions, in runs that are part of this one."""
    tags = {PART_OF: context.run_id}
    evaluation = Evaluation(config.predictions, config.judged, tags=tags)
    failures = evaluate_all(warehouse.settings, context.instance, evaluation)
    if failures:
        raise dg.Failure(" ".join(failures), allow_retries=False)


def _for_all(name: str, config: AllConfig, description: str) -> dg.JobDefinition:
    """No asset job can say "all partitions, in one run": so its only step sees to that."""
    graph = dg.GraphDefinition(name, node_defs=[every_model])
    return graph.to_job(
        config=_begins_with(every_model=config),
        description=description,
        executor_def=dg.in_process_executor,
    )


def _begins_with(**ops: dg.Config) -> dict[str, Any]:
    """What the launchpad shows at first: what can be set, and nothing else."""
    return {"ops": dg.RunConfig(ops=ops).to_config_dict()["ops"]}  # type: ignore[no-untyped-call]


Path = tuple[str, ...]
Config = Mapping[str, Any]
PAID = ("predictions", "judged", "run_reports")
"""Whatever asks models."""
ALL = "every_model"
FIXES = "fix_evaluation"
"""The job that opens no new run."""


def stages_of(config: Config) -> dict[str, Path]:
    """Where in a job's config each of its stages that ask models is set."""
    ops = config.get("ops", {})
    if ALL in ops:
        return {stage: ("ops", ALL, "config", stage) for stage in PAID[:2]}
    return {stage: ("ops", stage, "config") for stage in PAID if stage in ops}


def with_options(
    job: str, config: Config, stages: Mapping[str, Path], *, budget_usd: float | None, fresh: bool
) -> dict[str, Any]:
    """The config with these options set in all stages that they are about."""
    changed: dict[str, Any] = deepcopy(dict(config))
    if (budget_usd is not None or fresh) and not stages:
        raise RunError(f"{job} asks no model: leave out --budget and --fresh.")
    if fresh and job == FIXES:
        raise RunError(f"{job} opens no new run. To ask all anew: evals job evaluate_all --fresh")
    if budget_usd is not None:
        for path in stages.values():
            _at(changed, path)["budget_usd"] = budget_usd
    if fresh:
        # What is asked anew is judged anyway.
        first, *_ = stages
        anew = {"fresh": True} if first == "run_reports" else {"mode": Mode.FRESH.name}
        _at(changed, stages[first]).update(anew)
    return changed


def _at(config: dict[str, Any], path: Path) -> dict[str, Any]:
    """That part of it, made if it is not there."""
    for name in path:
        if not isinstance(part := config.setdefault(name, {}), dict):
            raise RunError(f"The config is wrong: {name} must be an object.")
        config = part
    return config


def run_job(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    *,
    partition: str | None = None,
    config: str | None = None,
    tags: Mapping[str, str] | None = None,
    budget_usd: float | None = None,
    fresh: bool = False,
) -> list[str]:
    """One job as `dagster job execute` runs it; returns what went wrong, in sentences."""
    if job.partitions_def is not None and partition is None:
        raise RunError(f"{job.name} needs a model: --model. For all of them there is evaluate_all.")
    if job.partitions_def is None and partition is not None:
        raise RunError(f"{job.name} is for all models at once: leave out --model.")
    default = _default_config(job, partition)
    given = with_options(
        job.name,
        default if config is None else _parsed(config),
        stages_of(default),
        budget_usd=budget_usd,
        fresh=fresh,
    )
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
    return failures_of(result)


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

"""Jobs: what people launch by name, from the UI, `dagster job execute -j` or `evals job`."""

from typing import Any

import dagster as dg

from eval_pipeline.defs.automation import RESULTS, SEES_TO_THE_REST
from eval_pipeline.defs.config import (
    AllConfig,
    CatalogConfig,
    JudgedConfig,
    PredictionsConfig,
    ReportsConfig,
)
from eval_pipeline.defs.launch import STAGES, Evaluation, evaluate_all
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.runs import Mode
from eval_pipeline.settings import Settings

PART_OF = "evals/part_of"
"""The tag of a run that another run has started in its own process."""
WHOLE = {SEES_TO_THE_REST: "true"}
"""The tag of a run to which conditions have nothing to add."""


def build_jobs(settings: Settings) -> dg.Definitions:
    """Every job, with what the settings say as its config, to be seen and changed."""
    judging = JudgedConfig.of(settings)
    jobs: list[Any] = [
        dg.define_asset_job(
            "evaluate",
            STAGES,
            tags=WHOLE,
            config=_begins_with(predictions=PredictionsConfig.of(settings), judged=judging),
            description="One model, which is the partition: ask what is missing or failed in its "
            "latest run, or everything in a new one; judge, compute, rank.",
        ),
        _for_all(
            "evaluate_all",
            AllConfig.of(settings, Mode.AUTO),
            "Every selected model in one run, several at a time: load the data set, refresh the "
            "catalog, ask, judge, compute, rank.",
        ),
        _for_all(
            "fix_evaluation",
            AllConfig.of(settings, Mode.FIX),
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


@dg.op
def every_model(
    context: dg.OpExecutionContext,
    config: AllConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> None:
    """Materializes the assets for all partitions, in runs that are part of this one."""
    tags = {PART_OF: context.run_id}
    evaluation = Evaluation(config.predictions, config.judged, tags=tags)
    failures = evaluate_all(settings, context.instance, evaluation)
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

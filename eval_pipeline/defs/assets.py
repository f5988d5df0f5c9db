"""The assets, top to bottom in the order of the picture in the README."""

import dagster as dg

from eval_pipeline.benchmark import current, keep, load_benchmark
from eval_pipeline.defs.config import CatalogConfig, JudgedConfig, PredictionsConfig
from eval_pipeline.defs.metadata import fail_if_stopped, listed, table, tallied
from eval_pipeline.defs.partitions import keep_in_step, model_partitions
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.discovery import known_model, refresh
from eval_pipeline.journal import RUNS
from eval_pipeline.providers.gateways import Gateways
from eval_pipeline.settings import Settings
from eval_pipeline.stages.judge import judge
from eval_pipeline.stages.predict import predict


@dg.asset(group_name="inputs", kinds={"duckdb"})
def dataset(
    settings: dg.ResourceParam[Settings], warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """Every item of every suite, checked row by row, with the benchmark version they make up."""
    benchmark = load_benchmark(settings)
    keep(benchmark, warehouse.journal)
    warehouse.publish()
    with warehouse.get_connection() as db:
        categories = table(db, "summaries/dataset")
    version = benchmark.version.benchmark_version
    return dg.MaterializeResult(
        metadata={"items": len(benchmark.items), "version": version, "categories": categories},
        data_version=dg.DataVersion(version),
    )


@dg.asset(group_name="inputs", kinds={"duckdb"})
async def model_catalog(
    context: dg.AssetExecutionContext,
    config: CatalogConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> dg.MaterializeResult[None]:
    """Every model the gateways offer, with prices and abilities; the selected are partitions."""
    settings = config.apply(settings)
    async with Gateways(settings) as gateways:
        refreshed = await refresh(settings, gateways, warehouse.journal)
    changes = keep_in_step(context.instance, refreshed)
    warehouse.publish()
    return dg.MaterializeResult(
        metadata={
            "models": len(refreshed.catalog.models),
            "selected": listed(model.id for model in refreshed.selected.models),
            "partitions_added": listed(changes.added),
            "partitions_removed": listed(changes.removed),
            "warnings": listed(refreshed.warnings),
        }
    )


@dg.asset(
    group_name="runs",
    partitions_def=model_partitions,
    deps=[dataset, model_catalog],
    backfill_policy=dg.BackfillPolicy.single_run(),
    kinds={"llm", "duckdb"},
)
async def predictions(
    context: dg.AssetExecutionContext,
    config: PredictionsConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> dg.MaterializeResult[None]:
    """One reply per planned item from this partition's model; only what is missing is asked."""
    settings, journal = config.apply(settings), warehouse.journal
    benchmark = current(journal, settings)
    models = [known_model(journal, key) for key in context.partition_keys]
    async with Gateways(settings, tuple(benchmark.items.values())) as gateways:
        tallies = await predict(
            models,
            benchmark,
            config.launch(context.run.run_id),
            settings=settings,
            journal=journal,
            gateways=gateways,
        )
    warehouse.publish()
    fail_if_stopped(tallies)
    return dg.MaterializeResult(metadata=tallied(tallies))


@dg.asset(group_name="runs", deps=[predictions], kinds={"llm", "duckdb"})
async def judged(
    context: dg.AssetExecutionContext,
    config: JudgedConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> dg.MaterializeResult[None]:
    """One verdict per reply and judge; judges whatever has no score yet, for all models at once."""
    settings, journal = config.apply(settings), warehouse.journal
    # Within a run that carries a partition, only that model's replies.
    models = [context.partition_key] if context.has_partition_key else journal.parts(RUNS)
    async with Gateways(settings) as gateways:
        tallies = await judge(
            models,
            known_model(journal, settings.judge.model),
            config.launch(context.run.run_id),
            settings=settings,
            journal=journal,
            gateways=gateways,
            this_judge=config.judge is not None,
        )
    warehouse.publish()
    fail_if_stopped(tallies)
    return dg.MaterializeResult(metadata=tallied(tallies))


@dg.asset(group_name="results", deps=[judged], kinds={"duckdb"})
def metrics(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """Accuracy with its interval, calibration, cost, speed and coverage per run and slice."""
    warehouse.publish()
    with warehouse.get_connection() as db:
        return dg.MaterializeResult(metadata={"latest_runs": table(db, "summaries/metrics")})


@dg.asset(group_name="results", deps=[metrics], kinds={"duckdb"})
def leaderboard(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """One row per model and experiment: its latest complete run of the current version."""
    warehouse.publish()
    with warehouse.get_connection() as db:
        return dg.MaterializeResult(
            metadata={
                "leaderboard": table(db, "summaries/leaderboard"),
                "left_out": table(db, "summaries/left_out"),
            }
        )

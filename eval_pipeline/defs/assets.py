"""The assets, top to bottom in the order of the picture in the README."""

import dagster as dg

from eval_pipeline.benchmark import current, keep, load_benchmark
from eval_pipeline.defs.config import (
    CatalogConfig,
    JudgedConfig,
    PredictionsConfig,
    ReliabilityConfig,
)
from eval_pipeline.defs.metadata import Board, fail_if_nobody_could, listed, plots, table, tallied
from eval_pipeline.defs.partitions import keep_in_step, model_partitions
from eval_pipeline.defs.reliability import own_family, reported, write_report
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.discovery import look_up, refresh
from eval_pipeline.exam.labels import load_labels
from eval_pipeline.journal import ITEMS, RUNS, SIGHTINGS, VERSIONS
from eval_pipeline.running import run_async
from eval_pipeline.settings import Settings
from eval_pipeline.stages.judge import judge
from eval_pipeline.stages.predict import predict
from eval_pipeline.stages.rejudge import draw, rejudge


@dg.asset(group_name="inputs", kinds={"duckdb"})
def dataset(
    settings: dg.ResourceParam[Settings], warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """Every item of every suite, checked row by row, with the benchmark version they make up."""
    benchmark = load_benchmark(settings)
    keep(benchmark, warehouse.journal)
    warehouse.publish(VERSIONS, ITEMS)
    with warehouse.get_connection() as db:
        categories = table(db, "summaries/dataset")
    version = benchmark.version.benchmark_version
    return dg.MaterializeResult(
        metadata={"items": len(benchmark.items), "version": version, "categories": categories},
        data_version=dg.DataVersion(version),
    )


@dg.asset(group_name="inputs", kinds={"duckdb"})
def model_catalog(
    context: dg.AssetExecutionContext,
    config: CatalogConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> dg.MaterializeResult[None]:
    """Every model the gateways offer, with prices and abilities; the selected are partitions."""
    settings = config.apply(settings)
    refreshed = run_async(refresh(settings, warehouse.journal))
    changes = keep_in_step(context.instance, refreshed)
    warehouse.publish(SIGHTINGS)
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
def predictions(
    context: dg.AssetExecutionContext,
    config: PredictionsConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> dg.MaterializeResult[None]:
    """One reply per planned item from this partition's model; only what is missing is asked."""
    settings, journal = config.apply(settings), warehouse.journal
    benchmark = current(journal, settings)
    models = look_up(journal, context.partition_keys)
    launch, board = config.launch(context.run), Board(context)
    work = predict(models, benchmark, launch, settings=settings, journal=journal, board=board)
    try:
        tallies = run_async(work, meanwhile=board.show)
    finally:  # what was answered before an interruption is to be seen
        warehouse.publish()
    fail_if_nobody_could(tallies)
    return dg.MaterializeResult(metadata=tallied(tallies))


@dg.asset(group_name="runs", deps=[predictions], kinds={"llm", "duckdb"})
def judged(
    context: dg.AssetExecutionContext,
    config: JudgedConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> dg.MaterializeResult[None]:
    """One verdict per reply and judge; judges whatever has no score yet, for all models at once."""
    settings, journal = config.apply(settings), warehouse.journal
    # Within a run that carries a partition, only that model's replies.
    models = [context.partition_key] if context.has_partition_key else journal.parts(RUNS)
    judges = look_up(journal, settings.judge.models)
    board = Board(context)
    work = judge(
        models,
        judges,
        config.launch(context.run),
        settings=settings,
        journal=journal,
        this_judge=config.says_how,
        reviewer=next(iter(look_up(journal, settings.coding.reviewers)), None),
        board=board,
    )
    try:
        tallies = run_async(work, meanwhile=board.show)
    finally:
        warehouse.publish()
    fail_if_nobody_could(tallies)
    with warehouse.get_connection() as db:
        code = table(db, "summaries/steps")
    return dg.MaterializeResult(
        metadata={**tallied(tallies), "own_family": own_family(warehouse), "code": code}
    )


@dg.asset(group_name="results", deps=[judged], kinds={"llm", "duckdb"})
def judge_reliability(
    context: dg.AssetExecutionContext,
    config: ReliabilityConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> dg.MaterializeResult[None]:
    """How far judges agree: with themselves when asked again, with each other, with people."""
    settings, journal = config.apply(settings), warehouse.journal
    told = load_labels(settings, journal)
    warehouse.publish()
    with warehouse.get_connection() as db:
        drawn = draw(db, settings.reliability.answers, config.judge)
    launch, board = config.launch(context.run), Board(context)
    work = rejudge(drawn, launch, settings=settings, journal=journal, board=board)
    try:
        tallies = run_async(work, meanwhile=board.show)
    finally:
        warehouse.publish()
    report = write_report(warehouse, settings, tallies, told)
    fail_if_nobody_could(tallies)
    return dg.MaterializeResult(metadata={**tallied(tallies), **reported(report)})


@dg.asset(group_name="results", deps=[judged], kinds={"duckdb"})
def metrics(
    settings: dg.ResourceParam[Settings], warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """Accuracy with its interval, calibration, cost, speed and coverage per run and slice."""
    warehouse.publish()
    with warehouse.get_connection() as db:
        return dg.MaterializeResult(
            metadata={
                "latest_runs": table(db, "summaries/metrics"),
                **plots(db, settings.plots, "calibration", "categories"),
            }
        )


@dg.asset(group_name="results", deps=[metrics], kinds={"duckdb"})
def comparisons(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """All pairs of models, item by item: difference with interval, corrected p-value, ties."""
    warehouse.publish()
    with warehouse.get_connection() as db:
        return dg.MaterializeResult(metadata={"pairs": table(db, "summaries/comparisons")})


@dg.asset(group_name="results", deps=[metrics, comparisons], kinds={"duckdb"})
def leaderboard(
    settings: dg.ResourceParam[Settings], warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """One row per model, experiment and judge: the mean of its latest 10 complete runs."""
    warehouse.publish()
    with warehouse.get_connection() as db:
        return dg.MaterializeResult(
            metadata={
                "leaderboard": table(db, "summaries/leaderboard"),
                "left_out": table(db, "summaries/left_out"),
                **plots(db, settings.plots, "accuracy", "accuracy_and_cost"),
            }
        )

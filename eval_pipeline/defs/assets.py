"""The assets, top to bottom in the order of the picture in the README."""

import dagster as dg

from eval_pipeline.analysis.analyse import analyse, analyst_of, chosen_runs, scope_of
from eval_pipeline.analysis.report.write import fail_if_not_written, write_reports
from eval_pipeline.benchmark import current, keep, load_benchmark
from eval_pipeline.defs.config import (
    CatalogConfig,
    JudgedConfig,
    PredictionsConfig,
    ReliabilityConfig,
    ReportsConfig,
)
from eval_pipeline.defs.metadata import Board, fail_if_nobody_could, numbers, plots, table, tallied
from eval_pipeline.defs.partitions import (
    asked_models,
    keep_in_step,
    model_partitions,
    models_of,
    refresh_told,
    tell_each,
)
from eval_pipeline.defs.pools import Pools
from eval_pipeline.defs.reliability import own_family, reported, write_report
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.defs.tables import described
from eval_pipeline.defs.versions import CATALOG, data_version
from eval_pipeline.defs.went import how_analysing_went, how_asking_went, how_judging_went
from eval_pipeline.evaluation.catalog import look_up, refresh
from eval_pipeline.exam.labels import load_labels
from eval_pipeline.journal import ITEMS, RUNS, SIGHTINGS, VERSIONS
from eval_pipeline.journal.locks import running_run_ids
from eval_pipeline.records import now
from eval_pipeline.results.tables.leaderboard import write_leaderboard
from eval_pipeline.runtime import run_async
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
        shown = {"categories": table(db, "summaries/dataset"), **described(db, "dataset")}
    version = benchmark.version.benchmark_version
    return dg.MaterializeResult(
        metadata={"items": len(benchmark.items), "version": version, **shown},
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
    changes = keep_in_step(context.instance, refreshed, run_id=context.run.run_id)
    warehouse.publish(SIGHTINGS)
    with warehouse.get_connection() as db:
        shown = described(db, "model_catalog")
    return dg.MaterializeResult(
        metadata={**refresh_told(refreshed, changes), **shown}, data_version=CATALOG
    )


@dg.asset(
    group_name="runs",
    partitions_def=model_partitions,
    deps=[dataset, model_catalog],
    kinds={"llm", "duckdb"},
)
def predictions(
    context: dg.AssetExecutionContext,
    config: PredictionsConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> dg.MaterializeResult[None]:
    """One reply per planned item from this partition's model; only what is missing is asked."""
    # All runs share the pools, so that one launch's config does not change them.
    pools = Pools.of(settings, context)
    settings, journal = config.apply(settings), warehouse.journal
    benchmark = current(journal, settings)
    models = look_up(journal, asked_models(context))
    launch, board = config.launch(context.run), Board(context)
    work = predict(
        models,
        benchmark,
        launch,
        settings=settings,
        journal=journal,
        board=board,
        places=pools.place,
    )
    try:
        tallies = board.run(work, settings, journal)
    finally:  # what was answered before an interruption is to be seen
        warehouse.publish()
    fail_if_nobody_could(tallies)
    with warehouse.get_connection() as db:
        went = how_asking_went(db, tallies, settings.experiment, launch)
        shown = described(db, "predictions")
    # One for all partitions of the run: Dagster takes no more.
    version = data_version(warehouse, "predictions", models=list(went))
    tell_each(context, {model: {**one, **shown} for model, one in went.items()}, version)
    return dg.MaterializeResult(data_version=version)


@dg.asset(group_name="runs", deps=[predictions], kinds={"llm", "duckdb"})
def judged(
    context: dg.AssetExecutionContext,
    config: JudgedConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> dg.MaterializeResult[None]:
    """One verdict per reply and judge; judges whatever has no score yet, for all models at once."""
    settings, journal = config.apply(settings), warehouse.journal
    # Within a run that carries partitions, only those models' replies.
    models = models_of(context) or journal.parts(RUNS)
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
        tallies = board.run(work, settings, journal, judges=settings.judge.models)
    finally:
        warehouse.publish()
    fail_if_nobody_could(tallies)
    with warehouse.get_connection() as db:
        went = how_judging_went(db, tallies, models)
        shown = {"code": table(db, "summaries/steps"), **described(db, "judged")}
    return dg.MaterializeResult(
        metadata={**went, "own_family": own_family(warehouse), **shown},
        data_version=data_version(warehouse, "judged"),
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
        tallies = board.run(work, settings, journal, judges=sorted({one.judge for one in drawn}))
    finally:
        warehouse.publish()
    report = write_report(warehouse, settings, tallies, told)
    fail_if_nobody_could(tallies)
    with warehouse.get_connection() as db:
        shown = described(db, "judge_reliability")
    return dg.MaterializeResult(
        metadata={**tallied(tallies), **reported(report, settings), **shown},
        data_version=data_version(warehouse, "judge_reliability"),
    )


@dg.asset(group_name="results", deps=[judged], kinds={"llm", "duckdb"})
def run_reports(
    context: dg.AssetExecutionContext,
    config: ReportsConfig,
    settings: dg.ResourceParam[Settings],
    warehouse: WarehouseResource,
) -> dg.MaterializeResult[None]:
    """Why items failed: an analyst looks into each failure, and each run gets a report on it."""
    settings, journal = config.apply(settings), warehouse.journal
    analyst = analyst_of(settings, journal)
    warehouse.publish()
    with warehouse.get_connection() as db:
        runs = chosen_runs(db, config.run, config.models)
        # Within a run that carries partitions, only those models; what it has judged is judged.
        some, launch = {*models_of(context)}, config.launch(context.run)
        others = {*running_run_ids(journal.root)} - {launch, context.run.run_id}
        scope = scope_of(db, [run for run in runs if not some or run.model in some], others)
    board = Board(context)
    work = analyse(
        scope.failures,
        launch,
        settings=settings,
        journal=journal,
        analyst=analyst,
        fresh=config.fresh,
        board=board,
    )
    try:
        tallies = board.run(work, settings, journal, judges=[analyst.id])
    finally:
        warehouse.publish()
    with warehouse.get_connection() as db:
        reported = write_reports(db, settings, scope.runs, now())
        shown = described(db, "failure_analysis")
    fail_if_nobody_could(tallies)
    fail_if_not_written(reported)
    return dg.MaterializeResult(
        metadata={**tallied(tallies), **how_analysing_went(reported, scope), **shown},
        data_version=data_version(warehouse, "run_reports"),
    )


@dg.asset(group_name="results", deps=[judged], kinds={"duckdb"})
def metrics(
    settings: dg.ResourceParam[Settings], warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """Accuracy with its interval, calibration, cost, speed and coverage per run and slice."""
    warehouse.publish_once()
    with warehouse.get_connection() as db:
        return dg.MaterializeResult(
            metadata={
                **numbers(db, "runs", "complete_runs"),
                "latest_runs": table(db, "summaries/metrics"),
                **described(db, "metrics"),
                **plots(db, settings.plots, "calibration", "categories"),
            },
            data_version=data_version(warehouse, "metrics"),
        )


@dg.asset(group_name="results", deps=[metrics], kinds={"duckdb"})
def comparisons(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """All pairs of models, item by item: difference with interval, corrected p-value, ties."""
    warehouse.publish_once()
    with warehouse.get_connection() as db:
        return dg.MaterializeResult(
            metadata={
                **numbers(db, "compared_pairs", "told_apart"),
                "pairs": table(db, "summaries/comparisons"),
                **described(db, "comparisons"),
            },
            data_version=data_version(warehouse, "comparisons"),
        )


@dg.asset(group_name="results", deps=[metrics, comparisons], kinds={"duckdb"})
def leaderboard(
    settings: dg.ResourceParam[Settings], warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """One row per model, experiment and judge: the mean of its latest 10 complete runs."""
    warehouse.publish_once()
    report = settings.reports / "leaderboard.md"
    with warehouse.get_connection() as db:
        shown = {
            **numbers(db, "models_ranked", "best_accuracy"),
            "report": dg.MetadataValue.path(report),
            "leaderboard": table(db, "summaries/leaderboard"),
            "left_out": table(db, "summaries/left_out"),
            "freshness": table(db, "summaries/freshness"),
            **plots(db, settings.plots, "accuracy", "accuracy_and_cost"),
            **described(db, "leaderboard"),
        }
        write_leaderboard(db, report, now())
    return dg.MaterializeResult(metadata=shown, data_version=data_version(warehouse, "leaderboard"))

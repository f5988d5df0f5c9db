"""The assets, top to bottom in the order of the picture in the README."""

import sys
from functools import partial

import dagster as dg

from eval_pipeline.analysis.analyse import Scope, analyse, analyst_of, scope_of
from eval_pipeline.analysis.failures import chosen_runs
from eval_pipeline.analysis.report.write import fail_if_not_written, write_reports
from eval_pipeline.defs import checks
from eval_pipeline.defs.automation import condition
from eval_pipeline.defs.config import (
    CatalogConfig,
    JudgedConfig,
    PredictionsConfig,
    ReliabilityConfig,
    ReportsConfig,
    launch_of,
)
from eval_pipeline.defs.metadata import (
    StageProgressList,
    described,
    fail_if_nobody_could,
    how_analysing_went,
    how_asking_went,
    how_judging_went,
    numbers,
    own_family,
    plots,
    table,
    tallied,
    write_report,
)
from eval_pipeline.defs.partitions import (
    asked_models,
    keep_in_step,
    model_partitions,
    models_of,
    refresh_told,
    tell_each,
)
from eval_pipeline.defs.resources import GatewaySlots, WarehouseResource, build_resources
from eval_pipeline.defs.versions import CATALOG, code_version, data_version
from eval_pipeline.evaluation.catalog import look_up, refresh
from eval_pipeline.evaluation.judge import judge
from eval_pipeline.evaluation.predict import predict
from eval_pipeline.evaluation.rejudge import rejudge, sample_answers
from eval_pipeline.journal import ITEMS, RUNS, SIGHTINGS, VERSIONS
from eval_pipeline.journal.locks import running_run_ids
from eval_pipeline.records.base import now
from eval_pipeline.results.tables.leaderboard import write_leaderboard
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import current, keep, load_benchmark
from eval_pipeline.suites.exam.labels import load_labels

OWNER = "team:evals"


@dg.asset(group_name="inputs", kinds={"duckdb"})
def dataset(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """Every item of every suite, checked row by row, with the benchmark version they make up."""
    benchmark = load_benchmark(warehouse.settings)
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
    context: dg.AssetExecutionContext, config: CatalogConfig, warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """Every model the gateways offer, with prices and abilities; the selected are partitions."""
    settings = config.apply(warehouse.settings)
    refreshed = run_async(refresh(settings, warehouse.journal))
    changes = keep_in_step(context.instance, refreshed, context.run.run_id)
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
    context: dg.AssetExecutionContext, config: PredictionsConfig, warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """One reply per planned item from this partition's model; only what is missing is asked."""
    # All runs share the slots, so that one launch's config does not change them.
    places = GatewaySlots.of(warehouse.settings).hold
    settings, journal = config.apply(warehouse.settings), warehouse.journal
    models, benchmark = look_up(journal, asked_models(context)), current(journal, settings)
    launch, board = config.launch(context.run), StageProgressList(context)
    work = predict(
        models, benchmark, launch, settings=settings, journal=journal, board=board, places=places
    )
    tallies = board.run(work, settings, warehouse)
    fail_if_nobody_could(tallies)
    with warehouse.get_connection() as db:
        went = how_asking_went(db, tallies, settings.experiment, launch)
    # One for all partitions of the run: Dagster takes no more.
    version = data_version(warehouse, "predictions", models=list(went))
    tell_each(context, went, version)
    return dg.MaterializeResult(data_version=version)


@dg.asset(group_name="runs", deps=[predictions], kinds={"llm", "duckdb"})
def judged(
    context: dg.AssetExecutionContext, config: JudgedConfig, warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """One verdict per reply and judge; judges whatever has no score yet, for all models at once."""
    settings, board = config.apply(warehouse.settings), StageProgressList(context)
    journal = warehouse.journal
    # Within a run that carries partitions, only those models' replies.
    models = models_of(context) or journal.parts(RUNS)
    judges = look_up(journal, settings.judge.models)
    reviewer = next(iter(look_up(journal, settings.coding.reviewers)), None)
    stage = partial(judge, settings=settings, journal=journal, reviewer=reviewer, board=board)
    work = stage(models, judges, config.launch(context.run), this_judge=config.says_how)
    tallies = board.run(work, settings, warehouse, judges=settings.judge.models)
    fail_if_nobody_could(tallies)
    with warehouse.get_connection() as db:
        shown = {**how_judging_went(db, tallies, models), **described(db, "judged")}
        shown |= {"code": table(db, "summaries/steps"), "own_family": own_family(db)}
    return dg.MaterializeResult(metadata=shown, data_version=data_version(warehouse, "judged"))


@dg.asset(group_name="results", deps=[judged], kinds={"llm", "duckdb"})
def judge_reliability(
    context: dg.AssetExecutionContext, config: ReliabilityConfig, warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """How far judges agree: with themselves when asked again, with each other, with people."""
    settings, journal = config.apply(warehouse.settings), warehouse.journal
    told = load_labels(settings, journal)
    warehouse.publish()
    with warehouse.get_connection() as db:
        drawn = sample_answers(db, settings.reliability.answers, config.judge)
    launch, board = launch_of(context.run), StageProgressList(context)
    work = rejudge(drawn, launch, settings=settings, journal=journal, board=board)
    tallies = board.run(work, settings, warehouse, judges=sorted({one.judge for one in drawn}))
    with warehouse.get_connection() as db:
        report = write_report(db, settings, tallies, told)
        shown = {**tallied(tallies), **report, **described(db, "judge_reliability")}
    fail_if_nobody_could(tallies)
    version = data_version(warehouse, "judge_reliability")
    return dg.MaterializeResult(metadata=shown, data_version=version)


@dg.asset(group_name="results", deps=[judged], kinds={"llm", "duckdb"})
def run_reports(
    context: dg.AssetExecutionContext, config: ReportsConfig, warehouse: WarehouseResource
) -> dg.MaterializeResult[None]:
    """Why items failed: an analyst looks into each failure, and each run gets a report on it."""
    settings, board = config.apply(warehouse.settings), StageProgressList(context)
    analyst = analyst_of(settings, warehouse.journal)
    scope = _scope(context, config, warehouse)
    stage = partial(analyse, settings=settings, journal=warehouse.journal, board=board)
    work = stage(scope.failures, launch_of(context.run), analyst=analyst, fresh=config.fresh)
    tallies = board.run(work, settings, warehouse, judges=[analyst.id])
    with warehouse.get_connection() as db:
        reported = write_reports(db, settings, scope.runs, now())
        shown = {**tallied(tallies), **described(db, "failure_analysis")}
    fail_if_nobody_could(tallies)
    fail_if_not_written(reported)
    shown |= how_analysing_went(reported, scope)
    return dg.MaterializeResult(metadata=shown, data_version=data_version(warehouse, "run_reports"))


def _scope(
    context: dg.AssetExecutionContext, config: ReportsConfig, warehouse: WarehouseResource
) -> Scope:
    """Publish, and return the runs and failures to analyse without those of launches at work."""
    warehouse.publish()
    # Within a run that carries partitions, only those models; what it has judged is judged.
    some, own = {*models_of(context)}, {launch_of(context.run), context.run.run_id}
    with warehouse.get_connection() as db:
        runs = chosen_runs(db, config.run, config.models)
        others = {*running_run_ids(warehouse.journal.root)} - own
        return scope_of(db, [run for run in runs if not some or run.model in some], others)


@dg.asset(group_name="results", deps=[judged], kinds={"duckdb"})
def metrics(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """Accuracy with its interval, calibration, cost, speed and coverage per run and slice."""
    warehouse.publish_once()
    with warehouse.get_connection() as db:
        return dg.MaterializeResult(
            metadata={
                **numbers(db, "runs", "complete_runs"),
                "latest_runs": table(db, "summaries/metrics"),
                **described(db, "metrics"),
                **plots(db, warehouse.settings.plots, "calibration", "categories"),
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
def leaderboard(warehouse: WarehouseResource) -> dg.MaterializeResult[None]:
    """One row per model, experiment and judge: the mean of its latest 10 complete runs."""
    warehouse.publish_once()
    settings, report = warehouse.settings, warehouse.settings.reports / "leaderboard.md"
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


def build_graph(settings: Settings) -> dg.Definitions:
    """Return all that can be materialized: assets with their checks and resources."""
    found = dg.load_assets_from_modules([sys.modules[__name__]])
    assets = [one for one in found if isinstance(one, dg.AssetsDefinition)]
    # With any policy, even that of one partition per run, Dagster tags runs with ranges, which the
    # limits of the run queue do not see.
    if settings.automation.backfill != "run_per_model":
        alone = dg.BackfillPolicy.single_run()
        assets = [
            one.with_attributes(backfill_policy=alone) if one.partitions_def else one
            for one in assets
        ]

    def configure(spec: dg.AssetSpec) -> dg.AssetSpec:
        name = spec.key.to_user_string()
        return spec.replace_attributes(
            owners=[OWNER],
            code_version=code_version(name, settings),
            automation_condition=condition(name, settings),
        )

    return dg.Definitions(
        assets=dg.with_source_code_references(dg.map_asset_specs(configure, assets)),
        asset_checks=dg.load_asset_checks_from_modules([checks]),
        resources=build_resources(settings),
        # One process per run: starting one per step costs seconds and gains nothing here.
        executor=dg.in_process_executor,
    )

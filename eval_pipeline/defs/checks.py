"""Queries for rows that should not exist; each check is named as a true sentence.

What must not be is an error and fails `evals run`; what people should look at is a warning.
"""

import dagster as dg
import duckdb

from eval_pipeline.defs.assets import (
    dataset,
    judged,
    leaderboard,
    metrics,
    model_catalog,
    predictions,
)
from eval_pipeline.defs.metadata import listed, markdown
from eval_pipeline.defs.partitions import models_of
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.queries import query, rows

EXAMPLES = 10
NAMED_MODELS = 3
FOUND = {
    "duplicate_items": ("item id is not unique", "item ids are not unique"),
    "items_without_answer": ("item can not be graded", "items can not be graded"),
    "models_without_price": ("model has no price", "models have no price"),
    "models_gone": ("model is no longer listed", "models are no longer listed"),
    "planned_without_prediction": ("planned reply is missing", "planned replies are missing"),
    "many_cut_off_replies": (
        "run has more than 5 % of its replies cut off",
        "runs have more than 5 % of their replies cut off",
    ),
    "many_repeated_requests": (
        "run had to ask more than 20 % of its items again",
        "runs had to ask more than 20 % of their items again",
    ),
    "predictions_without_score": ("reply has no verdict", "replies have no verdict"),
    "unreadable_judges": (
        "judge of a run gave more than 2 % of its verdicts in a form that can not be read",
        "judges of runs gave more than 2 % of their verdicts in a form that can not be read",
    ),
    "own_family_judges": (
        "judge of a run is of the model's own vendor",
        "judges of runs are of the models' own vendor",
    ),
    "metrics_out_of_bounds": ("row of numbers can not be", "rows of numbers can not be"),
    "unknown_costs": (
        "run has replies whose cost nobody knows",
        "runs have replies whose cost nobody knows",
    ),
    "unranked_models": ("model has no rank", "models have no rank"),
    "stale_results": ("result is older than 70 days", "results are older than 70 days"),
}
"""What each query finds, one and several of it, in words that go on after the number."""
ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN


@dg.asset_check(asset=dataset)
def dataset_ids_are_unique(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Two items under one id would be graded as one."""
    return _finds_nothing(warehouse, "duplicate_items", ERROR)


@dg.asset_check(asset=dataset)
def every_item_has_an_answer(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Without a reference answer nobody can tell right from wrong."""
    return _finds_nothing(warehouse, "items_without_answer", ERROR)


@dg.asset_check(asset=model_catalog)
def every_selected_model_has_a_price(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Without one no budget holds, unless the gateway says what each reply has cost."""
    return _finds_nothing(warehouse, "models_without_price", WARN)


@dg.asset_check(asset=model_catalog)
def every_selected_model_is_still_listed(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """A model that its gateway has dropped keeps its results, and can not be asked again."""
    return _finds_nothing(warehouse, "models_gone", WARN)


@dg.asset_check(asset=predictions)
def every_planned_item_is_predicted(
    context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
) -> dg.AssetCheckResult:
    """An item that was asked in vain is missing, not wrong; materialize again to ask it again."""
    return _finds_nothing(warehouse, "planned_without_prediction", ERROR, models_of(context))


@dg.asset_check(asset=predictions)
def few_replies_are_cut_off(
    context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
) -> dg.AssetCheckResult:
    """If more than 5 % reach the token limit, the limit is measured and not the model."""
    return _finds_nothing(warehouse, "many_cut_off_replies", WARN, models_of(context))


@dg.asset_check(asset=predictions)
def few_items_are_asked_several_times(
    context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
) -> dg.AssetCheckResult:
    """If more than 20 % are, the gateway is ailing, or `num_workers` is more than it grants."""
    return _finds_nothing(warehouse, "many_repeated_requests", WARN, models_of(context))


@dg.asset_check(asset=judged)
def every_prediction_is_judged(
    context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
) -> dg.AssetCheckResult:
    """A leaderboard over half-judged answers would flatter whoever was judged first."""
    return _finds_nothing(warehouse, "predictions_without_score", ERROR, models_of(context))


@dg.asset_check(asset=judged)
def verdicts_can_be_read(
    context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
) -> dg.AssetCheckResult:
    """If more than 2 % can not, the judge is too weak for its prompt or its token limit too low."""
    return _finds_nothing(warehouse, "unreadable_judges", WARN, models_of(context))


@dg.asset_check(asset=judged)
def no_judge_grades_its_own_family(
    context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
) -> dg.AssetCheckResult:
    """Judges favour models of their own vendor; let a judge of another one judge too."""
    return _finds_nothing(warehouse, "own_family_judges", WARN, models_of(context))


@dg.asset_check(asset=metrics)
def metrics_are_within_bounds(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Shares between 0 and 1, intervals around their value, no more judged than planned."""
    return _finds_nothing(warehouse, "metrics_out_of_bounds", ERROR)


@dg.asset_check(asset=metrics)
def every_cost_is_known(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """A run of which a part of the cost is unknown has no cost on the leaderboard."""
    return _finds_nothing(warehouse, "unknown_costs", WARN)


@dg.asset_check(asset=leaderboard)
def every_selected_model_is_ranked(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Who is missing is easily overlooked: the best model may not be on the leaderboard."""
    return _finds_nothing(warehouse, "unranked_models", WARN)


@dg.asset_check(asset=leaderboard)
def no_result_is_stale(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Behind a model's name there may be another model after 70 days."""
    return _finds_nothing(warehouse, "stale_results", WARN)


def _finds_nothing(
    warehouse: WarehouseResource,
    name: str,
    severity: dg.AssetCheckSeverity,
    models: list[str] | None = None,
) -> dg.AssetCheckResult:
    with warehouse.get_connection() as db:
        found = query(db, f"checks/{name}")
        if models:
            found = found.filter(duckdb.ColumnExpression("model").isin(*map(_constant, models)))
        count = len(found)
        # Mostly there is nothing, and that is found out once.
        examples = rows(found.limit(EXAMPLES)) if count else []
        named = _models_in(found) if count else []
    return dg.AssetCheckResult(
        passed=not count,
        severity=severity,
        description=_description(name, count, named),
        metadata={
            "rows": count,
            "examples": markdown(examples),
            **({"models": listed(models)} if models else {}),
        },
    )


def _constant(model: str) -> duckdb.Expression:
    return duckdb.ConstantExpression(model)


def _models_in(found: duckdb.DuckDBPyRelation) -> list[str]:
    """All that the rows are about, if they are about models."""
    if "model" not in found.columns:
        return []
    return [model for (model,) in found.select("model").distinct().order("model").fetchall()]


def _description(name: str, count: int, models: list[str]) -> str:
    """What was found, as part of a sentence."""
    if not count:
        return "nothing found"
    one, several = FOUND[name]
    more = len(models) - NAMED_MODELS
    others = f" and {more} more" if more > 0 else ""
    about = f": {', '.join(models[:NAMED_MODELS])}{others}" if models else ""
    return f"{count} {one if count == 1 else several}{about}"

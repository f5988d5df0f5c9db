"""Queries for rows that must not exist; each check is named as a true sentence."""

import dagster as dg

from eval_pipeline.defs.assets import dataset, judged, metrics, predictions
from eval_pipeline.defs.metadata import markdown, rows
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.queries import query

EXAMPLES = 10


@dg.asset_check(asset=dataset)
def dataset_ids_are_unique(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Two items under one id would be graded as one."""
    return _finds_nothing(warehouse, "duplicate_items")


@dg.asset_check(asset=dataset)
def every_item_has_an_answer(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Without a reference answer nobody can tell right from wrong."""
    return _finds_nothing(warehouse, "items_without_answer")


@dg.asset_check(asset=predictions)
def every_planned_item_is_predicted(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """An item that was asked in vain is missing, not wrong; materialize again to ask it again."""
    return _finds_nothing(warehouse, "planned_without_prediction")


@dg.asset_check(asset=judged)
def every_prediction_is_judged(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """A leaderboard over half-judged answers would flatter whoever was judged first."""
    return _finds_nothing(warehouse, "predictions_without_score")


@dg.asset_check(asset=metrics)
def metrics_are_within_bounds(warehouse: WarehouseResource) -> dg.AssetCheckResult:
    """Shares between 0 and 1, intervals around their value, no more judged than planned."""
    return _finds_nothing(warehouse, "metrics_out_of_bounds")


def _finds_nothing(warehouse: WarehouseResource, name: str) -> dg.AssetCheckResult:
    with warehouse.get_connection() as db:
        found = query(db, f"checks/{name}")
        count, examples = len(found), rows(found.limit(EXAMPLES))
    return dg.AssetCheckResult(
        passed=not count,
        description=f"{count} rows that must not exist" if count else "nothing found",
        metadata={"rows": count, "examples": markdown(examples)},
    )

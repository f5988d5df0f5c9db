"""Queries for rows that should not exist; each check is named as a true sentence.

What must not be is an error and fails `evals run`; what people should look at is a warning. The
checks of an asset are one step, which opens the results once; each can be executed alone.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import dagster as dg
import duckdb

from eval_pipeline.defs.metadata import listed, markdown
from eval_pipeline.defs.partitions import models_of
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.results.queries import query, rows

EXAMPLES = 10
NAMED_MODELS = 3
ERROR = dg.AssetCheckSeverity.ERROR


class Check(NamedTuple):
    """A sentence that should be true; `checks/` has a query of its name that finds where not."""

    name: str
    why: str
    one: str
    """What one row of the query says, in words that go on after the number; then several."""
    several: str
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN


OF_DATASET = (
    Check(
        "dataset_ids_are_unique",
        "Two items under one id would be graded as one.",
        "item id is not unique",
        "item ids are not unique",
        ERROR,
    ),
    Check(
        "every_item_has_an_answer",
        "Without a reference answer nobody can tell right from wrong.",
        "item can not be graded",
        "items can not be graded",
        ERROR,
    ),
)
OF_MODEL_CATALOG = (
    Check(
        "every_selected_model_has_a_price",
        "Without one no budget holds, unless the gateway says what each reply has cost.",
        "model has no price",
        "models have no price",
    ),
    Check(
        "every_selected_model_is_still_listed",
        "A model that its gateway has dropped keeps its results, and can not be asked again.",
        "model is no longer listed",
        "models are no longer listed",
    ),
)
OF_PREDICTIONS = (
    Check(
        "every_planned_item_is_predicted",
        "An item that was asked in vain is missing, not wrong; materialize again to ask it again.",
        "planned reply is missing",
        "planned replies are missing",
        ERROR,
    ),
    Check(
        "few_replies_are_cut_off",
        "If more than 5 % reach the token limit, the limit is measured and not the model.",
        "run has more than 5 % of its replies cut off",
        "runs have more than 5 % of their replies cut off",
    ),
    Check(
        "few_items_are_asked_several_times",
        "If more than 20 % are, the gateway is ailing, or `num_workers` is more than it grants.",
        "run had to ask more than 20 % of its items again",
        "runs had to ask more than 20 % of their items again",
    ),
)
OF_JUDGED = (
    Check(
        "every_prediction_is_judged",
        "A leaderboard over half-judged answers would flatter whoever was judged first.",
        "reply has no verdict",
        "replies have no verdict",
        ERROR,
    ),
    Check(
        "verdicts_can_be_read",
        "If more than 2 % can not, the judge is too weak for its prompt or may use too few tokens.",
        "judge of a run gave more than 2 % of its verdicts in a form that can not be read",
        "judges of runs gave more than 2 % of their verdicts in a form that can not be read",
    ),
    Check(
        "no_judge_grades_its_own_family",
        "Judges favour models of their own vendor; let a judge of another one judge too.",
        "judge of a run is of the model's own vendor",
        "judges of runs are of the models' own vendor",
    ),
)
OF_METRICS = (
    Check(
        "metrics_are_within_bounds",
        "Shares between 0 and 1, intervals around their value, no more judged than planned.",
        "row of numbers can not be",
        "rows of numbers can not be",
        ERROR,
    ),
    Check(
        "every_cost_is_known",
        "A run of which a part of the cost is unknown has no cost on the leaderboard.",
        "run has replies whose cost nobody knows",
        "runs have replies whose cost nobody knows",
    ),
)
OF_LEADERBOARD = (
    Check(
        "every_selected_model_is_ranked",
        "Who is missing is easily overlooked: the best model may not be on the leaderboard.",
        "model has no rank",
        "models have no rank",
    ),
    Check(
        "no_result_is_stale",
        "Behind a model's name there may be another model after 70 days.",
        "result is older than 70 days",
        "results are older than 70 days",
    ),
)


def _checks(
    asset: str, checks: Sequence[Check], *, of_models: bool = False
) -> dg.AssetChecksDefinition:
    """All checks of an asset; those `of_models` look only at the models that the run is about."""

    @dg.multi_asset_check(
        name=f"checks_of_{asset}",
        specs=[dg.AssetCheckSpec(one.name, asset=asset, description=one.why) for one in checks],
        can_subset=True,
    )
    def look(
        context: dg.AssetCheckExecutionContext, warehouse: WarehouseResource
    ) -> Iterator[dg.AssetCheckResult]:
        models = models_of(context) if of_models else []
        wanted = {key.name for key in context.selected_asset_check_keys}
        with warehouse.get_connection() as db:
            results = [_result(db, one, asset, models) for one in checks if one.name in wanted]
        yield from results

    return look


dataset_checks = _checks("dataset", OF_DATASET)
model_catalog_checks = _checks("model_catalog", OF_MODEL_CATALOG)
predictions_checks = _checks("predictions", OF_PREDICTIONS, of_models=True)
judged_checks = _checks("judged", OF_JUDGED, of_models=True)
metrics_checks = _checks("metrics", OF_METRICS)
leaderboard_checks = _checks("leaderboard", OF_LEADERBOARD)


def _result(
    db: duckdb.DuckDBPyConnection, check: Check, asset: str, models: Sequence[str]
) -> dg.AssetCheckResult:
    found = query(db, f"checks/{check.name}")
    if models:
        some = map(duckdb.ConstantExpression, models)
        found = found.filter(duckdb.ColumnExpression("model").isin(*some))
    count = len(found)
    # Mostly there is nothing, and that is found out once.
    examples = rows(found.limit(EXAMPLES)) if count else []
    named = []
    if count and "model" in found.columns:
        named = [one for (one,) in found.select("model").distinct().order("model").fetchall()]
    return dg.AssetCheckResult(
        asset_key=asset,
        check_name=check.name,
        passed=not count,
        severity=check.severity,
        description=_description(check, count, named),
        metadata={
            "rows": count,
            "examples": markdown(examples),
            **({"models": listed(list(models))} if models else {}),
        },
    )


def _description(check: Check, count: int, models: list[str]) -> str:
    """What was found, as part of a sentence."""
    if not count:
        return "nothing found"
    more = len(models) - NAMED_MODELS
    others = f" and {more} more" if more > 0 else ""
    about = f": {', '.join(models[:NAMED_MODELS])}{others}" if models else ""
    return f"{count} {check.one if count == 1 else check.several}{about}"

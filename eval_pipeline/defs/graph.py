"""The assets and their checks, with what the settings say about them."""

import dagster as dg

from eval_pipeline.defs import assets, checks
from eval_pipeline.defs.automation import condition
from eval_pipeline.defs.resources import build_resources
from eval_pipeline.defs.versions import code_version
from eval_pipeline.settings import Settings

OWNER = "team:evals"


def build_graph(settings: Settings) -> dg.Definitions:
    """What can be materialized; jobs, schedules and sensors stand on it."""
    loaded = dg.load_assets_from_modules([assets])
    dressed = [_dressed(one, settings) for one in loaded if isinstance(one, dg.AssetsDefinition)]
    return dg.Definitions(
        assets=dg.with_source_code_references(dressed),
        asset_checks=dg.load_asset_checks_from_modules([checks]),
        resources=build_resources(settings),
        # One process per run: starting one per step costs seconds and gains nothing here.
        executor=dg.in_process_executor,
    )


def _dressed(one: dg.AssetsDefinition, settings: Settings) -> dg.AssetsDefinition:
    """The asset with owner, code version, condition, and how its backfills run."""

    def dress(spec: dg.AssetSpec) -> dg.AssetSpec:
        name = spec.key.to_user_string()
        return spec.replace_attributes(
            owners=[OWNER],
            code_version=code_version(name, settings),
            automation_condition=condition(name, settings),
        )

    dressed = one.map_asset_specs(dress)
    # With any policy, even that of one partition per run, Dagster tags runs with ranges, which the
    # limits of the run queue do not see.
    if one.partitions_def is None or settings.automation.backfill == "run_per_model":
        return dressed
    return dressed.with_attributes(backfill_policy=dg.BackfillPolicy.single_run())

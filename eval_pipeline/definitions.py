"""What Dagster loads: a function of the settings, so that tests build the same graph elsewhere."""

import dagster as dg

from eval_pipeline.defs import assets, checks
from eval_pipeline.defs.resources import build_resources
from eval_pipeline.settings import Settings


def build_definitions(settings: Settings) -> dg.Definitions:
    return dg.Definitions(
        assets=dg.load_assets_from_modules([assets]),
        asset_checks=dg.load_asset_checks_from_modules([checks]),
        resources=build_resources(settings),
        # One process per run: starting one per step costs seconds and gains nothing here.
        executor=dg.in_process_executor,
    )


defs = build_definitions(Settings.from_env())

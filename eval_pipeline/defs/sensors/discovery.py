"""The sensor that notices new models, lost models and new prices, and has the catalog refreshed."""

import dagster as dg

from eval_pipeline.defs.partitions import MODELS
from eval_pipeline.evaluation.catalog import NOTHING_SELECTED, Look, look
from eval_pipeline.gateways.model_lists import CatalogError
from eval_pipeline.journal import JournalError
from eval_pipeline.journal.deployment import open_journal, refuse_production
from eval_pipeline.runtime import run_async
from eval_pipeline.settings import Settings


def build_discovery(settings: Settings) -> dg.Definitions:
    """The sensor; it runs from the start only where models are evaluated without being told to."""
    automation, status = settings.automation, dg.DefaultSensorStatus

    @dg.sensor(
        job_name="refresh_catalog",
        minimum_interval_seconds=automation.discover_every_s,
        default_status=status.RUNNING if automation.evaluate else status.STOPPED,
        description="Asks every gateway for its models, which costs nothing. If one appeared, "
        "vanished or changed its price, or a selected one is not a partition yet, it has the "
        "catalog refreshed.",
    )
    def discovery(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        try:
            refuse_production(settings)
            seen = run_async(look(settings, open_journal(settings)))
        except (CatalogError, JournalError) as error:
            return dg.SkipReason(str(error))
        return _decide(context, seen)

    return dg.Definitions(sensors=[discovery])


def _decide(context: dg.SensorEvaluationContext, seen: Look) -> dg.RunRequest | dg.SkipReason:
    for warning in seen.warnings:
        context.log.warning(warning)
    if not seen.selected.models:
        return dg.SkipReason(NOTHING_SELECTED)
    partitions = context.instance.get_dynamic_partitions(MODELS)
    reasons = seen.reasons(partitions)
    for reason in reasons:
        context.log.info(reason)
    if not reasons:
        said = " ".join([f"nothing has changed: {seen.summary}.", *seen.catalog.failed.values()])
        return dg.SkipReason(said)
    # Dagster never starts a second run for the same key.
    return dg.RunRequest(run_key=seen.fingerprint(partitions))

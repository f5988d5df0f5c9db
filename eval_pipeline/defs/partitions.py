"""One partition per selected model, kept in step by `model_catalog`."""

import dagster as dg

from eval_pipeline.discovery import Changes, Refreshed

MODELS = "models"
model_partitions = dg.DynamicPartitionsDefinition(name=MODELS)


def keep_in_step(instance: dg.DagsterInstance, refreshed: Refreshed) -> Changes:
    """Adds and removes partitions; what a removed model's runs left behind stays."""
    changes = refreshed.changes(instance.get_dynamic_partitions(MODELS))
    instance.add_dynamic_partitions(MODELS, list(changes.added))
    for gone in changes.removed:
        instance.delete_dynamic_partition(MODELS, gone)
    return changes

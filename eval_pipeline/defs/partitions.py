"""One partition per selected model, kept in step by `model_catalog`."""

import dagster as dg
from dagster._core.definitions.partitions.context import PartitionLoadingContext

from eval_pipeline.discovery import Changes, Refreshed
from eval_pipeline.runs import RunError

MODELS = "models"


class ModelPartitions(dg.DynamicPartitionsDefinition):
    """Dynamic partitions that say what to do about a key that is not among them."""

    def validate_partition_key(self, partition_key: str, context: PartitionLoadingContext) -> None:
        try:
            super().validate_partition_key(partition_key, context)
        except dg.DagsterUnknownPartitionError:
            store = context.dynamic_partitions_store
            known = ", ".join(store.get_dynamic_partitions(MODELS)[:20]) if store else ""
            raise RunError(
                f"{partition_key} is no partition, that is, no selected model. Known: "
                f"{known or 'none'}. To refresh them: dagster asset materialize --select "
                "model_catalog; what is selected stands in eval_pipeline.toml under [selection]."
            ) from None


model_partitions = ModelPartitions(name=MODELS)


def keep_in_step(instance: dg.DagsterInstance, refreshed: Refreshed) -> Changes:
    """Adds and removes partitions; what a removed model's runs left behind stays."""
    changes = refreshed.changes(instance.get_dynamic_partitions(MODELS))
    instance.add_dynamic_partitions(MODELS, list(changes.added))
    for gone in changes.removed:
        instance.delete_dynamic_partition(MODELS, gone)
    return changes

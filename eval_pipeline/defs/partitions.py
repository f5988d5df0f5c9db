"""One partition per selected model, kept in step by `model_catalog`."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from eval_pipeline.defs.metadata import Metadata, listed
from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.catalog import Changes, Look

MODELS = "models"
# The tags by which a run says what its partitions are.
ONE = "dagster/partition"
# Dagster has no word for partitions that are not neighbours, in one run; so this one is ours.
SOME = "evals/models"
# The tags by which Dagster finds a materialization out of date.
DATA_VERSION_TAG, CODE_VERSION_TAG = "dagster/data_version", "dagster/code_version"
# Not those that were never started: who launches a run queues it, or was killed.
_STATUS = dg.DagsterRunStatus
BUSY = (_STATUS.QUEUED, _STATUS.STARTING, _STATUS.STARTED, _STATUS.CANCELING)
PART_OF = "evals/part_of"
"""The tag of a run that another run has started in its own process."""
RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


class ModelPartitions(dg.DynamicPartitionsDefinition):
    """Dynamic partitions that say what to do about a key that is not among them."""

    def validate_partition_key(self, partition_key: str, context: Any) -> None:
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


def models_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> list[str]:
    """The models that a run is about; none are named if it is about all of them."""
    # Not `context.partition_keys`, which only runs know that have a partitioned asset in them.
    return models_named(context.run.tags, context.instance.get_dynamic_partitions(MODELS))


def tags_for(models: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """The tags by which one run is about these partitions, asked several at a time."""
    places = sorted(known.index(model) for model in models)
    first, last = places[0], places[-1]
    if last - first == len(places) - 1:
        return {RANGE_START: known[first], RANGE_END: known[last]}
    return {SOME: ",".join(known[place] for place in places)}


def tell_each(
    context: dg.AssetExecutionContext,
    told: Mapping[str, Mapping[str, Any]],
    version: dg.DataVersion,
) -> None:
    """Tells Dagster how it went for each model, which is a partition each."""
    if SOME not in context.run.tags:
        for model, metadata in told.items():
            context.add_asset_metadata(metadata, partition_key=model)
        return
    # Dagster does not know of these partitions, so it must be told that they are materialized.
    tags = {DATA_VERSION_TAG: version.value, f"{DATA_VERSION_TAG}_is_user_provided": "true"}
    if code_version := context.assets_def.code_versions_by_key.get(context.asset_key):
        tags[CODE_VERSION_TAG] = code_version
    for upstream in context.assets_def.asset_deps[context.asset_key]:
        tags |= _provenance(context.instance, upstream)
    for model, metadata in told.items():
        context.log_event(
            dg.AssetMaterialization(
                context.asset_key, partition=model, metadata=metadata, tags=tags
            )
        )


def _provenance(instance: dg.DagsterInstance, upstream: dg.AssetKey) -> dict[str, str]:
    """Of what state of another asset it was made, in the words by which Dagster finds it stale."""
    records = instance.fetch_materializations(upstream, limit=1).records
    if not records or (made := records[0].asset_materialization) is None:
        return {}
    version = (made.tags or {}).get(DATA_VERSION_TAG, "")
    return {
        f"dagster/input_data_version/{upstream.to_user_string()}": version,
        f"dagster/input_event_pointer/{upstream.to_user_string()}": str(records[0].storage_id),
    }


def models_named(tags: Mapping[str, str], known: Sequence[str]) -> list[str]:
    """The models that a run's tags name: one partition, some, or a range of those known."""
    if ONE in tags:
        return [tags[ONE]]
    if SOME in tags:
        return tags[SOME].split(",")
    first, last = tags.get(RANGE_START), tags.get(RANGE_END)
    if first is None or last is None:
        return []
    # Where an end is no partition any more, better too many than one forgotten.
    start = known.index(first) if first in known else 0
    end = known.index(last) if last in known else len(known)
    return list(known[start : end + 1])


def asked_models(context: dg.AssetExecutionContext) -> list[str]:
    """The models that a run is to ask: its partitions, and nobody who was not meant."""
    tags, known = context.run.tags, context.instance.get_dynamic_partitions(MODELS)
    ends = {tags[end] for end in (RANGE_START, RANGE_END) if end in tags}
    ends |= set(tags[SOME].split(",")) if SOME in tags else set()
    if gone := sorted(ends - set(known)):
        raise RunError(
            f"{', '.join(gone)} is no partition any more, so nobody can tell which models were "
            "meant: select them anew."
        )
    if models := models_of(context):
        return models
    raise RunError(
        "No model is named: choose a partition (in the launchpad, with --partition, or with the "
        "tag dagster/partition). For all of them there is the job evaluate_all."
    )


def keep_in_step(instance: dg.DagsterInstance, refreshed: Look, run_id: str) -> Changes:
    """Adds and removes partitions; what a removed model's runs left behind stays.

    A launch may have named models that are not selected: until it has ended they are partitions,
    except if it is the very run that refreshes.
    """
    known = instance.get_dynamic_partitions(MODELS)
    others = [run for run in unfinished_runs(instance) if run.run_id != run_id]
    busy = {model for run in others for model in models_named(run.tags, known)}
    changes = refreshed.changes(known, busy)
    instance.add_dynamic_partitions(MODELS, list(changes.added))
    for gone in changes.removed:
        instance.delete_dynamic_partition(MODELS, gone)
    return changes


def unfinished_runs(instance: dg.DagsterInstance) -> Sequence[dg.DagsterRun]:
    """The runs that Dagster believes to be at work, or to be so soon."""
    return instance.get_runs(dg.RunsFilter(statuses=list(BUSY)))


def refresh_told(refreshed: Look, changes: Changes) -> Metadata:
    """What a refresh did: numbers to be plotted, and beside them the models by name."""
    news, kept_out = refreshed.news, refreshed.tried.kept_out
    short = news.shortened()
    return {
        "models": len(refreshed.catalog.models),
        "selected_models": len(refreshed.selected.models),
        "appeared": len(news.appeared),
        "vanished": len(news.vanished),
        "repriced": len(news.repriced),
        "kept_out": len(kept_out),
        "selected": listed(model.id for model in refreshed.selected.models),
        "new_models": listed(short.appeared),
        "lost_models": listed(short.vanished),
        "new_prices": listed(short.repriced),
        "kept_out_because": listed(f"{model}: {why}" for model, why in kept_out.items()),
        "partitions_added": listed(changes.added),
        "partitions_removed": listed(changes.removed),
        "warnings": listed(refreshed.warnings),
    }

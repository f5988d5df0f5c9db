"""Refreshing the catalog: what the gateways list now is journalled, and partitions follow it."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from eval_pipeline.catalog import Catalog, Selected, fetch, select
from eval_pipeline.journal import SIGHTINGS, Journal
from eval_pipeline.providers.gateways import Gateways
from eval_pipeline.records import Model, Sighting, now
from eval_pipeline.runs import RunError
from eval_pipeline.settings import Settings

log = logging.getLogger(__name__)


class Changes(NamedTuple):
    """The partitions that come and go."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class Refreshed:
    """What a refresh found."""

    catalog: Catalog
    selected: Selected
    before: Mapping[str, Model]

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.catalog.warnings, *self.selected.warnings)

    def changes(self, partitions: Iterable[str]) -> Changes:
        """Partitions in step with the selection; those of a gateway that failed to answer stay."""
        there, wanted = set(partitions), {model.id for model in self.selected.models}
        removed = {
            model
            for model in there - wanted
            if model not in self.before or self.before[model].gateway not in self.catalog.failed
        }
        return Changes(tuple(sorted(wanted - there)), tuple(sorted(removed)))


async def refresh(settings: Settings, journal: Journal) -> Refreshed:
    """Asks every gateway for its models and journals what was seen."""
    before = known_models(journal)
    async with Gateways(settings) as gateways:
        catalog = await fetch(settings, gateways.lent_client, redact=settings.redact)
    selected = select(catalog.models, settings.selection, text_only=settings.plan.text_only)
    refreshed = Refreshed(catalog, selected, before)
    for warning in refreshed.warnings:
        log.warning(warning)
    if not selected.models:
        raise RunError(
            "No model is selected, so nothing is changed. See [selection] in eval_pipeline.toml "
            f"and the variable MODELS. {' '.join(selected.warnings)}".strip()
        )
    chosen = {model.id for model in selected.models}
    moment = now()
    journal.write_whole(
        SIGHTINGS,
        f"{moment:%Y%m%dT%H%M%S.%f}",
        records=[
            Sighting(model=model, selected=model.id in chosen, seen_at=moment)
            for model in catalog.models
        ],
    )
    return refreshed


def known_models(journal: Journal) -> Mapping[str, Model]:
    """Every model ever seen, as it was described last."""
    sightings = sorted(journal.read(SIGHTINGS), key=lambda sighting: sighting.seen_at)
    return {sighting.model.id: sighting.model for sighting in sightings}


def look_up(journal: Journal, model_ids: Iterable[str]) -> list[Model]:
    """These models as they were described last."""
    known, found = known_models(journal), []
    for model_id in model_ids:
        if model_id not in known:
            raise RunError(
                f"The model {model_id} is in no gateway's list. Materialize model_catalog, and "
                "check the gateways and the model's name in eval_pipeline.toml."
            )
        found.append(known[model_id])
    return found

"""Refreshing the catalog: models are listed, selected and asked one tiny question."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from eval_pipeline.errors import RunError
from eval_pipeline.gateways.catalog import (
    Catalog,
    CatalogChanges,
    PreviousCatalog,
    Selected,
    compare,
    fetch,
    select,
    shortened,
)
from eval_pipeline.gateways.chat import ChatRequest, ProviderError
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import SIGHTINGS, Journal
from eval_pipeline.records.base import now
from eval_pipeline.records.model import Model, Sighting
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.sections import Selection
from eval_pipeline.settings.settings import Settings
from eval_pipeline.text import listed

AT_ONCE = 20
LONGEST_S = 30.0
_MODEL_FAILS = {
    Outcome.UNKNOWN_MODEL,
    Outcome.FORBIDDEN,
    Outcome.SERVER_ERROR,
    Outcome.TIMEOUT,
    Outcome.CONNECTION_ERROR,
    Outcome.INVALID_REPLY,
    Outcome.CUT_STREAM,
}
# A bad key or an empty account says nothing about the model.
_GATEWAY_FAILS = {Outcome.AUTH, Outcome.NO_CREDIT}


class Preflight(NamedTuple):
    """The models that do not answer, each with the reason, and warnings."""

    kept_out: Mapping[str, str]
    warnings: tuple[str, ...]


NOT_TRIED = Preflight({}, ())


async def preflight(
    models: Sequence[Model], settings: Settings, *, longest_s: float = LONGEST_S
) -> Preflight:
    """Ask each model once, several at a time; a gateway that fails for all is found out once."""
    kept_out: dict[str, str] = {}
    troubled: dict[str, str] = {}
    slots = asyncio.Semaphore(AT_ONCE)

    async def ask(model: Model) -> None:
        async with slots:
            if model.gateway in troubled:
                return
            try:
                provider = replace(gateways.provider(model), timeout_s=longest_s)
                await provider.complete(
                    ChatRequest(
                        model=model.request_name,
                        messages=({"role": "user", "content": "Say yes."},),
                        # The least that the responses API takes; elsewhere one token is enough.
                        max_tokens=16 if model.dialect == "responses" else 1,
                        stream=model.streaming,
                    )
                )
            except SettingsError as error:
                troubled[model.gateway] = str(error)
            except ProviderError as error:
                if error.outcome in _GATEWAY_FAILS:
                    troubled.setdefault(model.gateway, f"{error.outcome}: {error}")
                elif error.outcome in _MODEL_FAILS:
                    kept_out[model.id] = f"{error.outcome}: {error}"

    async with Gateways(settings) as gateways, asyncio.TaskGroup() as group:
        for model in models:
            group.create_task(ask(model))
    untried = (
        f"The models of gateway '{gateway}' are taken without a trial: {why}"
        for gateway, why in sorted(troubled.items())
    )
    warnings = (*untried, *_kept_out_sentences(models, kept_out))
    return Preflight(dict(sorted(kept_out.items())), warnings)


def _kept_out_sentences(models: Iterable[Model], reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each gateway and reason."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for model in models:
        if model.id in reasons:
            groups[model.gateway, reasons[model.id]].append(model.id)
    for (gateway, why), names in groups.items():
        who = "1 model is" if len(names) == 1 else f"{len(names)} models are"
        named = listed(names, MOST_NAMED)
        yield f"Gateway '{gateway}': {who} kept out ({named}): {why.rstrip('.')}."


TRIED_AGAIN_AFTER = timedelta(days=1)
"""How long ago a model was kept out if it is by itself a reason to refresh."""
MOST_NAMED = 3
"""How many models are named of those that are kept out for one reason."""
NOTHING_SELECTED = (
    "No model is selected, so nothing is changed. See [selection] in eval_pipeline.toml "
    "and the variable MODELS."
)

log = logging.getLogger(__name__)


class Changes(NamedTuple):
    """The partitions to add and to remove."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """The models that gateways list, those that the settings select, and the previous catalog.

    After a refresh, models that do not answer are not among the selected.
    """

    catalog: Catalog
    selected: Selected
    past: PreviousCatalog
    tried: Preflight = NOT_TRIED

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.catalog.warnings, *self.selected.warnings, *self.tried.warnings)

    @cached_property
    def news(self) -> CatalogChanges:
        """The changes since each gateway answered last."""
        return compare(self.past, self.catalog)

    @property
    def summary(self) -> str:
        count = len({model.gateway for model in self.catalog.models})
        gateways = "1 gateway" if count == 1 else f"{count} gateways"
        return f"{len(self.catalog.models)} models at {gateways}"

    def missing(self, partitions: Iterable[str]) -> tuple[str, ...]:
        """Return selected models that are no partitions, unless they just failed to answer."""
        left_out, then = set(partitions), now() - TRIED_AGAIN_AFTER
        for name, one in self.past.latest.items():
            if one.kept_out is not None and one.seen_at > then:
                left_out.add(name)
        return tuple(one.id for one in self.selected.models if one.id not in left_out)

    def reasons(self, partitions: Iterable[str]) -> list[str]:
        """Return why the catalog is to be refreshed, in sentences; none if nothing has changed."""
        missing = ", ".join(shortened(self.missing(partitions)))
        return [*self.news.sentences(), *([f"Not a partition yet: {missing}."] if missing else [])]

    def fingerprint(self, partitions: Iterable[str]) -> str:
        """Return a hash of these reasons, which are new after a refresh and on another day."""
        appeared, vanished, repriced, _ = self.news
        changes = (appeared, vanished, repriced, self.missing(partitions))
        times = f"{self.past.refreshed_at} {now():%Y-%m-%d}"
        return fingerprint(times, *("\n".join(names) for names in changes))

    def changes(self, partitions: Iterable[str], busy: Collection[str] = ()) -> Changes:
        """Return the changes that bring the partitions in step with the selection.

        Those of a gateway that failed to answer stay, and so do busy ones.
        """
        there, wanted = set(partitions), {model.id for model in self.selected.models}
        known, failed = self.past.latest, self.catalog.failed
        removed = {
            model
            for model in there - wanted - set(busy)
            if model not in known or known[model].model.gateway not in failed
        }
        return Changes(tuple(sorted(wanted - there)), tuple(sorted(removed)))


async def look(settings: Settings, journal: Journal) -> Look:
    """Request every gateway's list of models; nothing is journalled, and no model is asked."""
    past = PreviousCatalog.of(journal.read(SIGHTINGS))
    async with Gateways(settings) as gateways:
        catalog = await fetch(settings, gateways.lent_client, redact=settings.redact)
    selected = select(catalog.models, settings.selection, text_only=settings.plan.text_only)
    return Look(catalog, selected, past)


async def refresh(settings: Settings, journal: Journal) -> Look:
    """Look, ask each newly selected model once, and journal what was seen."""
    seen = await look(settings, journal)
    for warning in seen.warnings:
        log.warning(warning)
    if not seen.selected.models:
        raise RunError(f"{NOTHING_SELECTED} {' '.join(seen.selected.warnings)}".strip())
    # Those that cannot be partitions yet: not selected or not listed last time.
    running = {name for name, one in seen.past.listed.items() if one.selected}
    newly_selected = [model for model in seen.selected.models if model.id not in running]
    wanted = settings.automation.preflight
    tried = await preflight(newly_selected, settings) if wanted else NOT_TRIED
    for warning in tried.warnings:
        log.warning(warning)
    alive = tuple(model for model in seen.selected.models if model.id not in tried.kept_out)
    if not alive:
        said = shortened(tuple(_kept_out_sentences(seen.selected.models, tried.kept_out)))
        raise RunError(
            "Nobody answers for any of the selected models, so nothing is changed. To select "
            f"them all the same: preflight = false under [automation]. {' '.join(said)}"
        )
    selected = Selected(alive, seen.selected.warnings)
    refreshed = replace(seen, selected=selected, tried=tried)
    moment = now()
    records = _sightings(refreshed, {gateway.name for gateway in settings.gateways}, moment)
    journal.write_whole(SIGHTINGS, f"{moment:%Y%m%dT%H%M%S.%f}", records=records)
    for sentence in refreshed.news.sentences():
        log.info(sentence)
    return refreshed


def _sightings(refreshed: Look, gateways: Collection[str], moment: datetime) -> Iterator[Sighting]:
    chosen = {model.id for model in refreshed.selected.models}
    for model in refreshed.catalog.models:
        yield Sighting(
            model=model,
            selected=model.id in chosen,
            kept_out=refreshed.tried.kept_out.get(model.id),
            seen_at=moment,
        )
    # A gateway that left the settings is not asked again: its models would stay listed for ever.
    present = {model.id for model in refreshed.catalog.models}
    for name, one in refreshed.past.listed.items():
        if name not in present and one.model.gateway not in gateways:
            changes = {"listed": False, "selected": False, "seen_at": moment}
            yield one.model_copy(update=changes)


def pick(models: Sequence[Model], chosen: Selection, selection: Selection) -> list[Model]:
    """Return the models that a launch chooses, less what the settings exclude."""
    picked = select(models, chosen, text_only=False)
    if picked.warnings:
        raise RunError(" ".join(picked.warnings))
    everybody = selection.model_copy(update={"models": ()})
    allowed = {model.id for model in select(models, everybody, text_only=False).models}
    found = [model for model in picked.models if model.id in allowed]
    if not found:
        raise RunError("No model is left to be asked; `evals models` lists what there is.")
    return found


def listed_models(journal: Journal) -> list[Model]:
    """Return every model that its gateway listed when it was asked last."""
    past = PreviousCatalog.of(journal.read(SIGHTINGS))
    return [sighting.model for sighting in past.listed.values()]


def known_models(journal: Journal) -> Mapping[str, Model]:
    """Return every model ever seen, as it was described last."""
    latest = PreviousCatalog.of(journal.read(SIGHTINGS)).latest
    return {name: sighting.model for name, sighting in latest.items()}


def look_up(journal: Journal, model_ids: Sequence[str]) -> list[Model]:
    """Return these models as they were described last."""
    known = known_models(journal)
    if missing := [name for name in model_ids if name not in known]:
        raise RunError(
            f"The model {missing[0]} is in no gateway's list. Materialize model_catalog, and "
            "check the gateways and the model's name in eval_pipeline.toml."
        )
    return [known[name] for name in model_ids]

"""The catalog as it is refreshed: models are listed, selected and asked one tiny question."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from eval_pipeline.gateways.client import Deadline
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import SIGHTINGS, Journal
from eval_pipeline.records.base import now
from eval_pipeline.records.model import Model, Sighting
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.sections import Selection
from eval_pipeline.settings.settings import Settings

AT_ONCE = 20
LONGEST_S = 30.0
QUESTION = "Say yes."
# The least that the responses API takes; one token is enough elsewhere.
LEAST_TOKENS = {"responses": 16}

_NOBODY_ANSWERS = {
    Outcome.UNKNOWN_MODEL,
    Outcome.FORBIDDEN,
    Outcome.SERVER_ERROR,
    Outcome.TIMEOUT,
    Outcome.CONNECTION_ERROR,
    Outcome.INVALID_REPLY,
    Outcome.CUT_STREAM,
}
_GATEWAYS_TROUBLE = {Outcome.AUTH, Outcome.NO_CREDIT}


class Preflight(NamedTuple):
    """The models for which nobody answers, each with the reason, and what to warn of."""

    kept_out: Mapping[str, str]
    warnings: tuple[str, ...]


NOBODY_TRIED = Preflight({}, ())


async def preflight(
    models: Iterable[Model], settings: Settings, *, longest_s: float = LONGEST_S
) -> Preflight:
    """Asks each model once, several at a time; what says that somebody is there is enough."""
    async with Gateways(settings) as gateways:
        trial = _Trial(gateways, Deadline(longest_s))
        async with asyncio.TaskGroup() as group:
            for model in models:
                group.create_task(trial.ask(model))
    kept_out = dict(sorted(trial.kept_out.items()))
    return Preflight(
        kept_out,
        (
            *(
                f"The models of gateway '{gateway}' are taken without a trial: {why}"
                for gateway, why in sorted(trial.troubled.items())
            ),
            *(f"{model} is kept out: {why}" for model, why in kept_out.items()),
        ),
    )


@dataclass(frozen=True)
class _Trial:
    """Who answers for none of its models is found out once; who asks does not insist."""

    gateways: Gateways
    deadline: Deadline
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    kept_out: dict[str, str] = field(default_factory=dict)
    troubled: dict[str, str] = field(default_factory=dict)

    async def ask(self, model: Model) -> None:
        async with self.places:
            if model.gateway in self.troubled:
                return
            try:
                await self._complete(model)
            except SettingsError as error:
                self.troubled[model.gateway] = str(error)
            except ProviderError as error:
                self._heed(model, error)

    async def _complete(self, model: Model) -> None:
        provider = replace(self.gateways.provider(model), deadline=self.deadline)
        await provider.complete(
            ChatRequest(
                model=model.request_name,
                messages=({"role": "user", "content": QUESTION},),
                max_tokens=LEAST_TOKENS.get(model.dialect, 1),
                stream=model.streaming,
            )
        )

    def _heed(self, model: Model, error: ProviderError) -> None:
        """A bad key or an empty purse says nothing about the model."""
        if error.outcome in _GATEWAYS_TROUBLE:
            self.troubled.setdefault(model.gateway, f"{error.outcome}: {error}")
        elif error.outcome in _NOBODY_ANSWERS:
            self.kept_out[model.id] = f"{error.outcome}: {error}"


TRIED_AGAIN_AFTER = timedelta(days=1)
"""When a model that was kept out is by itself a reason to refresh."""
MOST_NAMED = 3
"""So many models are named of those that are kept out for one reason."""
NOTHING_SELECTED = (
    "No model is selected, so nothing is changed. See [selection] in eval_pipeline.toml "
    "and the variable MODELS."
)

log = logging.getLogger(__name__)


class Changes(NamedTuple):
    """The partitions that come and go."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """What the gateways list, what of it the settings select, and what was known before."""

    catalog: Catalog
    selected: Selected
    past: PreviousCatalog

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.catalog.warnings, *self.selected.warnings)

    @cached_property
    def news(self) -> CatalogChanges:
        """What has changed since each gateway answered last."""
        return compare(self.past, self.catalog)

    @property
    def newly_selected(self) -> tuple[Model, ...]:
        """Those that can not be partitions yet: they were not selected or not listed last time."""
        running = {name for name, one in self.past.listed.items() if one.selected}
        return tuple(model for model in self.selected.models if model.id not in running)

    @property
    def summary(self) -> str:
        count = len({model.gateway for model in self.catalog.models})
        gateways = "1 gateway" if count == 1 else f"{count} gateways"
        return f"{len(self.catalog.models)} models at {gateways}"

    def missing(self, partitions: Iterable[str]) -> tuple[str, ...]:
        """Selected models that are no partitions, though nobody has just found them dead."""
        there, then = set(partitions), now() - TRIED_AGAIN_AFTER
        dead = {
            name
            for name, one in self.past.latest.items()
            if one.kept_out is not None and one.seen_at > then
        }
        return tuple(one.id for one in self.selected.models if one.id not in there | dead)

    def reasons(self, partitions: Iterable[str]) -> list[str]:
        """Why the catalog is to be refreshed, in sentences; none if nothing has changed."""
        missing = ", ".join(shortened(self.missing(partitions)))
        return [*self.news.sentences(), *([f"Not a partition yet: {missing}."] if missing else [])]

    def fingerprint(self, partitions: Iterable[str]) -> str:
        """The same for the same reasons; but after a refresh, and on another day, they are new."""
        appeared, vanished, repriced, _ = self.news
        changes = (appeared, vanished, repriced, self.missing(partitions))
        times = f"{self.past.refreshed_at} {now():%Y-%m-%d}"
        return fingerprint(times, *("\n".join(names) for names in changes))


@dataclass(frozen=True)
class Refreshed(Look):
    """What a refresh found; models for which nobody answers are not among the selected."""

    tried: Preflight

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*super().warnings, *self.tried.warnings)

    def changes(self, partitions: Iterable[str], busy: Collection[str] = ()) -> Changes:
        """Partitions in step with the selection; those of a gateway that failed to answer stay.

        So do those that somebody is at work on.
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
    """Asks every gateway for its models; nothing is journalled, and no model is asked."""
    past = PreviousCatalog.of(journal.read(SIGHTINGS))
    async with Gateways(settings) as gateways:
        catalog = await fetch(settings, gateways.lent_client, redact=settings.redact)
    selected = select(catalog.models, settings.selection, text_only=settings.plan.text_only)
    return Look(catalog, selected, past)


async def refresh(settings: Settings, journal: Journal) -> Refreshed:
    """Looks, tries the models that are newly selected, and journals what was seen."""
    seen = await look(settings, journal)
    _warn(seen.warnings)
    if not seen.selected.models:
        raise RunError(f"{NOTHING_SELECTED} {' '.join(seen.selected.warnings)}".strip())
    wanted = settings.automation.preflight
    tried = await preflight(seen.newly_selected, settings) if wanted else NOBODY_TRIED
    tried = _told_together(tried, seen.selected.models)
    _warn(tried.warnings)
    refreshed = _without_dead(seen, tried)
    _keep(refreshed, journal, {gateway.name for gateway in settings.gateways})
    for sentence in refreshed.news.sentences():
        log.info(sentence)
    return refreshed


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        log.warning(warning)


def _without_dead(seen: Look, tried: Preflight) -> Refreshed:
    alive = tuple(model for model in seen.selected.models if model.id not in tried.kept_out)
    if not alive:
        said = shortened(tuple(_kept_out(seen.selected.models, tried.kept_out)))
        raise RunError(
            "Nobody answers for any of the selected models, so nothing is changed. To select "
            f"them all the same: preflight = false under [automation]. {' '.join(said)}"
        )
    return Refreshed(seen.catalog, Selected(alive, seen.selected.warnings), seen.past, tried)


def _told_together(tried: Preflight, models: Sequence[Model]) -> Preflight:
    """The same with one warning for all that a gateway's trouble keeps out, not one for each."""
    others = [one for one in tried.warnings if one.partition(" ")[0] not in tried.kept_out]
    return Preflight(tried.kept_out, (*others, *_kept_out(models, tried.kept_out)))


def _kept_out(models: Sequence[Model], reasons: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each gateway and reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for model in models:
        if model.id in reasons:
            groups.setdefault((model.gateway, reasons[model.id]), []).append(model.id)
    for (gateway, why), names in groups.items():
        more = len(names) - MOST_NAMED
        told = ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        who = "1 model is" if len(names) == 1 else f"{len(names)} models are"
        yield f"Gateway '{gateway}': {who} kept out ({told}): {why.rstrip('.')}."


def _keep(refreshed: Refreshed, journal: Journal, gateways: Collection[str]) -> None:
    moment = now()
    records = [*_seen(refreshed, moment), *_gone(refreshed, gateways, moment)]
    journal.write_whole(SIGHTINGS, f"{moment:%Y%m%dT%H%M%S.%f}", records=records)


def _seen(refreshed: Refreshed, moment: datetime) -> Iterator[Sighting]:
    chosen = {model.id for model in refreshed.selected.models}
    for model in refreshed.catalog.models:
        yield Sighting(
            model=model,
            selected=model.id in chosen,
            kept_out=refreshed.tried.kept_out.get(model.id),
            seen_at=moment,
        )


def _gone(refreshed: Refreshed, gateways: Collection[str], moment: datetime) -> Iterator[Sighting]:
    """What went with its gateway: nobody asks that again, and so it would stay listed for ever."""
    there = {model.id for model in refreshed.catalog.models}
    for name, one in refreshed.past.listed.items():
        if name not in there and one.model.gateway not in gateways:
            changes = {"listed": False, "selected": False, "seen_at": moment}
            yield one.model_copy(update=changes)


def pick(models: Sequence[Model], chosen: Selection, selection: Selection) -> list[Model]:
    """Those that a launch chooses, less what the settings exclude; patterns must mean something."""
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
    """Every model that its gateway listed when it was asked last."""
    listed = PreviousCatalog.of(journal.read(SIGHTINGS)).listed
    return [sighting.model for sighting in listed.values()]


def known_models(journal: Journal) -> Mapping[str, Model]:
    """Every model ever seen, as it was described last."""
    latest = PreviousCatalog.of(journal.read(SIGHTINGS)).latest
    return {name: sighting.model for name, sighting in latest.items()}


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

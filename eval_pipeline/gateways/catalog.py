"""The models that gateways offer, those that are selected, and how a catalog changed."""

import asyncio
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple, Self

import httpx

from eval_pipeline.gateways.model_lists import (
    CatalogError,
    ModelList,
    Redact,
    parse_model_list,
    shown,
    static_models,
)
from eval_pipeline.records.model import Model, Prices, Sighting
from eval_pipeline.settings.gateway import Gateway
from eval_pipeline.settings.sections import Selection
from eval_pipeline.settings.settings import Settings

ClientFor = Callable[[Gateway], AbstractAsyncContextManager[httpx.AsyncClient]]
"""Opens a client whose base address and key are already those of the gateway."""


@dataclass(frozen=True)
class Limits:
    """How long a gateway may take to list its models, and how large the list may be."""

    seconds: float = 30
    size: int = 64 * 2**20


@dataclass(frozen=True)
class Catalog:
    """Every model that can be asked, sorted by id; `failed` says why a gateway's are missing."""

    models: tuple[Model, ...]
    warnings: tuple[str, ...]
    failed: dict[str, str]


class Selected(NamedTuple):
    """The models to run, and which patterns meant nothing."""

    models: tuple[Model, ...]
    warnings: tuple[str, ...]


async def fetch(
    settings: Settings, client_for: ClientFor, *, redact: Redact, limits: Limits | None = None
) -> Catalog:
    """Asks all gateways at once; one that fails is left out with a warning, unless all do."""
    asked = _Asked(client_for, redact, limits or Limits())
    answers = await asyncio.gather(*map(asked.models_or_reason, settings.gateways))
    failed = {
        gateway.name: f"{answer}{_missing_key(gateway, settings)}"
        for gateway, answer in zip(settings.gateways, answers, strict=True)
        if isinstance(answer, str)
    }
    if len(failed) == len(answers):
        raise CatalogError(f"No gateway listed its models: {' '.join(failed.values())}")
    lists = [answer for answer in answers if isinstance(answer, ModelList)]
    models, repeated = _without_repeats((model for each in lists for model in each.models), redact)
    warnings = [warning for each in lists for warning in each.warnings]
    return Catalog(
        models=tuple(_overridden(model, settings) for model in sorted(models, key=_id)),
        warnings=(*failed.values(), *warnings, *repeated, *_unused_overrides(models, settings)),
        failed=failed,
    )


def select(models: Sequence[Model], selection: Selection, *, text_only: bool) -> Selected:
    """Takes what the patterns name, or everything if there are none, less what they exclude."""
    wanted = _named(models, selection.models, _MODEL_WAYS)
    unwanted = _named(models, selection.exclude_models, _MODEL_WAYS)
    unserved = _named(models, selection.exclude_providers, _PROVIDER_WAYS)
    taken = wanted.ids if selection.models else {model.id for model in models}
    taken = taken - unwanted.ids - unserved.ids
    return Selected(
        tuple(m for m in models if m.id in taken and (m.reads_text or not text_only)),
        (
            *_model_warnings(models, (*wanted.unknown, *unwanted.unknown)),
            *_provider_warnings(models, unserved.unknown),
        ),
    )


@dataclass(frozen=True)
class _Asked:
    """How gateways are asked for their lists."""

    client_for: ClientFor
    redact: Redact
    limits: Limits

    async def models_or_reason(self, gateway: Gateway) -> ModelList | str:
        if gateway.models:
            return ModelList(static_models(gateway), ())
        try:
            return parse_model_list(gateway, await self._payload(gateway), redact=self.redact)
        except CatalogError as error:
            return str(error)

    async def _payload(self, gateway: Gateway) -> object:
        status, body = await self._answer(gateway)
        if status != httpx.codes.OK:
            said = shown(_readable(body), self.redact, limit=200) or "it gave no reason"
            raise CatalogError(f"Gateway '{gateway.name}' answered with status {status} ({said}).")
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise CatalogError(f"Gateway '{gateway.name}' did not answer with JSON.") from None

    async def _answer(self, gateway: Gateway) -> tuple[int, bytes]:
        try:
            async with self.client_for(gateway) as client, asyncio.timeout(self.limits.seconds):
                return await self._download(gateway, client)
        except TimeoutError:
            late = f"did not list its models within {self.limits.seconds:g} s"
            raise CatalogError(f"Gateway '{gateway.name}' {late}.") from None
        except httpx.HTTPError as error:
            reason = shown(str(error), self.redact, limit=200) or type(error).__name__
            raise CatalogError(f"Gateway '{gateway.name}' could not be asked ({reason}).") from None

    async def _download(self, gateway: Gateway, client: httpx.AsyncClient) -> tuple[int, bytes]:
        body = bytearray()
        address = gateway.list_address or "models"
        # The client's own time limit is meant for answers of models; ours is around this call.
        async with client.stream("GET", address, timeout=None) as response:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self.limits.size:
                    large = f"answered with more than {self.limits.size} bytes"
                    raise CatalogError(f"Gateway '{gateway.name}' {large}.")
        return response.status_code, bytes(body)


def _missing_key(gateway: Gateway, settings: Settings) -> str:
    """A likely reason, for those who have not come to setting up keys yet."""
    missing = gateway.needs_key and settings.key(gateway.key_variable) is None
    return f" {gateway.key_variable} is not set." if missing else ""


def _readable(body: bytes) -> str:
    """Without the escapes of JSON, behind which a secret would not be recognized."""
    try:
        return json.dumps(json.loads(body), ensure_ascii=False)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _without_repeats(models: Iterable[Model], redact: Redact) -> ModelList:
    first: dict[str, Model] = {}
    warnings = []
    for model in models:
        kept = first.setdefault(model.id, model)
        if kept is not model:
            repeated = f"model '{shown(model.id, redact)}' is left out"
            known = f"it is already listed by gateway '{kept.gateway}'"
            warnings.append(f"Gateway '{model.gateway}': {repeated}: {known}.")
    return ModelList(tuple(first.values()), tuple(warnings))


def _unused_overrides(models: Iterable[Model], settings: Settings) -> list[str]:
    names = {name for model in models for name in (model.id, f"{model.vendor}/{model.name}")}
    unused = sorted(settings.overrides.keys() - names)
    return [f"overrides: no gateway lists a model '{name}'." for name in unused]


def _overridden(model: Model, settings: Settings) -> Model:
    return model.model_copy(update=settings.override(model).listed())


def _id(model: Model) -> str:
    return model.id


def _unpinned(model: Model) -> str:
    return f"{model.vendor}/{model.name}"


def _fits(text: str, wanted: str) -> bool:
    """As a glob if it has * or ?, else as a part; brackets mean themselves."""
    if "*" in wanted or "?" in wanted:
        return fnmatchcase(text.casefold(), wanted.replace("[", "[[]"))
    return wanted != "" and wanted in text.casefold()


_Way = Callable[[Model, str], bool]
_MODEL_WAYS: tuple[_Way, ...] = (
    lambda model, wanted: model.id.casefold() == wanted,
    lambda model, wanted: _unpinned(model).casefold() == wanted,
    lambda model, wanted: model.vendor.casefold() == wanted,
    lambda model, wanted: model.name.casefold() == wanted,
    lambda model, wanted: _fits(model.id, wanted) or _fits(_unpinned(model), wanted),
)
_PROVIDER_WAYS: tuple[_Way, ...] = (
    lambda model, wanted: (model.provider or "").casefold() == wanted != "",
    lambda model, wanted: model.provider is not None and _fits(model.provider, wanted),
)


class _Named(NamedTuple):
    ids: set[str]
    unknown: tuple[str, ...]


def _named(models: Sequence[Model], patterns: Iterable[str], ways: Iterable[_Way]) -> _Named:
    matches = {pattern: _matching(models, pattern.strip().casefold(), ways) for pattern in patterns}
    unknown = tuple(pattern for pattern, ids in matches.items() if not ids)
    return _Named(set().union(*matches.values()), unknown)


def _matching(models: Sequence[Model], wanted: str, ways: Iterable[_Way]) -> set[str]:
    """The first way in which the pattern matches anything is the one that was meant."""
    found = ({model.id for model in models if way(model, wanted)} for way in ways)
    return next(filter(None, found), set())


def _model_warnings(models: Sequence[Model], patterns: Iterable[str]) -> Iterator[str]:
    spellings = {
        text.casefold(): model.id
        for model in models
        for text in (model.name, _unpinned(model), model.id)
    }
    return (_unknown("model", pattern, spellings) for pattern in patterns)


def _provider_warnings(models: Sequence[Model], patterns: Iterable[str]) -> Iterator[str]:
    spellings = {model.provider.casefold(): model.provider for model in models if model.provider}
    return (_unknown("provider", pattern, spellings) for pattern in patterns)


def _unknown(noun: str, pattern: str, spellings: Mapping[str, str]) -> str:
    # Three spellings may belong to one model, so three models may take nine.
    close = get_close_matches(pattern.strip().casefold(), spellings, n=9)
    ids = list(dict.fromkeys(spellings[text] for text in close))[:3]
    return f"No {noun} matches '{pattern}'" + (f"; closest: {', '.join(ids)}." if ids else ".")


MOST_TOLD = 50
MILLION = 1_000_000
_PER_TOKEN = {
    "input": "prompt",
    "output": "completion",
    "cached input": "cached",
    "reasoning": "reasoning",
}


@dataclass(frozen=True)
class Past:
    """What earlier refreshes saw: every model's latest sighting, and those still listed by then."""

    latest: Mapping[str, Sighting]
    listed: Mapping[str, Sighting]
    refreshed_at: datetime | None

    @classmethod
    def of(cls, sightings: Iterable[Sighting]) -> Self:
        """A gateway that failed to answer counts as it was when it answered last."""
        latest: dict[str, Sighting] = {}
        answered: dict[str, datetime] = {}
        for one in sightings:
            model, seen_at = one.model, one.seen_at
            if model.id not in latest or latest[model.id].seen_at <= seen_at:
                latest[model.id] = one
            answered[model.gateway] = max(seen_at, answered.get(model.gateway, seen_at))
        listed = {
            name: one
            for name, one in latest.items()
            if one.listed and one.seen_at == answered[one.model.gateway]
        }
        return cls(latest, listed, max(answered.values(), default=None))


class News(NamedTuple):
    """What has changed, model by model; `first` if there is nothing to compare with."""

    appeared: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    repriced: tuple[str, ...] = ()
    first: bool = False

    def shortened(self) -> "News":
        """The same for people: nobody reads hundreds of names."""
        appeared = shortened(self.appeared)
        if self.first:
            appeared = (f"{len(self.appeared)} models, seen for the first time",)
        return News(appeared, shortened(self.vanished), shortened(self.repriced))

    def sentences(self) -> list[str]:
        """One for each sort of change that there is."""
        appeared, vanished, repriced, _ = self.shortened()
        told = {"Appeared": ", ".join(appeared), "Vanished": ", ".join(vanished)}
        told["Changed their price"] = "; ".join(repriced)
        return [f"{what}: {which}." for what, which in told.items() if which]


def shortened(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The first of them, and how many more there are."""
    left = len(texts) - MOST_TOLD
    return (*texts[:MOST_TOLD], f"and {left} more") if left > 0 else texts


def compare(past: Past, catalog: Catalog) -> News:
    """What is not as it was when each gateway answered last."""
    listed = {model.id: model for model in catalog.models}
    prices = {name: one.model.prices for name, one in past.listed.items()}
    changes = {
        name: _price_change(prices[name], model.prices)
        for name, model in listed.items()
        if name in prices
    }
    return News(
        appeared=tuple(name for name in listed if name not in prices),
        vanished=tuple(sorted(name for name in _gone(past, catalog) if name not in listed)),
        repriced=tuple(f"{name}: {change}" for name, change in changes.items() if change),
        first=past.refreshed_at is None,
    )


def _gone(past: Past, catalog: Catalog) -> Iterator[str]:
    """The models of gateways that have answered, or are no longer in the settings."""
    answered = {model.gateway for model in catalog.models}
    for name, one in past.listed.items():
        gateway = one.model.gateway
        # A gateway that lists nothing leaves no sighting, so what it lost is told once only.
        just_seen = gateway not in catalog.failed and one.seen_at == past.refreshed_at
        if gateway in answered or just_seen:
            yield name


def _price_change(before: Prices, after: Prices) -> str:
    changes = {
        word: _change(getattr(before, name), getattr(after, name), MILLION)
        for word, name in _PER_TOKEN.items()
    }
    per_token = ", ".join(f"{word} {change}" for word, change in changes.items() if change)
    per_request = _change(before.request, after.request, 1)
    told = {"million tokens": per_token, "request": per_request}
    return ", ".join(f"{change} USD per {unit}" for unit, change in told.items() if change)


def _change(before: float | None, after: float | None, unit: int) -> str:
    """In words, unless both are the same as far as they are told."""
    one, other = _usd(before, unit), _usd(after, unit)
    return "" if one == other else f"{one} to {other}"


def _usd(price: float | None, unit: int) -> str:
    """Cents, and more digits for the few prices that need them."""
    if price is None:
        return "unknown"
    usd = price * unit
    cents = f"{usd:.2f}"
    return cents if math.isclose(float(cents), usd, rel_tol=1e-6) else f"{usd:.6g}"

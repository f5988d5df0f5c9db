"""The models that gateways offer, those that are selected, and how a catalog changed."""

import asyncio
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import NamedTuple, Self

import httpx

from eval_pipeline.gateways.dialects.errors import readable
from eval_pipeline.gateways.model_lists import (
    CatalogError,
    ModelList,
    Redact,
    gateway_error,
    parse_model_list,
    shown,
    static_models,
)
from eval_pipeline.records.model import Model, Prices, Sighting
from eval_pipeline.settings.gateway import Gateway
from eval_pipeline.settings.sections import Selection
from eval_pipeline.settings.settings import Settings
from eval_pipeline.text import closest

# Opens a client whose base address and key are already those of the gateway.
ClientFor = Callable[[Gateway], AbstractAsyncContextManager[httpx.AsyncClient]]
LARGEST_LIST = 64 * 2**20


@dataclass(frozen=True)
class Catalog:
    """Every model that can be asked, sorted by id; `failed` has the error of each other gateway."""

    models: tuple[Model, ...]
    warnings: tuple[str, ...]
    failed: dict[str, str]


class Selected(NamedTuple):
    """The models to run, and warnings about patterns that match nothing."""

    models: tuple[Model, ...]
    warnings: tuple[str, ...]


async def fetch(
    settings: Settings, client_for: ClientFor, *, redact: Redact, longest_s: float = 30
) -> Catalog:
    """Ask all gateways at once; one that fails is left out with a warning, unless all do."""
    asked = (_list_models(one, client_for, redact, longest_s) for one in settings.gateways)
    answers = await asyncio.gather(*asked)
    failed = {}
    for gateway, answer in zip(settings.gateways, answers, strict=True):
        if isinstance(answer, CatalogError):
            failed[gateway.name] = str(answer)
            if gateway.needs_key and settings.key(gateway.key_variable) is None:
                failed[gateway.name] += f" {gateway.key_variable} is not set."
    if len(failed) == len(answers):
        raise CatalogError(f"No gateway listed its models: {' '.join(failed.values())}")
    lists = [answer for answer in answers if isinstance(answer, ModelList)]
    models, repeated = _without_repeats((model for each in lists for model in each.models), redact)
    warnings = [warning for each in lists for warning in each.warnings]
    names = {name for model in models for name in (model.id, model.unpinned_id)}
    unused = sorted(settings.overrides.keys() - names)
    return Catalog(
        models=tuple(
            model.model_copy(update=settings.override(model).listed())
            for model in sorted(models, key=lambda model: model.id)
        ),
        warnings=(
            *(*failed.values(), *warnings, *repeated),
            *(f"overrides: no gateway lists a model '{name}'." for name in unused),
        ),
        failed=failed,
    )


async def _list_models(
    gateway: Gateway, client_for: ClientFor, redact: Redact, longest_s: float
) -> ModelList | CatalogError:
    if gateway.models:
        return ModelList(static_models(gateway), ())
    try:
        async with client_for(gateway) as client, asyncio.timeout(longest_s):
            status, body = await _download(gateway, client)
        if status != httpx.codes.OK:
            said = shown(readable(body), redact, limit=200) or "it gave no reason"
            return gateway_error(gateway, f"answered with status {status} ({said})")
        return parse_model_list(gateway, json.loads(body), redact=redact)
    except CatalogError as error:
        return error
    except (ValueError, RecursionError):
        return gateway_error(gateway, "did not answer with JSON")
    except TimeoutError:
        return gateway_error(gateway, f"did not list its models within {longest_s:g} s")
    except httpx.HTTPError as error:
        reason = shown(str(error), redact, limit=200) or type(error).__name__
        return gateway_error(gateway, f"could not be asked ({reason})")


async def _download(gateway: Gateway, client: httpx.AsyncClient) -> tuple[int, bytes]:
    body = bytearray()
    address = gateway.list_address or "models"
    # The client's own time limit is meant for answers of models; ours is around this call.
    async with client.stream("GET", address, timeout=None) as response:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > LARGEST_LIST:
                raise gateway_error(gateway, f"answered with more than {LARGEST_LIST} bytes")
    return response.status_code, bytes(body)


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


def select(models: Sequence[Model], selection: Selection, *, text_only: bool) -> Selected:
    """Take what the patterns name, or everything if there are none, less what they exclude."""
    wanted = _matches(models, selection.models, _MODEL_WAYS)
    unwanted = _matches(models, selection.exclude_models, _MODEL_WAYS)
    unserved = _matches(models, selection.exclude_providers, _PROVIDER_WAYS)
    taken = set().union(*wanted.values()) if selection.models else {model.id for model in models}
    taken = taken.difference(*unwanted.values(), *unserved.values())
    names = {
        text.casefold(): model.id
        for model in models
        for text in (model.name, model.unpinned_id, model.id)
    }
    providers = {model.provider.casefold(): model.provider for model in models if model.provider}
    return Selected(
        tuple(m for m in models if m.id in taken and (m.reads_text or not text_only)),
        (
            *_unmatched("model", wanted, names),
            *_unmatched("model", unwanted, names),
            *_unmatched("provider", unserved, providers),
        ),
    )


def _fits(text: str, wanted: str) -> bool:
    """Match as a glob if it has * or ?, else as a part; brackets mean themselves."""
    if "*" in wanted or "?" in wanted:
        return fnmatchcase(text.casefold(), wanted.replace("[", "[[]"))
    return wanted != "" and wanted in text.casefold()


_Way = Callable[[Model, str], bool]
_MODEL_WAYS: tuple[_Way, ...] = (
    lambda model, wanted: model.id.casefold() == wanted,
    lambda model, wanted: model.unpinned_id.casefold() == wanted,
    lambda model, wanted: model.vendor.casefold() == wanted,
    lambda model, wanted: model.name.casefold() == wanted,
    lambda model, wanted: _fits(model.id, wanted) or _fits(model.unpinned_id, wanted),
)
_PROVIDER_WAYS: tuple[_Way, ...] = (
    lambda model, wanted: (model.provider or "").casefold() == wanted != "",
    lambda model, wanted: model.provider is not None and _fits(model.provider, wanted),
)


def _matches(
    models: Sequence[Model], patterns: Iterable[str], ways: Iterable[_Way]
) -> dict[str, set[str]]:
    """Match each pattern in the first way in which it matches anything."""
    return {
        pattern: next(
            filter(None, ({m.id for m in models if way(m, wanted)} for way in ways)), set()
        )
        for pattern in patterns
        for wanted in [pattern.strip().casefold()]
    }


def _unmatched(
    noun: str, matches: Mapping[str, set[str]], spellings: Mapping[str, str]
) -> Iterator[str]:
    for pattern in (pattern for pattern, ids in matches.items() if not ids):
        ids = closest(pattern.strip(), spellings, alike=0.6)[:3]
        yield f"No {noun} matches '{pattern}'" + (f"; closest: {', '.join(ids)}." if ids else ".")


MOST_TOLD = 50
MILLION = 1_000_000


@dataclass(frozen=True)
class PreviousCatalog:
    """The latest sighting of every model in earlier refreshes, and those that were still listed."""

    latest: Mapping[str, Sighting]
    listed: Mapping[str, Sighting]
    refreshed_at: datetime | None

    @classmethod
    def of(cls, sightings: Iterable[Sighting]) -> Self:
        """Read sightings; a gateway that failed counts as it was when it answered last."""
        latest: dict[str, Sighting] = {}
        answered: dict[str, datetime] = {}
        for one in sightings:
            model, seen_at = one.model, one.seen_at
            if latest.setdefault(model.id, one).seen_at <= seen_at:
                latest[model.id] = one
            answered[model.gateway] = max(seen_at, answered.get(model.gateway, seen_at))
        listed = {
            name: one
            for name, one in latest.items()
            if one.listed and one.seen_at == answered[one.model.gateway]
        }
        return cls(latest, listed, max(answered.values(), default=None))


class CatalogChanges(NamedTuple):
    """Changes of the catalog, model by model; `first` if there is nothing to compare with."""

    appeared: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    repriced: tuple[str, ...] = ()
    first: bool = False

    def shortened(self) -> "CatalogChanges":
        """Return the same for people, who read no hundreds of names."""
        appeared = shortened(self.appeared)
        if self.first:
            appeared = (f"{len(self.appeared)} models, seen for the first time",)
        return CatalogChanges(appeared, shortened(self.vanished), shortened(self.repriced))

    def sentences(self) -> list[str]:
        """Return one sentence for each sort of change that there is."""
        appeared, vanished, repriced, _ = self.shortened()
        changes = {
            "Appeared": ", ".join(appeared),
            "Vanished": ", ".join(vanished),
            "Changed their price": "; ".join(repriced),
        }
        return [f"{change}: {models}." for change, models in changes.items() if models]


def shortened(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first of them, and how many more there are."""
    left = len(texts) - MOST_TOLD
    return (*texts[:MOST_TOLD], f"and {left} more") if left > 0 else texts


def compare(past: PreviousCatalog, catalog: Catalog) -> CatalogChanges:
    """Compare each gateway's models with those of its last answer."""
    listed = {model.id: model for model in catalog.models}
    changes = {
        name: _price_change(one.model.prices, listed[name].prices)
        for name, one in past.listed.items()
        if name in listed
    }
    return CatalogChanges(
        appeared=tuple(name for name in listed if name not in past.listed),
        vanished=tuple(sorted(name for name in _gone(past, catalog) if name not in listed)),
        repriced=tuple(f"{name}: {changes[name]}" for name in listed if changes.get(name)),
        first=past.refreshed_at is None,
    )


def _gone(past: PreviousCatalog, catalog: Catalog) -> Iterator[str]:
    """Yield the models of gateways that have answered, or are no longer in the settings."""
    answered = {model.gateway for model in catalog.models}
    for name, one in past.listed.items():
        gateway = one.model.gateway
        # A gateway that lists nothing leaves no sighting, so what it lost is reported only once.
        just_seen = gateway not in catalog.failed and one.seen_at == past.refreshed_at
        if gateway in answered or just_seen:
            yield name


def _price_change(before: Prices, after: Prices) -> str:
    def change(name: str, unit: int) -> str:
        one, other = (_usd(getattr(prices, name), unit) for prices in (before, after))
        return "" if one == other else f"{one} to {other}"

    changes = {
        "input": change("prompt", MILLION),
        "output": change("completion", MILLION),
        "cached input": change("cached", MILLION),
        "reasoning": change("reasoning", MILLION),
    }
    per_token = ", ".join(f"{kind} {changed}" for kind, changed in changes.items() if changed)
    by_unit = {"million tokens": per_token, "request": change("request", 1)}
    return ", ".join(f"{changed} USD per {unit}" for unit, changed in by_unit.items() if changed)


def _usd(price: float | None, unit: int) -> str:
    """Write cents, and more digits for the few prices that need them."""
    if price is None:
        return "unknown"
    usd = price * unit
    cents = f"{usd:.2f}"
    return cents if math.isclose(float(cents), usd, rel_tol=1e-6) else f"{usd:.6g}"

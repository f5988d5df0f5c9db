"""What a look at the gateways has to tell: which models appeared, vanished, changed their price."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Self

from eval_pipeline.gateways.catalog import Catalog
from eval_pipeline.records import Prices, Sighting

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

"""The lists of models that gateways answer with, read into Model records."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
)

from eval_pipeline.errors import MendableError
from eval_pipeline.records.model import Model, ModelId, Prices
from eval_pipeline.settings.gateway import Gateway, StaticModel

Redact = Callable[[str], str]

# ZenMux states US dollars per million tokens; records.Prices are per token.
_ZENMUX_TOKENS = 1_000_000
# Far above any real price, and low enough that no sum of costs becomes infinite.
_HIGHEST_PRICE = 1_000
_DATETIME = TypeAdapter(datetime)
_REASONS = {
    "model_type": "must be an object",
    "string_pattern_mismatch": "lacks a part or has characters that are not allowed",
}


class CatalogError(MendableError):
    """The reason, in one sentence, that there is no list of models."""

    wrong_use = False


class ModelList(NamedTuple):
    """The models of a list that could be read, and what was wrong with the rest."""

    models: tuple[Model, ...]
    warnings: tuple[str, ...]


def gateway_error(gateway: Gateway, what: str) -> CatalogError:
    """Return the error that says what the gateway did instead."""
    return CatalogError(f"Gateway '{gateway.name}' {what}.")


def shown(text: str, redact: Redact, *, limit: int = 80) -> str:
    """Return a server's text as one short printable line, redacted before it is cut."""
    line = redact("".join(filter(str.isprintable, " ".join(text.split()))))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def parse_model_list(gateway: Gateway, payload: object, *, redact: Redact = str) -> ModelList:
    """Read every entry on its own: one that cannot be read is lost alone, with a warning."""
    reader = _Reader(gateway, redact)
    read = reader.read_zenmux if gateway.kind == "zenmux" else reader.read_open
    for number, raw in enumerate(_entries(gateway, payload), start=1):
        reader.read_alone(reader.label(raw, number), read, raw)
    return ModelList(tuple(reader.models), tuple(reader.warnings))


def static_models(gateway: Gateway) -> tuple[Model, ...]:
    """Return the models that the settings list themselves."""
    return tuple(_static_model(gateway, model) for model in gateway.models)


def _static_model(gateway: Gateway, model: StaticModel) -> Model:
    vendor, _, name = model.id.partition("/")
    provider = model.provider
    if gateway.kind == "zenmux":
        provider = provider or name.partition(":")[2] or None
        name = name.removesuffix(f":{provider}")
    simulated = gateway.kind == "demo"
    placed = {"gateway": gateway.name, "vendor": vendor, "name": name, "provider": provider}
    assumed = {"request_name": model.id, "display_name": model.id, "dialect": gateway.own_dialect}
    stated = model.model_dump(exclude_none=True, exclude={"provider"})
    return Model.model_validate({**assumed, **stated, **placed, "simulated": simulated})


def _entries(gateway: Gateway, payload: object) -> list[object]:
    if isinstance(payload, dict):
        if payload.get("success") is False:
            raise gateway_error(gateway, "says that it can not list its models")
        payload = payload.get("data")
    if not isinstance(payload, list):
        raise gateway_error(gateway, "did not answer with a list of models")
    return payload


def _reason(error: ValidationError) -> str:
    """Return the first problem; pydantic's messages and our names do not repeat the payload."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "it"
    return f"{where}: {_REASONS.get(problem['type'], problem['msg'])}"


def _moment(raw: object) -> datetime | None:
    """Read ISO text, text that starts with a date, or seconds or milliseconds since 1970."""
    start = raw[:10] if isinstance(raw, str) and "-" in raw[:10] else None
    for stated in (raw, start):
        try:
            moment = _DATETIME.validate_python(stated)
        except ValidationError:
            continue
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        # Servers say 0 when they do not know.
        return moment.astimezone(UTC) if moment.timestamp() > 0 else None
    return None


def _dollars(raw: object) -> float | None:
    """Return None where nothing is stated, NaN where what is stated is no price."""
    if raw is None or raw == "":
        return None
    try:
        number = float(str(raw))
    except ValueError:
        return math.nan
    return number if 0 <= number <= _HIGHEST_PRICE else math.nan


def _open_dollars(raw: object) -> float | None:
    # OpenRouter says -1 for models whose price depends on where it sends the request.
    return None if raw in ("-1", -1) else _dollars(raw)


def _zenmux_dollars(raw: object) -> float | None:
    """Read a number, or one of several tiers, which may be in a unit that is of no use here."""
    tier = raw if isinstance(raw, dict) else {"value": raw}
    known = tier.get("unit", "perMTokens") == "perMTokens" and tier.get("currency", "USD") == "USD"
    dollars = _dollars(tier.get("value")) if known else math.nan
    return None if dollars is None else dollars / _ZENMUX_TOKENS


_Count = Annotated[int, Field(ge=0, le=2**53)]
_Modality = Annotated[str, Field(pattern=r"^[\w./+-]{1,40}$")]
_Modalities = Annotated[tuple[_Modality, ...], Field(max_length=20)]
_Moment = Annotated[datetime | None, BeforeValidator(_moment)]
_OpenUsd = Annotated[float | None, BeforeValidator(_open_dollars)]
_ZenmuxUsd = Annotated[float | None, BeforeValidator(_zenmux_dollars)]
_MODALITIES = AliasChoices("input_modalities", AliasPath("architecture", "input_modalities"))
_OUTPUT = AliasChoices("max_completion_tokens", AliasPath("top_provider", "max_completion_tokens"))


class _Shape(BaseModel, frozen=True):
    """The fields that the entries of all lists have in common."""

    name: str | None = Field(None, validation_alias=AliasChoices("display_name", "name"))
    created: _Moment = Field(
        None, validation_alias=AliasChoices("publish_time", "created", "created_at")
    )
    input_modalities: _Modalities | None = Field(None, validation_alias=_MODALITIES)
    context_length: _Count | None = None
    max_output_tokens: _Count | None = Field(None, validation_alias=_OUTPUT)
    supported_parameters: Annotated[tuple[str, ...], Field(max_length=200)] | None = None
    supports_streaming: bool | None = None
    visible: bool | None = None


class _OpenEntry(_Shape):
    """An entry of OpenRouter's list; other servers of that dialect send less."""

    id: str
    prompt: _OpenUsd = Field(None, validation_alias=AliasPath("pricing", "prompt"))
    completion: _OpenUsd = Field(None, validation_alias=AliasPath("pricing", "completion"))
    cached: _OpenUsd = Field(None, validation_alias=AliasPath("pricing", "input_cache_read"))
    reasoning: _OpenUsd = Field(None, validation_alias=AliasPath("pricing", "internal_reasoning"))
    request: _OpenUsd = Field(None, validation_alias=AliasPath("pricing", "request"))
    # Sent by our own simulated gateway, whatever kind it is taken for.
    simulated: bool = False
    system_role: bool = True


class _ZenmuxDocumented(_Shape):
    """An entry of ZenMux's documented list, /api/v1/models; the first price is the lowest tier."""

    id: str
    prompt: _ZenmuxUsd = Field(None, validation_alias=AliasPath("pricings", "prompt", 0))
    completion: _ZenmuxUsd = Field(None, validation_alias=AliasPath("pricings", "completion", 0))
    cached: _ZenmuxUsd = Field(None, validation_alias=AliasPath("pricings", "input_cache_read", 0))
    # Stated for models that can search the web, and for no others.
    search_price: object = Field(None, validation_alias=AliasPath("pricings", "web_search", 0))


class _ZenmuxListed(_Shape):
    """An entry of the list behind ZenMux's web pages, which knows the providers."""

    slug: ModelId
    endpoints: Annotated[tuple[object, ...], Field(max_length=200)] = ()


class _ZenmuxEndpoint(_Shape):
    provider_slug: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")]
    prompt: _ZenmuxUsd = Field(None, validation_alias="pricing_prompt")
    completion: _ZenmuxUsd = Field(None, validation_alias="pricing_completion")


@dataclass
class _Reader:
    """The models read from a gateway's list, and warnings about the rest, with keys cut out."""

    gateway: Gateway
    redact: Redact
    models: list[Model] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def label(self, raw: object, number: int) -> str:
        names = [raw.get("slug"), raw.get("id")] if isinstance(raw, dict) else []
        name = next((name for name in names if isinstance(name, str)), "")
        return f"entry '{shown(name, self.redact)}'" if name else f"entry number {number}"

    def read_alone(self, label: str, read: Callable[[object], None], raw: object) -> None:
        try:
            read(raw)
        except ValidationError as error:
            self._warn(f"{label} is left out: {_reason(error)}")

    def read_open(self, raw: object) -> None:
        entry = _OpenEntry.model_validate(raw)
        unnamed = self.gateway.kind in ("openai", "anthropic") and "/" not in entry.id
        model_id = f"{self.gateway.name}/{entry.id}" if unnamed else entry.id
        simulated = entry.simulated or self.gateway.kind == "demo"
        ours = {"simulated": simulated, "system_role": entry.system_role}
        self._add(entry, model_id, request_name=entry.id, **ours)

    def read_zenmux(self, raw: object) -> None:
        if isinstance(raw, dict) and not raw.keys() & {"slug", "endpoints"}:
            entry = _ZenmuxDocumented.model_validate(raw)
            searches = {} if entry.search_price is None else {"web_search": True}
            self._add(entry, entry.id, **searches)
            return
        listed = _ZenmuxListed.model_validate(raw)
        endpoints = listed.endpoints if listed.visible is not False else ()
        for number, endpoint in enumerate(endpoints, start=1):
            label = f"endpoint {number} of {self.label(raw, number)}"
            self.read_alone(label, partial(self._read_endpoint, listed), endpoint)

    def _read_endpoint(self, listed: _ZenmuxListed, raw: object) -> None:
        endpoint = _ZenmuxEndpoint.model_validate(raw)
        if endpoint.visible is not False:
            shared = listed.model_dump(include={"name", "created", "input_modalities"})
            entry, provider = endpoint.model_copy(update=shared), endpoint.provider_slug
            self._add(entry, f"{listed.slug}:{provider}", provider=provider)

    def _add(self, entry: _Shape, model_id: str, **known: object) -> None:
        vendor, _, name = model_id.partition("/")
        # Anthropic's list does not say that all of its models see.
        assumed = ("text", "image") if self.gateway.kind == "anthropic" else ("text",)
        parameters = set(entry.supported_parameters or ("temperature", "response_format"))
        prices = entry.model_dump(include=set(Prices.model_fields), exclude_none=True)
        unusable = [price for price, dollars in prices.items() if math.isnan(dollars)]
        described = {
            "id": model_id,
            "gateway": self.gateway.name,
            "request_name": model_id,
            "vendor": vendor,
            "name": name.removesuffix(f":{known.get('provider')}"),
            "display_name": shown(entry.name or "", self.redact) or model_id,
            "input_modalities": entry.input_modalities or assumed,
            "context_length": entry.context_length or None,
            "max_output_tokens": entry.max_output_tokens or None,
            "prices": prices | dict.fromkeys(unusable),
            "temperature": "temperature" in parameters,
            "json_schema": not parameters.isdisjoint(("response_format", "structured_outputs")),
            "streaming": entry.supports_streaming is not False,
            "web_search": not parameters.isdisjoint(("web_search_options", "web_search")),
            "dialect": self.gateway.own_dialect,
            "created_at": entry.created,
        }
        self.models.append(Model.model_validate(described | known))
        if unusable:
            problem = f"has no usable {' and '.join(unusable)} price, which counts as unknown"
            self._warn(f"entry '{shown(model_id, self.redact)}' {problem}")

    def _warn(self, text: str) -> None:
        self.warnings.append(f"Gateway '{self.gateway.name}': {text}.")

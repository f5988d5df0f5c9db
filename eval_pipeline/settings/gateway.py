"""Settings of a gateway and its models: where they are and how they are asked."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, HttpUrl, JsonValue

from eval_pipeline.records.base import Record
from eval_pipeline.records.model import DialectName, ModelId, Prices


def _an_http_address(url: str) -> str:
    HttpUrl(url)
    return url.rstrip("/")


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Address = Annotated[str, AfterValidator(_an_http_address)]


class RateLimits(Record):
    """The rate limits of a gateway or a model; None means that none is known."""

    requests_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens_per_minute: float | None = Field(default=None, gt=0, allow_inf_nan=False)


def _nothing_of_ours(extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if ours := sorted({"model", "messages", "input", "stream", "stream_options"} & extra.keys()):
        raise ValueError(f"extra must not set {', '.join(ours)}: that is decided elsewhere")
    return extra


Extra = Annotated[dict[str, JsonValue], AfterValidator(_nothing_of_ours)]
"""Further parameters of a request, as its dialect names them."""


class StaticModel(Record):
    """A model written into the settings instead of being asked of the gateway."""

    id: ModelId
    request_name: str | None = None
    provider: str | None = None
    display_name: str | None = None
    input_modalities: tuple[str, ...] = ("text",)
    context_length: int | None = Field(default=None, ge=1)
    max_output_tokens: int | None = Field(default=None, ge=1)
    prices: Prices = Prices()
    system_role: bool = True
    temperature: bool = True
    json_schema: bool = True
    streaming: bool = True
    web_search: bool = False
    dialect: DialectName | None = None


class Override(RateLimits):
    """Corrections of the gateway's list, and parameters of this model's requests."""

    system_role: bool | None = None
    temperature: bool | None = None
    json_schema: bool | None = None
    streaming: bool | None = None
    web_search: bool | None = None
    input_modalities: tuple[str, ...] | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    dialect: DialectName | None = None
    prices: Prices | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    extra: Extra = {}

    def listed(self) -> dict[str, Any]:
        """Return the corrections of the model in the catalog."""
        asked = {"max_tokens", "extra", "requests_per_minute", "tokens_per_minute"}
        return {
            name: value
            for name in type(self).model_fields.keys() - asked
            if (value := getattr(self, name)) is not None
        }


GatewayKind = Literal["demo", "zenmux", "openrouter", "openai", "anthropic"]
KEY_VARIABLES: Mapping[GatewayKind, str] = {
    "zenmux": "ZENMUX_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
ADDRESSES: Mapping[GatewayKind, str] = {
    "zenmux": "https://zenmux.ai/api/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
}
# The addresses of model lists that are not at `/models` below the gateway's address.
MODEL_LISTS: Mapping[GatewayKind, str] = {
    "zenmux": "https://zenmux.ai/api/frontend/model/available/list",
    # Without the limit it lists the first twenty.
    "anthropic": "https://api.anthropic.com/v1/models?limit=1000",
}
# The addresses of dialects that are not below the gateway's address.
DIALECT_ADDRESSES: Mapping[GatewayKind, Mapping[DialectName, str]] = {
    "zenmux": {"messages": "https://zenmux.ai/api/anthropic/v1"},
}


class Gateway(RateLimits):
    """A gateway to models: its address, the variable of its key, and its list of models."""

    name: Name
    kind: GatewayKind
    base_url: Address | None = None
    models_url: Address | None = None
    api_key_variable: str | None = None
    dialect: DialectName | None = None
    dialect_urls: dict[DialectName, Address] = {}
    models: tuple[StaticModel, ...] = ()

    @property
    def routes(self) -> bool:
        """Return whether it passes a model that names no provider to one of several."""
        return self.kind in ("zenmux", "openrouter")

    @property
    def own_dialect(self) -> DialectName:
        """Return the dialect of its models unless they have their own."""
        return self.dialect or ("messages" if self.kind == "anthropic" else "chat_completions")

    def dialect_address(self, dialect: DialectName) -> str | None:
        """Return the address for that dialect; None means the simulated gateway."""
        known = {} if self.base_url else DIALECT_ADDRESSES.get(self.kind, {})
        return self.dialect_urls.get(dialect) or known.get(dialect) or self.address

    @property
    def key_variable(self) -> str | None:
        """Return the key's variable; a custom server gets a public gateway's key only by name."""
        return self.api_key_variable or (None if self.base_url else KEY_VARIABLES.get(self.kind))

    @property
    def address(self) -> str | None:
        """Return its address; None means the simulated gateway, which the pipeline starts."""
        return self.base_url or ADDRESSES.get(self.kind)

    @property
    def needs_key(self) -> bool:
        """Return whether a key is needed, as for public gateways; a custom server may need none."""
        is_public = self.base_url is None and self.kind in ADDRESSES
        return is_public or self.api_key_variable is not None

    @property
    def list_address(self) -> str | None:
        """Return where the models are listed, if not at `/models` below the address."""
        if self.models_url is None and self.base_url is None:
            return MODEL_LISTS.get(self.kind)
        return self.models_url

"""Every setting: eval_pipeline.toml, .env and the environment, read once into a frozen record."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    HttpUrl,
    JsonValue,
    SecretStr,
    ValidationError,
    model_validator,
)

from eval_pipeline.records import ModelId, PlanFilter, Prices, Record

SETTINGS_FILE = "eval_pipeline.toml"
PACKAGE = Path(__file__).parent
SHORTEST_SECRET = 6


class SettingsError(Exception):
    """A wrong setting, in one sentence: where it is, which field, what is allowed."""


def _a_regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"must be a regular expression ({error})") from None
    return pattern


def _an_http_address(url: str) -> str:
    HttpUrl(url)
    return url.rstrip("/")


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Pattern = Annotated[str, AfterValidator(_a_regular_expression)]
Address = Annotated[str, AfterValidator(_an_http_address)]


class Hub(Record):
    """A data set on the Hugging Face hub, pinned to a revision."""

    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    split: Name = "test"
    revision: str = Field(min_length=1)


class Suite(Record):
    """A named set of items: a file (JSONL, CSV, Parquet) or a data set on the hub."""

    name: Name
    kind: Literal["exam"] = "exam"
    path: Path | None = None
    hub: Hub | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.path is None) == (self.hub is None):
            raise ValueError("must have either `path` or `hub`")
        return self


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


class Capabilities(Record):
    """What is known better here than in the gateway's list."""

    system_role: bool | None = None
    temperature: bool | None = None
    json_schema: bool | None = None
    streaming: bool | None = None
    input_modalities: tuple[str, ...] | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)


GatewayKind = Literal["demo", "zenmux", "openrouter", "openai"]
KEY_VARIABLES: Mapping[GatewayKind, str | None] = {
    "demo": None,
    "zenmux": "ZENMUX_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "openai": "OPENAI_API_KEY",
}
ADDRESSES: Mapping[GatewayKind, str | None] = {
    "demo": None,
    "zenmux": "https://zenmux.ai/api/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "openai": "https://api.openai.com/v1",
}
MODEL_LISTS: Mapping[GatewayKind, str | None] = {
    "demo": None,
    "zenmux": "https://zenmux.ai/api/frontend/model/available/list",
    "openrouter": None,
    "openai": None,
}


class Gateway(Record):
    """Where models are asked: an address, the name of the key's variable, a way to list models."""

    name: Name
    kind: GatewayKind
    base_url: Address | None = None
    models_url: Address | None = None
    api_key_variable: str | None = None
    models: tuple[StaticModel, ...] = ()

    @property
    def key_variable(self) -> str | None:
        return self.api_key_variable or KEY_VARIABLES[self.kind]

    @property
    def address(self) -> str | None:
        """None means the simulated gateway, which the pipeline starts by itself."""
        return self.base_url or ADDRESSES[self.kind]

    @property
    def list_address(self) -> str | None:
        """Where the models are listed, if not at `/models` below the address."""
        if self.models_url is None and self.base_url is None:
            return MODEL_LISTS[self.kind]
        return self.models_url


class Selection(Record):
    """Which models are run; the patterns are explained in the README."""

    models: tuple[str, ...] = ()
    exclude_models: tuple[str, ...] = ()
    exclude_providers: tuple[str, ...] = ()


class Plan(PlanFilter):
    """Which items are asked."""

    test_filter: Pattern = ""


class Judge(Record):
    """Who grades the answers."""

    model: ModelId
    num_workers: int = Field(default=20, ge=1)
    max_tokens: int | None = Field(default=4096, ge=1)
    prompt: Path = PACKAGE / "prompts" / "judge.txt"


class Concurrency(Record):
    """Two layers: models at a time, and requests at a time per model."""

    max_concurrent_models: int = Field(default=10, ge=1)
    num_workers: int = Field(default=100, ge=1)


class Budget(Record):
    """Asking stops when this much has been spent; None means no limit."""

    usd_per_run: float | None = Field(default=None, gt=0)


class Requests(Record):
    """How a single request is made and repeated."""

    timeout_s: float = Field(default=600, gt=0)
    attempts: int = Field(default=5, ge=1)
    first_wait_s: float = Field(default=1, ge=0)
    longest_wait_s: float = Field(default=60, ge=0)


class Experiment(Record):
    """A named variation of how models are asked."""

    temperature: float | None = Field(default=0, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    stream: bool = True
    system_prompt: Path = PACKAGE / "prompts" / "answer.txt"
    extra: dict[str, JsonValue] = {}


class Settings(Record):
    """Everything that can be set; frozen, and safe to print (keys stay hidden)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    root: Path
    data_dir: Path = Path("data")
    suites: tuple[Suite, ...] = Field(min_length=1)
    gateways: tuple[Gateway, ...] = Field(min_length=1)
    selection: Selection = Selection()
    overrides: dict[ModelId, Capabilities] = {}
    plan: Plan = Plan()
    judge: Judge
    concurrency: Concurrency = Concurrency()
    budget: Budget = Budget()
    requests: Requests = Requests()
    experiment: Name = "default"
    experiments: dict[Name, Experiment] = {"default": Experiment()}
    keys: dict[str, SecretStr] = {}
    hub_endpoint: Address | None = None

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        if self.experiment not in self.experiments:
            known = ", ".join(sorted(self.experiments))
            raise ValueError(f"experiment: must be one of: {known}; got '{self.experiment}'")
        for field, named in (("suites", self.suites), ("gateways", self.gateways)):
            names = [entry.name for entry in named]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{field}: the name '{twice[0]}' is used twice")
        return self

    @property
    def data(self) -> Path:
        return self.root / self.data_dir

    @property
    def journal(self) -> Path:
        return self.data / "journal"

    @property
    def database(self) -> Path:
        return self.data / "evals.duckdb"

    def path(self, path: Path) -> Path:
        """A path of the settings, which are relative to the settings file."""
        return self.root / path

    def key(self, variable: str | None) -> SecretStr | None:
        return self.keys.get(variable) if variable else None

    def redact(self, text: str) -> str:
        """The text without any of the keys, for everything that a server had a hand in."""
        for variable, key in self.keys.items():
            secret = key.get_secret_value()
            # Placeholders such as "none" or "EMPTY" are no secrets, and are words of their own.
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, f"[{variable}]")
        return text

    def overridden(self, changes: Mapping[str, Any]) -> Self:
        """These settings with some of them changed for one launch; the changes are checked too."""
        values = self.model_dump()
        for name, value in changes.items():
            values[name] = {**values[name], **value} if isinstance(value, dict) else value
        try:
            return type(self).model_validate(values)
        except ValidationError as error:
            raise SettingsError(_explain(error, Path("run config"), {})) from None

    def gateway(self, name: str) -> Gateway:
        for gateway in self.gateways:
            if gateway.name == name:
                return gateway
        raise SettingsError(f"{SETTINGS_FILE}: gateways: no gateway is named '{name}'.")

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Reads the settings file and lets .env and the environment override it."""
        environment = dict(os.environ if environment is None else environment)
        path = Path(environment.get("EVALS_SETTINGS", SETTINGS_FILE)).absolute()
        from_file = {
            name: text for name, text in dotenv_values(path.parent / ".env").items() if text
        }
        env = from_file | environment
        values = _read_toml(path)
        sources = _apply_environment(values, env)
        values |= {"root": path.parent, "keys": _keys(values, env)}
        if endpoint := env.get("HF_ENDPOINT"):
            values["hub_endpoint"] = endpoint
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise SettingsError(_explain(error, path, sources)) from None


# Environment variable -> the setting it overrides. Lists are separated by commas.
VARIABLES: Mapping[str, tuple[str, ...]] = {
    "MODELS": ("selection", "models"),
    "EXCLUDE_MODELS": ("selection", "exclude_models"),
    "EXCLUDE_PROVIDERS": ("selection", "exclude_providers"),
    "TEST_FILTER": ("plan", "test_filter"),
    "TEXT_ONLY": ("plan", "text_only"),
    "MAX_SAMPLES": ("plan", "max_samples"),
    "CATEGORIES": ("plan", "categories"),
    "EVALS_EXPERIMENT": ("experiment",),
    "EVALS_DATA_DIR": ("data_dir",),
    "JUDGE_MODEL": ("judge", "model"),
    "NUM_WORKERS": ("concurrency", "num_workers"),
    "MAX_CONCURRENT_MODELS": ("concurrency", "max_concurrent_models"),
    "BUDGET_USD": ("budget", "usd_per_run"),
}
_LISTS = {"MODELS", "EXCLUDE_MODELS", "EXCLUDE_PROVIDERS", "CATEGORIES"}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise SettingsError(
            f"{path.name}: there is no such file in {path.parent}; run from the project root, "
            "or name the file in EVALS_SETTINGS."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{path.name}: can not be read as TOML: {error}") from None


def _apply_environment(
    values: dict[str, Any], env: Mapping[str, str]
) -> dict[tuple[str, ...], str]:
    """Puts the variables in place and returns which field came from which."""
    sources = {}
    for variable, field in VARIABLES.items():
        text = env.get(variable, "").strip()
        if not text:
            continue
        *tables, last = field
        target = values
        for table in tables:
            target = target.setdefault(table, {})
        if isinstance(target, dict):
            target[last] = _words(text) if variable in _LISTS else text
            sources[field] = variable
    return sources


def _words(text: str) -> list[str]:
    return [word for part in text.split(",") if (word := part.strip())]


def _keys(values: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    """The secrets that the settings name, taken from the environment only."""
    wanted: set[str] = {"HF_TOKEN", *filter(None, KEY_VARIABLES.values())}
    gateways = values.get("gateways", [])
    if isinstance(gateways, list):
        wanted |= {
            str(gateway["api_key_variable"])
            for gateway in gateways
            if isinstance(gateway, dict) and gateway.get("api_key_variable")
        }
    return {name: env[name].strip() for name in sorted(wanted) if env.get(name, "").strip()}


def _explain(error: ValidationError, path: Path, sources: Mapping[tuple[str, ...], str]) -> str:
    """The first problem as a sentence; a value that may be a secret is never repeated."""
    problem = error.errors(include_url=False)[0]
    location = tuple(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    got = problem.get("input")
    shown = f", got {got!r}" if isinstance(got, str | int | float | bool) else ""
    for field, variable in sources.items():
        if location[: len(field)] == field:
            return f"environment variable {variable}: {message}{shown}."
    if not location and message.startswith("experiment:") and ("experiment",) in sources:
        return f"environment variable EVALS_EXPERIMENT: {message.removeprefix('experiment: ')}."
    where = ".".join(location)
    more = f" ({error.error_count() - 1} more wrong)" if error.error_count() > 1 else ""
    return f"{path.name}: {where + ': ' if where else ''}{message}{shown}.{more}"

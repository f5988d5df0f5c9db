"""Every setting: eval_pipeline.toml, .env and the environment, read once into a frozen record."""

import json
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    StrictBool,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from eval_pipeline.coding.records import Isolation
from eval_pipeline.environment import (
    SettingsError,
    apply_environment,
    explain,
    keys,
    read_toml,
    with_dotenv,
)
from eval_pipeline.gateway import KEY_VARIABLES, Address, Extra, Gateway, Name, Override
from eval_pipeline.record import Record
from eval_pipeline.records import Model, ModelId, PlanFilter, SuiteKind

SETTINGS_FILE = "eval_pipeline.toml"
PACKAGE = Path(__file__).parent
SHORTEST_SECRET = 6


def _a_regular_expression(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"must be a regular expression ({error})") from None
    return pattern


Pattern = Annotated[str, AfterValidator(_a_regular_expression)]


class Hub(Record):
    """A data set on the Hugging Face hub, pinned to a revision."""

    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    split: Name = "test"
    revision: str = Field(min_length=1)


class Suite(Record):
    """A named set of items: questions in a file or on the hub, or coding tasks in a folder."""

    name: Name
    kind: SuiteKind = "exam"
    path: Path | None = None
    hub: Hub | None = None
    cluster: Annotated[str, Field(min_length=1)] | None = None
    toolchain: Name | None = None
    guidelines: Path | None = None
    # Of coding tasks, those whose id matches: the suite is made of these.
    only: Pattern = ""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.path is None) == (self.hub is None):
            raise ValueError("must have either `path` or `hub`")
        if self.kind == "coding" and (self.path is None or self.cluster is not None):
            raise ValueError('of kind "coding" has a `path`, and neither `hub` nor `cluster`')
        if self.kind == "exam" and (self.toolchain or self.guidelines or self.only):
            raise ValueError('has `toolchain`, `guidelines` or `only`: they need kind = "coding"')
        return self


class Selection(Record):
    """Which models are run; the patterns are explained in the README."""

    models: tuple[str, ...] = ()
    exclude_models: tuple[str, ...] = ()
    exclude_providers: tuple[str, ...] = ()


class Plan(PlanFilter):
    """Which items are asked (of each suite the first `max_samples`), and how often (`samples`)."""

    test_filter: Pattern = ""
    samples: int = Field(default=1, ge=1)


class Judge(Record):
    """Who grades answers to questions: a model, more beside it, the rules before or instead."""

    model: ModelId | None = None
    also: tuple[ModelId, ...] = ()
    rules: Literal["off", "first", "only"] = "off"
    num_workers: int = Field(default=20, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    prompt: Path = PACKAGE / "prompts" / "judge.txt"

    @field_validator("also")
    @classmethod
    def _named_once(cls, also: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        named = [info.data.get("model"), *also]
        if twice := [name for name in also if named.count(name) > 1]:
            raise ValueError(f"the judge '{twice[0]}' is named twice")
        return also

    @property
    def models(self) -> tuple[str, ...]:
        """The judges that are asked, the first one first; none where the rules judge alone."""
        if self.rules == "only" or self.model is None:
            return ()
        return (self.model, *self.also)


class Reliability(Record):
    """How far judges can be trusted: how much they judge again, and what people say."""

    answers: int = Field(default=50, ge=0)
    repeats: int = Field(default=2, ge=1)
    labels: Path | None = None


class Concurrency(Record):
    """Two layers: models at a time, and requests at a time per model."""

    max_concurrent_models: int = Field(default=10, ge=1)
    num_workers: int = Field(default=100, ge=1)


Usd = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Budget(Record):
    """Asking stops when this much has been spent, judging included; None means no limit."""

    usd_per_run: Usd | None = None
    usd_per_model: Usd | None = None
    usd_per_day: Usd | None = None


class Requests(Record):
    """How a single request is made and repeated."""

    timeout_s: float = Field(default=600, gt=0, allow_inf_nan=False)
    attempts: int = Field(default=5, ge=1)
    attempts_when_limited: int = Field(default=20, ge=1)
    first_wait_s: float = Field(default=1, ge=0, allow_inf_nan=False)
    longest_wait_s: float = Field(default=60, ge=0, allow_inf_nan=False)
    total_s: float = Field(default=3600, gt=0, allow_inf_nan=False)
    stop_after_failures: int = Field(default=100, ge=1)


class Coding(Record):
    """How code is graded: how much of it at once, how far apart, and who reviews it besides."""

    num_workers: int | None = Field(default=None, ge=1)
    memory_mb: int | None = Field(default=None, ge=256)
    isolation: Isolation = "bwrap"
    reviewer: ModelId | None = None


class Experiment(Record):
    """A named variation of how models are asked."""

    temperature: float | None = Field(default=0.0, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    stream: bool = True
    system_prompt: Path = PACKAGE / "prompts" / "answer.txt"
    coding_prompt: Path = PACKAGE / "prompts" / "coding.txt"
    # Those of the suite, none, or a file of one's own.
    guidelines: StrictBool | Path = True
    web_search: bool = False
    extra: Extra = {}

    def with_override(self, override: Override) -> Self:
        """The same for a model with parameters of its own, which win."""
        limit = self.max_tokens if override.max_tokens is None else override.max_tokens
        both = {**self.extra, **override.extra}
        return self.model_copy(update={"max_tokens": limit, "extra": both})


class Settings(Record):
    """Everything that can be set; frozen, and safe to print (keys stay hidden)."""

    root: Path
    data_dir: Path = Path("data")
    suites: tuple[Suite, ...] = Field(min_length=1)
    gateways: tuple[Gateway, ...] = Field(min_length=1)
    selection: Selection = Selection()
    overrides: dict[ModelId, Override] = {}
    plan: Plan = Plan()
    judge: Judge = Judge()
    reliability: Reliability = Reliability()
    coding: Coding = Coding()
    concurrency: Concurrency = Concurrency()
    budget: Budget = Budget()
    requests: Requests = Requests()
    experiment: Name = "default"
    experiments: dict[Name, Experiment] = Field(default={}, validate_default=True)
    keys: dict[str, SecretStr] = {}
    hub_endpoint: Address | None = None

    @field_validator("experiments")
    @classmethod
    def _with_known(cls, experiments: dict[str, Experiment]) -> dict[str, Experiment]:
        """Whoever adds an experiment has not said anything about those that there always are."""
        default = experiments.get("default", Experiment())
        variations = {
            "default": {},
            "no_guidelines": {"guidelines": False},
            "web_search": {"web_search": True},
            "web_search_no_guidelines": {"guidelines": False, "web_search": True},
        }
        known = {name: default.model_copy(update=said) for name, said in variations.items()}
        return {**known, **experiments}

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

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    @property
    def plots(self) -> Path:
        return self.reports / "plots"

    def path(self, path: Path) -> Path:
        """A path of the settings, which are relative to the settings file."""
        return self.root / path

    def key(self, variable: str | None) -> SecretStr | None:
        return self.keys.get(variable) if variable else None

    def redact(self, text: str) -> str:
        """The text without any of the keys, for everything that a server had a hand in."""
        for spelling, variable in self._spelled_keys:
            text = text.replace(spelling, f"[{variable}]")
        return text

    @cached_property
    def _spelled_keys(self) -> list[tuple[str, str]]:
        """Longest first, so that a key which begins with another one goes as a whole."""
        spelled = [
            (spelling, variable)
            for variable, key in self.keys.items()
            # Placeholders such as "none" or "EMPTY" are no secrets, and are words of their own.
            if len(key.get_secret_value()) >= SHORTEST_SECRET
            for spelling in _spellings(key.get_secret_value())
        ]
        return sorted(spelled, key=lambda pair: len(pair[0]), reverse=True)

    def overridden(self, changes: Mapping[str, Any]) -> Self:
        """These settings with some of them changed for one launch; the changes are checked too."""
        values = self.model_dump()
        for name, value in changes.items():
            known = values.get(name)
            both = isinstance(known, dict) and isinstance(value, Mapping)
            values[name] = {**values[name], **value} if both else value
        try:
            return type(self).model_validate(values)
        except ValidationError as error:
            raise SettingsError(explain(error, "run config", {})) from None

    def gateway(self, name: str) -> Gateway:
        for gateway in self.gateways:
            if gateway.name == name:
                return gateway
        raise SettingsError(f"{SETTINGS_FILE}: gateways: no gateway is named '{name}'.")

    def override(self, model: Model) -> Override:
        """What is set for this model; what names the very id wins over all its providers'."""
        found = [self.overrides.get(name) for name in (f"{model.vendor}/{model.name}", model.id)]
        values: dict[str, Any] = {}
        for one in filter(None, found):
            extra = {**values.get("extra", {}), **one.extra}
            values |= {name: getattr(one, name) for name in one.model_fields_set}
            values["extra"] = extra
        return Override(**values)

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Reads the settings file and lets .env and the environment override it."""
        given = dict(os.environ if environment is None else environment)
        path = Path(given.get("EVALS_SETTINGS", SETTINGS_FILE)).absolute()
        env = with_dotenv(given, path.parent)
        values = read_toml(path)
        _refuse_no_sandbox(values, path.name)
        sources = apply_environment(values, env)
        values |= {"root": path.parent, "keys": keys(_key_variables(values), env)}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise SettingsError(explain(error, path.name, sources)) from None


def _refuse_no_sandbox(values: Mapping[str, Any], source: str) -> None:
    """To run unknown code unguarded is said each time, not once and for all."""
    coding = values.get("coding")
    if isinstance(coding, dict) and coding.get("isolation") == "none":
        raise SettingsError(
            f"{source}: coding.isolation: must be bwrap or container; to do without a sandbox, "
            "say so in each launch (--unsafe-no-sandbox)."
        )


def _key_variables(values: Mapping[str, Any]) -> list[str]:
    """Which variables hold keys: those of the gateways' kinds, and those that gateways name."""
    named = {"HF_TOKEN", *filter(None, KEY_VARIABLES.values())}
    gateways = values.get("gateways")
    for gateway in gateways if isinstance(gateways, list) else ():
        if isinstance(gateway, dict) and isinstance(gateway.get("api_key_variable"), str):
            named.add(gateway["api_key_variable"])
    return sorted(named)


def _spellings(secret: str) -> set[str]:
    """A secret as it is, and as JSON and addresses write it."""
    return {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret, safe=""),
    }

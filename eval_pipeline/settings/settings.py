"""Every setting: eval_pipeline.toml, .env and the environment, read once into a frozen record."""

import json
import os
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

from pydantic import Field, HttpUrl, SecretStr, ValidationError, field_validator, model_validator

from eval_pipeline.records.base import Record
from eval_pipeline.records.model import Model, ModelId
from eval_pipeline.settings.gateway import KEY_VARIABLES, Address, Gateway, Name, Override
from eval_pipeline.settings.loading import (
    SettingsError,
    apply_environment,
    explain,
    keys,
    read_toml,
    with_dotenv,
)
from eval_pipeline.settings.sections import (
    Analysis,
    Automation,
    Budget,
    Coding,
    Concurrency,
    Deployment,
    Experiment,
    Judge,
    Plan,
    Reliability,
    Requests,
    Selection,
    Suite,
    Web,
)

SETTINGS_FILE = "eval_pipeline.toml"
SHORTEST_SECRET = 6
# The address that notifications are posted to: who knows it can post, so it is kept like a key.
WEBHOOK = "EVALS_WEBHOOK_URL"
# The token that `evals push` sends to the server.
TOKEN = "EVALS_TOKEN"  # noqa: S105  (the name of a variable)
# The key of the Convex backend for grading: emptied, so never one that Convex itself names.
CONVEX_KEY = "EVALS_CONVEX_ADMIN_KEY"
# Set by `evals --production` for all that it starts: production is meant.
PRODUCTION = "EVALS_PRODUCTION"
DEFAULT, DATA, _BRANCHES = "dev", "data", "refs/heads/"
R = TypeVar("R", bound=Record)


class Settings(Record):
    """Everything that can be set; frozen, and safe to print (keys stay hidden)."""

    root: Path
    data_dir: Path = Path(DATA)
    # The folder for the files that models write, for people to look at.
    output_dir: Path | None = None
    suites: tuple[Suite, ...] = Field(min_length=1)
    gateways: tuple[Gateway, ...] = Field(min_length=1)
    selection: Selection = Selection()
    overrides: dict[ModelId, Override] = {}
    plan: Plan = Plan()
    judge: Judge = Judge()
    reliability: Reliability = Reliability()
    coding: Coding = Coding()
    analysis: Analysis = Analysis()
    concurrency: Concurrency = Concurrency()
    budget: Budget = Budget()
    requests: Requests = Requests()
    automation: Automation = Automation()
    web: Web = Web()
    deployment: Name = DEFAULT
    deployments: dict[Name, Deployment] = {}
    # The format of logs: text for people, or one JSON object per line.
    log: Literal["text", "json"] = "text"
    experiment: Name = "default"
    experiments: dict[Name, Experiment] = Field(default={}, validate_default=True)
    keys: dict[str, SecretStr] = {}
    # True if production is meant; then the branch that CI is on.
    means_production: bool = False
    branch: str | None = None
    hub_endpoint: Address | None = None

    @field_validator("experiments")
    @classmethod
    def _with_known(cls, experiments: dict[str, Experiment]) -> dict[str, Experiment]:
        """Add the experiments that always exist, as far as they are not set."""
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
    def here(self) -> Deployment:
        """Return the deployment of these settings."""
        return self.deployments.get(self.deployment, Deployment())

    @property
    def production(self) -> Deployment | None:
        """Return the production deployment with these results, by this name or another."""
        others = (one for one in self.deployments.values() if self._shares_results_with(one))
        return next((one for one in (self.here, *others) if one.production), None)

    def _shares_results_with(self, other: Deployment) -> bool:
        return self.path(other.data_dir or Path(DATA)).resolve() == self.data.resolve()

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
    def tokens(self) -> Path:
        return self.data / "tokens.json"

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    @property
    def plots(self) -> Path:
        return self.reports / "plots"

    def path(self, path: Path) -> Path:
        """Return a path of the settings, which are relative to the settings file."""
        return self.root / path

    def key(self, variable: str | None) -> SecretStr | None:
        return self.keys.get(variable) if variable else None

    @property
    def webhook(self) -> SecretStr | None:
        """Return the address that notifications are posted to, if there is one."""
        return self.key(WEBHOOK)

    def redact(self, text: str) -> str:
        """Return the text without any of the keys, for everything that servers have touched."""
        for spelling, variable in self._spelled_keys:
            text = text.replace(spelling, f"[{variable}]")
        return text

    def redacted(self, record: R) -> R:
        """Return the record without any of the keys in its texts."""
        return type(record).model_validate_json(self.redact(record.model_dump_json()))

    @cached_property
    def _spelled_keys(self) -> list[tuple[str, str]]:
        """Return each spelling with its variable, longest first: a key may begin with another."""
        spelled = [
            (spelling, variable)
            for variable, key in self.keys.items()
            # Placeholders such as "none" or "EMPTY" are no secrets.
            if len(key.get_secret_value()) >= SHORTEST_SECRET
            for spelling in _spellings(key.get_secret_value())
        ]
        return sorted(spelled, key=lambda pair: len(pair[0]), reverse=True)

    def overridden(self, changes: Mapping[str, Any]) -> Self:
        """Return the settings with checked changes for one launch."""
        values = self.model_dump()
        for name, value in changes.items():
            both = isinstance(values.get(name), dict) and isinstance(value, Mapping)
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
        """Return the model's overrides; those of its exact id win over those of all providers."""
        values: dict[str, Any] = {"extra": {}}
        for name in (model.unpinned_id, model.id):
            said = self.overrides.get(name, Override())
            extra = {**values["extra"], **said.extra}
            values |= {**said.model_dump(exclude_none=True), "extra": extra}
        return Override.model_validate(values)

    @classmethod
    def of_deployment(cls, name: str) -> Self:
        """Return the settings of another deployment."""
        elsewhere = {key: text for key, text in os.environ.items() if key != "EVALS_DATA_DIR"}
        return cls.from_env({**elsewhere, "EVALS_DEPLOYMENT": name})

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the settings file and let .env and the environment override it."""
        given = dict(os.environ if environment is None else environment)
        path = Path(given.get("EVALS_SETTINGS", SETTINGS_FILE)).absolute()
        env = with_dotenv(given, path.parent)
        values = read_toml(path)
        _complete_deployments(values)
        sources = apply_environment(values, env)
        values |= {"root": path.parent, "means_production": bool(env.get(PRODUCTION))}
        values["branch"] = _branch(env)
        try:
            settings = cls.model_validate(values)._deployed(path.name, sources)
        except ValidationError as error:
            raise SettingsError(explain(error, path.name, sources)) from None
        if settings.coding.isolation == "none":  # which is allowed per launch only
            raise SettingsError(
                f"{path.name}: coding.isolation: must be bwrap or container; to do without a "
                "sandbox, say so in each launch (--unsafe-no-sandbox)."
            )
        secrets = keys(settings._key_variables(), env)
        _refuse_no_address(secrets.get(WEBHOOK))
        hidden = {name: SecretStr(secret) for name, secret in secrets.items()}
        return settings.model_copy(update={"keys": hidden})

    def _deployed(self, source: str, sources: Collection[tuple[str, ...]]) -> Self:
        """Let the deployment win over the rest of the file, and the environment over both."""
        if self.deployment not in (DEFAULT, *self.deployments):
            names = ", ".join(sorted({DEFAULT, *self.deployments}))
            raise SettingsError(f"{source}: deployment: must be one of: {names}.")
        here, changes = self.here, dict[str, Any]()
        if here.data_dir is not None and ("data_dir",) not in sources:
            changes["data_dir"] = here.data_dir
        if (budget := here.budget) is not None:
            ours = {one for one in budget.model_fields_set if ("budget", one) not in sources}
            changes["budget"] = self.budget.model_copy(update=budget.model_dump(include=ours))
        if here.gateways is not None:
            known = {gateway.name for gateway in self.gateways}
            if missing := [name for name in here.gateways if name not in known]:
                raise SettingsError(
                    f"{source}: deployments.{self.deployment}.gateways: no gateway is named "
                    f"'{missing[0]}'."
                )
            changes["gateways"] = tuple(one for one in self.gateways if one.name in here.gateways)
        return self.model_copy(update=changes)

    def _key_variables(self) -> list[str]:
        """Return the variables of keys: those of gateways' kinds, and those that gateways name."""
        known = {"HF_TOKEN", WEBHOOK, TOKEN, CONVEX_KEY, *KEY_VARIABLES.values()}
        named = {one.api_key_variable for one in self.gateways if one.api_key_variable}
        return sorted(known | named)


def _complete_deployments(values: dict[str, Any]) -> None:
    """Write the folder of results into each deployment, also if the top of the file has it.

    So it is known which deployment results belong to, by whatever name and variables they are used.
    """
    deployments = values.get("deployments")
    for said in deployments.values() if isinstance(deployments, dict) else ():
        if isinstance(said, dict):
            said.setdefault("data_dir", values.get("data_dir", DATA))


def _branch(env: Mapping[str, str]) -> str | None:
    """Return the branch whose code CI runs, if this is CI."""
    # For pull_request_target GitHub names the target branch, although the code is another.
    is_foreign = env.get("GITHUB_EVENT_NAME") == "pull_request_target"
    reference = env.get("GITHUB_REF", "")
    if env.get("GITHUB_ACTIONS") != "true" or is_foreign or not reference.startswith(_BRANCHES):
        return None
    return reference.removeprefix(_BRANCHES)


def _refuse_no_address(webhook: str | None) -> None:
    try:
        HttpUrl(webhook or "https://nowhere")
    except ValidationError:
        raise SettingsError(
            f"environment variable {WEBHOOK}: must be an address that begins with https:// "
            "(or http://)."
        ) from None


def _spellings(secret: str) -> set[str]:
    """Return a secret as it is, and as JSON and addresses write it."""
    return {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret, safe=""),
    }

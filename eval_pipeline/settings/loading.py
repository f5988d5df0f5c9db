"""The settings file, .env and the environment as plain values, and errors in one sentence."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic import ValidationError

from eval_pipeline.errors import MendableError

# Environment variable -> the setting it overrides. Lists are separated by commas.
VARIABLES: Mapping[str, tuple[str, ...]] = {
    "MODELS": ("selection", "models"),
    "EXCLUDE_MODELS": ("selection", "exclude_models"),
    "EXCLUDE_PROVIDERS": ("selection", "exclude_providers"),
    "TEST_FILTER": ("plan", "test_filter"),
    "TEXT_ONLY": ("plan", "text_only"),
    "MAX_SAMPLES": ("plan", "max_samples"),
    "SAMPLES": ("plan", "samples"),
    "SUITES": ("plan", "suites"),
    "CATEGORIES": ("plan", "categories"),
    "EVALS_DEPLOYMENT": ("deployment",),
    "EVALS_EXPERIMENT": ("experiment",),
    "EVALS_DATA_DIR": ("data_dir",),
    "EVALS_LOG": ("log",),
    "OUTPUT_TEMPDIR": ("output_dir",),
    "JUDGE_MODEL": ("judge", "model"),
    "NUM_WORKERS": ("concurrency", "num_workers"),
    "MAX_CONCURRENT_MODELS": ("concurrency", "max_concurrent_models"),
    "BUDGET_USD": ("budget", "usd_per_run"),
    "BUDGET_USD_PER_MODEL": ("budget", "usd_per_model"),
    "BUDGET_USD_PER_DAY": ("budget", "usd_per_day"),
    "HF_ENDPOINT": ("hub_endpoint",),
}
_LISTS = {"MODELS", "EXCLUDE_MODELS", "EXCLUDE_PROVIDERS", "SUITES", "CATEGORIES"}
_FIELD_NAME = re.compile(r"[a-z][a-z_]{0,30}|\d{1,4}")


class SettingsError(MendableError):
    """A wrong setting, in one sentence: where it is, which field, what is allowed."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return the settings file's values; keys do not belong there."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise SettingsError(
            f"{path.name}: there is no such file in {path.parent}; run from the project root, "
            "or name the file in EVALS_SETTINGS."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{path.name}: can not be read as TOML: {error}") from None
    if "keys" in values:
        raise SettingsError(f"{path.name}: keys: belong into .env or into the environment.")
    return values


def with_dotenv(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment, completed from the .env file."""
    from_file = dotenv_values(folder / ".env")
    return {name: text for name, text in from_file.items() if text} | dict(environment)


def apply_environment(values: dict[str, Any], env: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Put the variables in place and return which field came from which."""
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
            words = [word for part in text.split(",") if (word := part.strip())]
            target[last] = words if variable in _LISTS else text
            sources[field] = variable
    return sources


def keys(variables: Iterable[str], env: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets in these variables; refuse one that no HTTP header can carry, unseen."""
    found = {name: env[name].strip() for name in variables if env.get(name, "").strip()}
    for name, secret in found.items():
        if not secret.isascii() or not secret.isprintable():
            raise SettingsError(
                f"environment variable {name}: must be one line of plain ASCII characters."
            )
    return found


def explain(error: ValidationError, source: str, sources: Mapping[tuple[str, ...], str]) -> str:
    """Return the first problem as a sentence, without any text: it may be a misplaced key."""
    problems = error.errors(include_url=False)
    problem = problems[0]
    location = tuple(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = "there is no such setting; those there are stand in eval_pipeline.toml and README"
    got = problem.get("input")
    for field, variable in sources.items():
        if location[: len(field)] == field:
            return f"environment variable {variable}: {message}, got {got!r}."
    if not location and message.startswith("experiment:") and ("experiment",) in sources:
        return f"environment variable EVALS_EXPERIMENT: {message.removeprefix('experiment: ')}."
    shown = f", got {got!r}" if isinstance(got, int | float | bool) else ""
    where = ".".join(part if _FIELD_NAME.fullmatch(part) else "…" for part in location)
    # An entry that does not fit is also counted as missing from its list.
    others = [one for one in problems[1:] if one["type"] != "too_short"]
    more = f" ({len(others)} more wrong)" if others else ""
    return f"{source}: {where + ': ' if where else ''}{message}{shown}.{more}"

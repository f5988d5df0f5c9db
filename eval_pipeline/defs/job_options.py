"""What can be said of any job in a word: what it may cost, and that all is to be done anew."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from eval_pipeline.runs import Mode, RunError

Path = tuple[str, ...]
Config = Mapping[str, Any]
PAID = ("predictions", "judged", "run_reports")
"""Whatever asks models."""
ALL = "every_model"
FIXES = "fix_evaluation"
"""The job that opens no new run."""


def stages_of(config: Config) -> dict[str, Path]:
    """Where in a job's config each of its stages that ask models is set."""
    return dict(_found(config))


def with_options(
    job: str, config: Config, stages: Mapping[str, Path], *, budget_usd: float | None, fresh: bool
) -> dict[str, Any]:
    """The config with these options set in all stages that they are about."""
    changed: dict[str, Any] = deepcopy(dict(config))
    if (budget_usd is not None or fresh) and not stages:
        raise RunError(f"{job} asks no model: leave out --budget and --fresh.")
    if fresh and job == FIXES:
        raise RunError(f"{job} opens no new run. To ask all anew: evals job evaluate_all --fresh")
    if budget_usd is not None:
        for path in stages.values():
            _at(changed, path)["budget_usd"] = budget_usd
    if fresh:
        # What is asked anew is judged anyway.
        first = next(name for name in PAID if name in stages)
        anew = {"fresh": True} if first == "run_reports" else {"mode": Mode.FRESH.name}
        _at(changed, stages[first]).update(anew)
    return changed


def _found(config: Config) -> Iterator[tuple[str, Path]]:
    for name in config.get("ops", {}):
        if name == ALL:
            yield from ((one, ("ops", ALL, "config", one)) for one in PAID[:2])
        elif name in PAID:
            yield name, ("ops", name, "config")


def _at(config: dict[str, Any], path: Path) -> dict[str, Any]:
    """That part of it, made if it is not there."""
    for name in path:
        if not isinstance(part := config.setdefault(name, {}), dict):
            raise RunError(f"The config is wrong: {name} must be an object.")
        config = part
    return config

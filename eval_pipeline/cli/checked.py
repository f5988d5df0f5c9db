"""What can be wrong with options of a launch: told before Dagster is loaded, which takes seconds.

The rules are those of the settings that the options stand for.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import typer


def a_filter(pattern: str | None) -> str | None:
    """A regular expression."""
    from eval_pipeline.options import Plan

    return pattern if pattern is None else _allowed(Plan, "test_filter", pattern)


def a_budget(usd: float | None) -> float | None:
    """An amount of money that can be reached."""
    from eval_pipeline.options import Budget

    return usd if usd is None else _allowed(Budget, "usd_per_run", usd)


def an_experiment(name: str | None) -> str | None:
    """One of the settings."""
    from eval_pipeline.settings import Settings

    if name is not None:
        _known("experiment", [name], Settings.from_env().experiments.keys())
    return name


def some_suites(names: list[str] | None) -> list[str] | None:
    """Some of the settings."""
    from eval_pipeline.settings import Settings

    if names:
        _known("suite", names, [suite.name for suite in Settings.from_env().suites])
    return names


def refuse_contradictions(
    chosen: Mapping[str, Any], *, resume: str | None, fresh: bool, failed: bool
) -> None:
    """Refuses wrong settings, and options of `evals run` that do not go together."""
    from eval_pipeline.runs import RunError
    from eval_pipeline.settings import Settings

    Settings.from_env()
    if fresh and failed:
        raise RunError("--failed asks anew already: leave out --fresh.")
    if resume is not None and any([*chosen.values(), fresh, failed]):
        raise RunError(
            "--resume goes on with a run as it was begun: leave out what chooses models, items "
            "or the experiment."
        )


def _allowed(table: type[Any], field: str, value: Any) -> Any:
    from pydantic import ValidationError

    try:
        return getattr(table(**{field: value}), field)
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise typer.BadParameter(f"{message}.") from None


def _known(noun: str, names: Iterable[str], known: Collection[str]) -> None:
    from eval_pipeline.closest import unknown
    from eval_pipeline.untrusted import printable

    for name in names:
        if name not in known:
            raise typer.BadParameter(printable(unknown(noun, name, sorted(known))))

"""Options that commands share, their validation, and what the Tab key completes.

A shell calls the completions while somebody types: they ask no gateway, start nothing, print
nothing, and complete nothing where something is wrong or there is no project.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import redirect_stderr
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval_pipeline.cli.project import read_settings
from eval_pipeline.errors import RunError
from eval_pipeline.text import printable, unknown

if TYPE_CHECKING:  # imported late: `evals --help` does without this
    from eval_pipeline.settings.settings import Settings

HARMLESS = re.compile(r"\w[\w./:@+~, -]*")
"""Names that may be completed: shells evaluate them, and gateways and data files chose them."""


def _completion(known: "Callable[[Settings], Iterable[str]]") -> Callable[[str], list[str]]:
    """Return what completes one of the names that are known to the project."""

    def complete(incomplete: str) -> list[str]:
        try:
            with redirect_stderr(StringIO()):
                names = list(known(read_settings()))
        except Exception:  # noqa: BLE001  (a key press is no place for an error)
            return []
        fitting = (one for one in names if one.startswith(incomplete) and HARMLESS.fullmatch(one))
        # Only bash inserts a completion as it is, so its spaces have to be escaped here.
        in_bash = os.environ.get("_EVALS_COMPLETE") == "complete_bash"
        return [name.replace(" ", "\\ ") if in_bash else name for name in fitting]

    return complete


models = _completion(lambda settings: _names(settings, "models"))
suites = _completion(lambda settings: [suite.name for suite in settings.suites])
categories = _completion(lambda settings: _names(settings, "categories"))
experiments = _completion(lambda settings: settings.experiments)
runs = _completion(lambda settings: ["latest", *_names(settings, "runs")])


def items(context: typer.Context, incomplete: str) -> list[str]:
    """Complete an item of the run that the command names before."""
    run = str(context.params.get("run"))
    return _completion(lambda settings: _names(settings, "items", run))(incomplete)


def classifications(incomplete: str) -> list[str]:
    """Complete a class of failures."""
    from eval_pipeline.records.diagnosis import Classification

    return [name for name in Classification if name.startswith(incomplete.upper())]


def _validation(table: str, field: str) -> Callable[[Any], Any]:
    """Return what refuses a value that the settings would refuse in that field."""

    def validate(value: Any) -> Any:
        from pydantic import ValidationError

        from eval_pipeline.settings import sections

        if value is None:
            return None
        try:
            return getattr(getattr(sections, table)(**{field: value}), field)
        except ValidationError as error:
            message = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise typer.BadParameter(f"{message}.") from None

    return validate


validate_filter = _validation("Plan", "test_filter")
validate_budget = _validation("Budget", "usd_per_run")


def validate_experiment(name: str | None) -> str | None:
    """Return the name if the settings have such an experiment."""
    if name is not None:
        _require_known("experiment", [name], read_settings().experiments)
    return name


def validate_suites(names: list[str] | None) -> list[str] | None:
    """Return the names if the settings have such suites."""
    if names:
        _require_known("suite", names, [suite.name for suite in read_settings().suites])
    return names


def refuse_contradictions(
    chosen: Mapping[str, Any], *, resume: str | None, fresh: bool, failed: bool
) -> None:
    """Refuse wrong settings, and options of `evals run` that exclude each other."""
    read_settings()
    if fresh and failed:
        raise RunError("--failed asks anew already: leave out --fresh.")
    if resume is not None and any([*chosen.values(), fresh, failed]):
        raise RunError(
            "--resume goes on with a run as it was begun: leave out what chooses models, items "
            "or the experiment."
        )


def _require_known(noun: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise typer.BadParameter(printable(unknown(noun, name, sorted(known))))


def _names(settings: "Settings", kind: str, run: str | None = None) -> list[str]:
    """Return names from the file as it is: to publish may take longer than a key press may."""
    import duckdb

    from eval_pipeline.results.queries import query

    given = None  # for the first parameter, DuckDB loads pandas, which takes longer than the rest
    with duckdb.connect(str(settings.database), read_only=True) as db:
        if run is not None:
            from eval_pipeline.results.runs import find_runs

            given = {"runs": [found.run_id for found in find_runs(db, run)]}
        return [name for (name,) in query(db, f"names/{kind}", given).fetchall()]


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="The first characters of its id, latest, or model@RUN.",
        autocompletion=runs,
    ),
]
RunOrLatest = Annotated[
    str | None, typer.Argument(help="A run; by default the latest ones.", autocompletion=runs)
]
RunOrLatestOfEach = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]", help="A run; by default the latest one of each model.", autocompletion=runs
    ),
]
Item = Annotated[str, typer.Argument(help="An item, or suite/item.", autocompletion=items)]
Sample = Annotated[
    int | None, typer.Option(min=0, help="Which sample, if it was asked several times.")
]
OnlyModels = Annotated[
    list[str] | None, typer.Option("-m", "--model", help="Only of this model; may be given again.")
]


def budget_option(help: str, panel: str | None = None) -> Any:  # noqa: A002  (as typer calls it)
    """Return the option of an amount that stops a launch."""
    return typer.Option(metavar="USD", help=help, callback=validate_budget, rich_help_panel=panel)


def no_sandbox_option(panel: str | None = None) -> Any:
    """Return the option that switches the sandbox off."""
    return typer.Option(
        "--unsafe-no-sandbox",
        help="Run unknown code with no sandbox at all: it can do whatever you can.",
        rich_help_panel=panel,
    )


RUN_BUDGET = "Stop when the run has cost so much."
Budget = Annotated[float | None, budget_option(RUN_BUDGET)]
NoSandbox = Annotated[bool, no_sandbox_option()]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether I mean it.")]

"""The `evals` command: argument parsing; each command is a few lines over what Dagster uses."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console

from eval_pipeline import cli_coding
from eval_pipeline.benchmark import BenchmarkError, load_benchmark, mint
from eval_pipeline.coding.sandbox.sandbox import SandboxError
from eval_pipeline.coding.scaffold import ScaffoldError
from eval_pipeline.coding.toolchains.toolchain import ToolchainError
from eval_pipeline.coding.validating import TasksError
from eval_pipeline.due import for_people, summed_up
from eval_pipeline.environment import SettingsError
from eval_pipeline.exam.dataset import DatasetError
from eval_pipeline.journal import Journal, JournalError
from eval_pipeline.providers.demo.faults import Faults
from eval_pipeline.providers.demo.server import serve
from eval_pipeline.providers.model_lists import CatalogError
from eval_pipeline.queries import query
from eval_pipeline.records import now
from eval_pipeline.reporting import (
    comparison_lines,
    differences_table,
    due_table,
    leaderboard_tables,
    schema_page,
    steps_table,
    versions_table,
)
from eval_pipeline.runs import Mode, RunError
from eval_pipeline.settings import Settings
from eval_pipeline.warehouse import Warehouse, WarehouseError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
benchmark = typer.Typer(no_args_is_help=True, help="What is measured, version by version.")
app.add_typer(benchmark, name="benchmark")
app.add_typer(cli_coding.toolchains, name="toolchain")
app.command("new")(cli_coding.new)
app.command("validate-answers")(cli_coding.validate_answers)
app.command("ablate")(cli_coding.ablate)
console = Console()
MINT = "evals benchmark mint"
UNDERSTOOD = (
    BenchmarkError,
    SettingsError,
    DatasetError,
    CatalogError,
    JournalError,
    RunError,
    WarehouseError,
    SandboxError,
    ScaffoldError,
    TasksError,
    ToolchainError,
)


def main() -> None:
    """Runs the command; what a user can mend is said in a sentence, not in a stack trace."""
    try:
        app()
    except UNDERSTOOD as error:
        typer.echo(str(error), err=True)
        sys.exit(2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"{where}{error.strerror or error}", err=True)
        sys.exit(2)


@app.command()
def run(
    *,
    fresh: Annotated[bool, typer.Option(help="Ask everything anew, in new runs.")] = False,
    unsafe_no_sandbox: Annotated[bool, cli_coding.NO_SANDBOX] = False,
) -> None:
    """Evaluate every selected model: ask what is missing or failed, judge, compute."""
    # Loading Dagster takes seconds that the other commands do without.
    from eval_pipeline.defs.launch import evaluate  # noqa: PLC0415

    cli_coding.show_log()
    with cli_coding.ends_in_order():
        settings = cli_coding.read_settings(unsafe_no_sandbox=unsafe_no_sandbox)
        cli_coding.end_with(evaluate(settings, Mode.FRESH if fresh else Mode.FIX))


@app.command()
def job(
    name: Annotated[
        str | None, typer.Argument(help="Which one; without a name, all are listed.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("-m", "--model", help="Of evaluate: the model, its partition.")
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="Run config as JSON, instead of what the settings say.")
    ] = None,
) -> None:
    """Run one of Dagster's jobs, with the same history as in the UI."""
    from eval_pipeline.definitions import find_job, named_jobs  # noqa: PLC0415
    from eval_pipeline.defs.launch import dagster_instance, run_job  # noqa: PLC0415

    settings = Settings.from_env()
    if name is None:
        for known in named_jobs(settings).values():
            _say(f"{known.name}: {known.description}")
        return
    cli_coding.show_log()
    chosen = find_job(settings, name)
    with cli_coding.ends_in_order(), dagster_instance(settings) as instance:
        cli_coding.end_with(run_job(chosen, instance, partition=model, config=config))


@app.command()
def due() -> None:
    """Print which models are due to be evaluated again, and why or why not."""
    from eval_pipeline.defs.launch import dagster_instance  # noqa: PLC0415
    from eval_pipeline.defs.schedules import NOBODY, decide_all  # noqa: PLC0415

    settings = Settings.from_env()
    with dagster_instance(settings) as instance:
        decisions = decide_all(settings, instance, now())
    if decisions:
        console.print(due_table(for_people(decisions)))
    _say(summed_up(decisions) if decisions else NOBODY)


@app.command()
def leaderboard() -> None:
    """Print the leaderboard, and which runs are not on it."""
    with _warehouse().reading() as db:
        rows = query(db, "summaries/leaderboard").df()
        if rows.empty:
            _say("No run of the published benchmark version is complete yet: evals run")
        else:
            console.print(*leaderboard_tables(rows))
        if not (steps := query(db, "summaries/steps").df()).empty:
            console.print(steps_table(steps))
        for line in query(db, "summaries/left_out").fetchall():
            _say("Not on it: {} ({}, run {}): {}".format(*line))
        for runs, version in query(db, "summaries/draft").fetchall():
            _say(f"Not on it: runs of the draft {version}: {runs}. To publish it: {MINT}")


@app.command()
def compare(
    a: Annotated[str, typer.Argument(help="A model on the leaderboard, a run, or model@run.")],
    b: Annotated[str, typer.Argument(help="The other one.")],
    experiment: Annotated[
        str | None, typer.Option("-e", "--experiment", help="Of models: under which experiment.")
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Whose verdicts count.")] = None,
    items: Annotated[int, typer.Option(min=0, help="How many differing items to list.")] = 20,
) -> None:
    """Compare two models or runs item by item: who is better, and is that more than chance?"""
    from eval_pipeline.side_by_side import compare_sides  # noqa: PLC0415  (it loads numpy)

    settings = Settings.from_env()
    with _warehouse().reading() as db:
        experiment = experiment or settings.experiment
        found = compare_sides(db, a, b, experiment=experiment, judge=judge)
    for line in comparison_lines(found):
        _say(line)
    if found.differences and items:
        console.print(differences_table(found, items))


@benchmark.command("mint")
def mint_version(
    name: Annotated[str | None, typer.Argument(help="Its name; by default v1, v2, …")] = None,
) -> None:
    """Publish the benchmark as it is now: the leaderboard starts anew, nothing is run."""
    settings, warehouse = Settings.from_env(), _warehouse()
    version = mint(warehouse.journal, settings, name)
    warehouse.publish()
    items = sum(suite.items for suite in version.suites)
    _say(
        f"{version.minted_as} is published: version {version.benchmark_version}, {items} items. "
        "Runs of other versions are kept, and no longer on the leaderboard."
    )


@benchmark.command("list")
def list_versions() -> None:
    """Every version with its runs; the published one is what the leaderboard shows."""
    with _warehouse().reading() as db:
        console.print(versions_table(query(db, "summaries/versions").df()))


@app.command()
def rebuild() -> None:
    """Build the DuckDB file anew from the journal; no model is asked anything."""
    warehouse = _warehouse()
    warehouse.publish(force=True)
    console.print(f"{warehouse.path} is built from {warehouse.journal.root}.")


@app.command()
def schema() -> None:
    """Print the description of every table and column, as in docs/schema.md."""
    typer.echo(schema_page(), nl=False)


@app.command()
def demo_server(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one.")
    ] = 8377,
    faults: Annotated[
        Path | None, typer.Option(help='A JSON file of faults to make, such as {"latency_s": 0.2}.')
    ] = None,
) -> None:
    """Serve the SIMULATED models on loopback until interrupted, well behaved or not."""
    items = tuple(load_benchmark(Settings.from_env()).items.values())
    serve(items, faults=_read_faults(faults) if faults else Faults(), port=port)


def _say(text: str) -> None:
    """Prints it as it is: what looks like markup may be part of somebody's name."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _read_faults(path: Path) -> Faults:
    try:
        return Faults.model_validate_json(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} can not be read: {error.strerror}.") from None
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"]))
        raise SettingsError(f"{path}: {field + ': ' if field else ''}{problem['msg']}.") from None


def _warehouse() -> Warehouse:
    settings = Settings.from_env()
    return Warehouse(settings.database, Journal(settings.journal))

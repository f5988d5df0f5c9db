"""The `evals` commands about coding tasks; each is a few lines over what the stages use."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eval_pipeline.coding.dataset import load_tasks
from eval_pipeline.coding.judge import CodeJudge
from eval_pipeline.coding.records import CodingTask
from eval_pipeline.coding.scaffold import create
from eval_pipeline.coding.toolchains.registry import TOOLCHAINS, home_of, prepare, prune, toolchain
from eval_pipeline.coding.validating import Validated, changed_tasks, chosen, validate
from eval_pipeline.environment import SettingsError
from eval_pipeline.journal import Journal
from eval_pipeline.options import Suite
from eval_pipeline.records import now
from eval_pipeline.running import run_async
from eval_pipeline.settings import Settings
from eval_pipeline.stages.workshop import Workshop
from eval_pipeline.warehouse import Warehouse

if TYPE_CHECKING:
    from eval_pipeline.coding.ablation import Ablation

console = Console()
_DID = {None: "nobody can tell", 1.0: "passes", 0.0: "fails"}
toolchains = typer.Typer(no_args_is_help=True, help="The tools that code is checked with.")
NO_SANDBOX = typer.Option(
    "--unsafe-no-sandbox",
    help="Run unknown code with no sandbox at all: it can do whatever you can.",
)


@toolchains.command("prepare")
def prepare_toolchains(
    names: Annotated[list[str] | None, typer.Argument(help="Which; by default all.")] = None,
) -> None:
    """Fetch and build what code is checked with, once; afterwards no network is needed."""
    settings = Settings.from_env()
    for name in names or sorted(TOOLCHAINS):
        tools = toolchain(name)
        home = prepare(tools, settings.data, typer.echo)
        older = prune(tools, settings.data)
        removed = f"; earlier versions removed: {older}" if older else ""
        typer.echo(f"{name} is ready ({home.name}){removed}.")


@toolchains.command("list")
def list_toolchains() -> None:
    """Every toolchain with its version, and whether it is prepared."""
    settings = Settings.from_env()
    table = Table("toolchain", "version", "prepared", "steps")
    for name, tools in sorted(TOOLCHAINS.items()):
        ready = "yes" if tools.is_prepared(home_of(tools, settings.data)) else "no"
        table.add_row(name, tools.version, ready, " ".join(tools.steps))
    console.print(table)


def new(
    category: Annotated[str, typer.Argument(help="Such as parsing; a new one gets a number.")],
    name: Annotated[str, typer.Argument(help="Such as iso-weeks.")],
    tools: Annotated[
        str | None, typer.Option("--toolchain", help="By default that of the suite.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Which suite, if there are several.")] = None,
) -> None:
    """Begin a new coding task: a folder with an example to be replaced."""
    settings = Settings.from_env()
    (found,) = _coding_suites(settings, suite, only_one=True)
    root = settings.path(found.path) if found.path else settings.root
    folder = create(root, category, name, tools or found.toolchain or "python")
    typer.echo(f"{folder} is there. Change it, then: evals validate-answers -f {folder.name}")


def validate_answers(
    pattern: Annotated[str, typer.Option("-f", "--filter", help="Only ids that match.")] = "",
    since: Annotated[
        str | None, typer.Option("--changed", help="Only tasks changed since this commit.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Which suite; by default all.")] = None,
    *,
    unsafe_no_sandbox: Annotated[bool, NO_SANDBOX] = False,
) -> None:
    """Check the graders: every reference answer must pass, every wrong one must fail."""
    settings = read_settings(unsafe_no_sandbox=unsafe_no_sandbox)
    tasks = [
        task
        for one in _with_all_tasks(_coding_suites(settings, suite))
        for task in chosen(load_tasks(one, settings), pattern, _changed(one, settings, since))
    ]
    if not tasks:
        typer.echo("No task is meant, so none was validated.")
        return
    results = run_async(_validated(tasks, settings))
    console.print(_table(results))
    wrong = [result for result in results if not result.is_right]
    typer.echo(f"Tasks: {len(tasks)}. Answers: {len(results)}, graded wrongly: {len(wrong)}.")
    sys.exit(1 if wrong else 0)


def ablate(
    tools: Annotated[str, typer.Option("--toolchain", help="Whose guidelines.")] = "python",
    pattern: Annotated[str, typer.Option("-f", "--filter", help="Only ids that match.")] = "",
    sections: Annotated[
        list[str] | None, typer.Option("--sections", help="Only this section; may be repeated.")
    ] = None,
    margin: Annotated[
        float, typer.Option(min=0, max=100, help="A loss of so many points does not matter.")
    ] = 2.0,
    suite: Annotated[str | None, typer.Option(help="Which suite, if there are several.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be asked.")] = False,
    unsafe_no_sandbox: Annotated[bool, NO_SANDBOX] = False,
) -> None:
    """Find out what each section of the guidelines is worth: models are asked without it."""
    # These load numpy and Dagster, which the other commands do without.
    from eval_pipeline.coding import ablation_report as shown  # noqa: PLC0415
    from eval_pipeline.coding.ablation import (  # noqa: PLC0415
        Wanted,
        plan_ablation,
        selected_models,
    )

    settings = read_settings(unsafe_no_sandbox=unsafe_no_sandbox)
    (found,) = _coding_suites(settings, suite, only_one=True)
    wanted = Wanted(toolchain(tools).name, pattern, tuple(sections or ()))
    planned = plan_ablation(settings, found, wanted, run_async(selected_models(settings)))
    console.print(shown.plan_table(planned))
    typer.echo(shown.requests_line(planned))
    if not dry_run:
        _ablated(planned, settings, margin / 100)


def _ablated(planned: "Ablation", settings: Settings, margin: float) -> None:
    """Asks, and tells what came of it, also if some of it failed."""
    from eval_pipeline.coding.ablation_effects import measure  # noqa: PLC0415
    from eval_pipeline.coding.ablation_report import AblationReport  # noqa: PLC0415
    from eval_pipeline.defs.launch import evaluate  # noqa: PLC0415

    show_log()
    with ends_in_order():
        failures = planned.run(evaluate, typer.echo)
    with Warehouse(settings.database, Journal(settings.journal)).reading() as db:
        report = AblationReport(planned, measure(db, planned), margin, failures)
    path = settings.reports / f"ablation_{planned.toolchain}.md"
    report.write(path, now())
    console.print(report.table())
    for line in report.remarks():
        console.print(Text(line))
    typer.echo(f"The report is in {path.relative_to(settings.root)}.")
    end_with(failures)


@contextmanager
def ends_in_order() -> Iterator[None]:
    """Interrupted, it says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("Interrupted. What was answered is kept: the same command goes on.", err=True)
        sys.exit(130)


def end_with(failures: Sequence[str]) -> None:
    """Tells what went wrong, if anything did, and ends with 1."""
    if failures:
        typer.echo("\n".join(failures), err=True)
        sys.exit(1)


def read_settings(*, unsafe_no_sandbox: bool) -> Settings:
    """The settings, and that there is to be no sandbox: only a launch itself can say so."""
    settings = Settings.from_env()
    if unsafe_no_sandbox:
        return settings.overridden({"coding": {"isolation": "none"}})
    return settings


def show_log() -> None:
    """What the stages say, on the terminal too and not in Dagster's log alone."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.getLogger("eval_pipeline").addHandler(handler)
    logging.getLogger("eval_pipeline").setLevel(logging.INFO)


async def _validated(tasks: Sequence[CodingTask], settings: Settings) -> list[Validated]:
    # Fresh, for whoever asks whether graders are right wants them to be run.
    judge: CodeJudge = await Workshop(settings.coding, settings.data, fresh=True).open(tasks)
    found = []
    async for result in validate(tasks, judge):
        found.append(result)
        if console.is_terminal or not result.is_right:
            typer.echo(_line(result))
    return sorted(found, key=lambda one: (one.task.suite, one.task.id, not one.must_pass))


def _line(result: Validated) -> str:
    """One answer with what became of it."""
    did = _DID[result.graded.score]
    right = "" if result.is_right else ", but must " + ("pass" if result.must_pass else "fail")
    return f"{result.task.id} {result.answer}: {did}{right}. {result.graded.reason}"


def _table(results: Sequence[Validated]) -> Table:
    """One row per task: what became of the reference, and of how many wrong answers."""
    table = Table("task", "reference", "tests", "wrong answers fail", "s")
    for _, group in groupby(results, key=lambda one: (one.task.suite, one.task.id)):
        reference, *wrong = group
        failing = sum(one.is_right for one in wrong)
        seconds = sum(step.seconds for one in (reference, *wrong) for step in one.graded.code.steps)
        table.add_row(
            reference.task.id,
            _coloured(_DID[reference.graded.score], good=reference.is_right),
            str(len(reference.graded.code.tests)),
            _coloured(f"{failing} of {len(wrong)}", good=failing == len(wrong)),
            f"{seconds:.1f}",
        )
    return table


def _coloured(text: str, *, good: bool) -> Text:
    return Text(text, style="" if good else "bold red")


def _coding_suites(
    settings: Settings, name: str | None, *, only_one: bool = False
) -> Sequence[Suite]:
    coding = [suite for suite in settings.suites if suite.kind == "coding"]
    found = [suite for suite in coding if name in (None, suite.name)]
    if not found or (only_one and len(found) > 1):
        names = ", ".join(suite.name for suite in coding) or "none"
        raise SettingsError(f"Name a suite of coding tasks with --suite; there are: {names}.")
    return found


def _with_all_tasks(suites: Sequence[Suite]) -> list[Suite]:
    """Whatever is evaluated of them: graders are checked all together."""
    return [suite.model_copy(update={"only": ""}) for suite in suites]


def _changed(suite: Suite, settings: Settings, since: str | None) -> set[str] | None:
    if since is None or suite.path is None:
        return None
    return changed_tasks(settings.path(suite.path), since)

"""The `evals` commands about coding tasks; each is a few lines over what the stages use."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eval_pipeline.cli.options import NoSandbox
from eval_pipeline.cli.output import End, complain, end, say, show
from eval_pipeline.cli.project import open_warehouse, read_settings

if TYPE_CHECKING:  # loading these takes a moment that `evals --help` does without
    from eval_pipeline.evaluation.ablation import Ablation
    from eval_pipeline.gateways.demo.faults import Faults
    from eval_pipeline.records.coding import CodingTask
    from eval_pipeline.settings.sections import Suite
    from eval_pipeline.settings.settings import Settings
    from eval_pipeline.suites.coding.validate import Validated

_DID = {None: "nobody can tell", 1.0: "passes", 0.0: "fails"}
toolchains = typer.Typer(no_args_is_help=True, help="The tools that code is checked with.")


@toolchains.command("prepare")
def prepare_toolchains(
    names: Annotated[list[str] | None, typer.Argument(help="Which; by default all.")] = None,
) -> None:
    """Fetch and build what code is checked with, once; afterwards no network is needed."""
    from eval_pipeline.suites.coding.toolchains import registry

    data = read_settings().data
    for name in names or sorted(registry.TOOLCHAINS):
        tools = registry.toolchain(name)
        home = registry.prepare(tools, data, typer.echo)
        older = registry.prune(tools, data)
        removed = f"; earlier versions removed: {older}" if older else ""
        say(f"{name} is ready ({home.name}){removed}.")


@toolchains.command("list")
def list_toolchains() -> None:
    """Every toolchain with its version, and whether it is prepared."""
    from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS, home_of

    data, table = read_settings().data, Table("toolchain", "version", "prepared", "steps")
    for name, tools in sorted(TOOLCHAINS.items()):
        ready = "yes" if tools.is_prepared(home_of(tools, data)) else "no"
        table.add_row(name, tools.version, ready, " ".join(tools.steps))
    show(table)


def new(
    category: Annotated[str, typer.Argument(help="Such as parsing; a new one gets a number.")],
    name: Annotated[str, typer.Argument(help="Such as iso-weeks.")],
    tools: Annotated[
        str | None, typer.Option("--toolchain", help="By default that of the suite.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Which suite, if there are several.")] = None,
) -> None:
    """Begin a new coding task: a folder with an example to be replaced."""
    from eval_pipeline.suites.coding.scaffold import create

    settings = read_settings()
    (found,) = _coding_suites(settings, suite, only_one=True)
    root = settings.path(found.path) if found.path else settings.root
    folder = create(root, category, name, tools or found.toolchain or "python")
    say(f"{folder} is there. Change it, then: evals validate-answers -f {folder.name}")


def validate_answers(
    pattern: Annotated[str, typer.Option("-f", "--filter", help="Only ids that match.")] = "",
    since: Annotated[
        str | None, typer.Option("--changed", help="Only tasks changed since this commit.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Which suite; by default all.")] = None,
    *,
    unsafe_no_sandbox: NoSandbox = False,
) -> None:
    """Check the graders: every reference answer must pass, every wrong one must fail."""
    from eval_pipeline.runtime import run_async
    from eval_pipeline.suites.coding.dataset import load_tasks
    from eval_pipeline.suites.coding.validate import by_step, changed_tasks, chosen

    settings, tasks = _settings(unsafe_no_sandbox=unsafe_no_sandbox), list["CodingTask"]()
    for one in _coding_suites(settings, suite):
        # All graders of a suite are checked, even if `only` limits what is evaluated.
        known = load_tasks(one.model_copy(update={"only": ""}), settings)
        changed = None
        if since is not None and one.path is not None:
            changed = changed_tasks(settings.path(one.path), since)
        tasks += chosen(known, pattern, changed)
    if not tasks:
        return say("No task is meant, so none was validated.")
    results = run_async(_validated(tasks, settings))
    wrong = sum(not result.is_right for result in results)
    count = f"Tasks: {len(tasks)}. Answers: {len(results)}, graded wrongly: {wrong}."
    show(_table(results), by_step(results), count)
    return end(End.FAILED if wrong else End.DONE)


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
    unsafe_no_sandbox: NoSandbox = False,
) -> None:
    """Find out what each section of the guidelines is worth: models are asked without it."""
    from eval_pipeline.evaluation import ablation_report as shown
    from eval_pipeline.evaluation.ablation import plan_ablation, selected_models
    from eval_pipeline.runtime import run_async
    from eval_pipeline.suites.coding.toolchains.registry import toolchain

    settings = _settings(unsafe_no_sandbox=unsafe_no_sandbox)
    (found,) = _coding_suites(settings, suite, only_one=True)
    planned = plan_ablation(
        settings,
        found,
        run_async(selected_models(settings)),
        toolchain=toolchain(tools).name,
        pattern=pattern,
        sections=sections or (),
    )
    show(shown.plan_table(planned), shown.requests_line(planned))
    if not dry_run:
        _ablated(planned, settings, margin / 100)


def _ablated(planned: "Ablation", settings: "Settings", margin: float) -> None:
    """Ask, and report the effects, also if some of it failed."""
    from eval_pipeline.cli.progress import following
    from eval_pipeline.defs.launch import evaluate
    from eval_pipeline.evaluation.ablation_report import AblationReport, measure
    from eval_pipeline.journal.deployment import refuse_production
    from eval_pipeline.records.base import now

    refuse_production(settings)
    with following():
        failures = planned.run(evaluate, say)
    with open_warehouse(settings).reading() as db:
        report = AblationReport(planned, measure(db, planned), margin, failures)
    path = settings.reports / f"ablation_{planned.toolchain}.md"
    report.write(path, now())
    where = f"The report is in {path.relative_to(settings.root)}."
    show(report.table(), *report.remarks(), where)
    if failures:
        complain("\n".join(failures))
        end(End.FAILED)


def demo_server(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one.")
    ] = 8377,
    faults: Annotated[
        Path | None, typer.Option(help='A JSON file of faults to make, such as {"latency_s": 0.2}.')
    ] = None,
) -> None:
    """Serve the SIMULATED models on loopback until interrupted, well behaved or not."""
    from eval_pipeline.gateways.demo.faults import Faults
    from eval_pipeline.gateways.demo.server import serve
    from eval_pipeline.suites.benchmark import load_benchmark

    items = tuple(load_benchmark(read_settings()).items.values())
    serve(items, faults=_read_faults(faults) if faults else Faults(), port=port)


def _read_faults(path: Path) -> "Faults":
    from pydantic import ValidationError

    from eval_pipeline.gateways.demo.faults import Faults
    from eval_pipeline.settings.loading import SettingsError

    try:
        return Faults.model_validate_json(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} can not be read: {error.strerror}.") from None
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"]))
        raise SettingsError(f"{path}: {field + ': ' if field else ''}{problem['msg']}.") from None


async def _validated(tasks: "Sequence[CodingTask]", settings: "Settings") -> "list[Validated]":
    from eval_pipeline.evaluation.grading import CodeGraderFactory
    from eval_pipeline.suites.coding.validate import validate

    # Fresh: to check graders is to run them.
    graders = CodeGraderFactory(settings, fresh=True)
    found, at_a_terminal = [], Console().is_terminal
    async for result in validate(tasks, await graders.open(tasks)):
        found.append(result)
        if at_a_terminal or not result.is_right:
            did, must = _DID[result.graded.score], "pass" if result.must_pass else "fail"
            right = "" if result.is_right else f", but must {must}"
            say(f"{result.task.id} {result.answer}: {did}{right}. {result.graded.reason}")
    return sorted(found, key=lambda one: (one.task.suite, one.task.id, not one.must_pass))


def _table(results: "Sequence[Validated]") -> Table:
    """Return a row per task: what became of the reference, and of how many wrong answers."""
    from eval_pipeline.suites.coding.validate import not_passed

    table = Table("task", "reference", "its steps", "tests", "wrong answers fail", "s")
    for _, group in groupby(results, key=lambda one: (one.task.suite, one.task.id)):
        reference, *wrong = group
        failing = sum(one.is_right for one in wrong)
        seconds = sum(step.seconds for one in (reference, *wrong) for step in one.graded.code.steps)
        table.add_row(
            reference.task.id,
            Text(_DID[reference.graded.score], "" if reference.is_right else "bold red"),
            not_passed(reference),
            str(len(reference.graded.code.tests)),
            Text(f"{failing} of {len(wrong)}", "" if failing == len(wrong) else "bold red"),
            f"{seconds:.1f}",
        )
    return table


def _coding_suites(
    settings: "Settings", name: str | None, *, only_one: bool = False
) -> "Sequence[Suite]":
    from eval_pipeline.settings.loading import SettingsError

    coding = [suite for suite in settings.suites if suite.kind == "coding"]
    found = [suite for suite in coding if name in (None, suite.name)]
    if not found or (only_one and len(found) > 1):
        names = ", ".join(suite.name for suite in coding) or "none"
        raise SettingsError(f"Name a suite of coding tasks with --suite; there are: {names}.")
    return found


def _settings(*, unsafe_no_sandbox: bool) -> "Settings":
    """Return the settings, without a sandbox if the launch says so: nothing else can."""
    settings = read_settings()
    if unsafe_no_sandbox:
        return settings.overridden({"coding": {"isolation": "none"}})
    return settings

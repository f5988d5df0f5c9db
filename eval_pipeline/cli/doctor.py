"""`evals doctor`: is everything there that an evaluation needs, and if not, what to do."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import AsJson
from eval_pipeline.cli.output import End, console, end, report, say, show
from eval_pipeline.text import printable

if TYPE_CHECKING:  # loading these takes a moment that `evals --help` does without
    from rich.console import Group

    from eval_pipeline.evaluation.doctor.report import Check, Topic
    from eval_pipeline.settings.settings import Settings

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "bold yellow"), "wrong": ("✗", "bold red")}
_NAMES = 20
"""Columns for the names, alike in all topics."""


def doctor(
    *,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no gateway and no hub for anything.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check keys, gateways, sandbox, toolchains, disk, locks and versions; say what to do."""
    found, at_a_terminal = [], console().is_terminal
    for topic in _topics(offline=offline):
        found.append(topic)
        if not as_json and topic.findings:
            _tell(topic, at_a_terminal=at_a_terminal)
    checks = [{"topic": topic.name, **asdict(one)} for topic in found for one in topic.findings]
    states = [one["state"] for one in checks]
    wrong, warnings = states.count("wrong"), states.count("warning")
    begins = "" if wrong else " An evaluation can begin."
    told = f"{len(states)} looked at: {wrong} wrong, {warnings} to be warned of.{begins}"
    report({"ok": not wrong, "checks": checks}, told, as_json=as_json)
    end(End.FAILED if wrong else End.DONE)


def _topics(*, offline: bool) -> "Iterator[Topic]":
    """Yield the installation first: if it does not fit, the rest may not even load."""
    from eval_pipeline.evaluation.doctor.report import (
        SET_UP,
        Topic,
        installation_checks,
        look_at,
        wrong,
    )

    yield look_at("installation", installation_checks())
    try:
        from eval_pipeline.evaluation.doctor.checkup import check_up
    except ImportError as error:
        yield Topic("code", [wrong("eval_pipeline", f"It can not be loaded ({error}).", SET_UP)])
        return
    yield from check_up(offline=offline, besides=_of_dagster)


def _of_dagster(settings: "Settings") -> "Sequence[Check]":
    from eval_pipeline.defs.instance import dagster_checks

    return dagster_checks(settings)


def _tell(topic: "Topic", *, at_a_terminal: bool) -> None:
    """Print marks and colours for people; in a pipe, a line for each."""
    if at_a_terminal:
        return show(_block(topic))
    for one in topic.findings:
        advice = f" To do: {one.advice}" if one.advice else ""
        say(f"{one.state.value:<7}  {topic.name}: {one.name}: {one.found}{advice}")
    return None


def _block(topic: "Topic") -> "Group":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column(width=_NAMES, overflow="fold")
    table.add_column(overflow="fold")
    for one in topic.findings:
        words = Text(printable(one.found))
        if one.advice:
            words.append(f"\n→ {printable(one.advice)}", "bold")
        table.add_row(Text(*_MARKS[one.state.value]), Text(printable(one.name)), words)
    return Group(Text(topic.name, "bold"), table)

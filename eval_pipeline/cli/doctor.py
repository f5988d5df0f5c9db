"""`evals doctor`: is everything there that an evaluation needs, and if not, what to do."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import AsJson
from eval_pipeline.cli.output import End, console, end, print_json, say, show
from eval_pipeline.text import printable

if TYPE_CHECKING:  # loading these takes a moment that `evals --help` does without
    from rich.console import RenderableType

    from eval_pipeline.evaluation.doctor.report import Check, Finding, Topic
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
    states = [finding.state.value for topic in found for finding in topic.findings]
    if as_json:
        print_json(_document(found))
    else:
        say(_summed_up(states))
    end(End.FAILED if "wrong" in states else End.DONE)


def _topics(*, offline: bool) -> "Iterator[Topic]":
    """What is installed comes first: if it does not fit, the rest may not even load."""
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
    """Marks and colours for people; in a pipe, a line for each."""
    if at_a_terminal:
        show(_block(topic))
        return
    for one in topic.findings:
        advice = f" To do: {one.advice}" if one.advice else ""
        say(f"{one.state.value:<7}  {topic.name}: {one.name}: {one.found}{advice}")


def _block(topic: "Topic") -> "RenderableType":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column(width=_NAMES, overflow="fold")
    table.add_column(overflow="fold")
    for one in topic.findings:
        mark, style = _MARKS[one.state.value]
        table.add_row(Text(mark, style), Text(printable(one.name)), _words(one))
    return Group(Text(topic.name, "bold"), table)


def _words(finding: "Finding") -> "RenderableType":
    from rich.text import Text

    words = Text(printable(finding.found))
    if finding.advice:
        words.append(f"\n→ {printable(finding.advice)}", "bold")
    return words


def _document(found: "Sequence[Topic]") -> dict[str, object]:
    checks = [{"topic": topic.name, **asdict(one)} for topic in found for one in topic.findings]
    return {"ok": all(one["state"] != "wrong" for one in checks), "checks": checks}


def _summed_up(states: Sequence[str]) -> str:
    wrong, warnings = states.count("wrong"), states.count("warning")
    told = f"{len(states)} looked at: {wrong} wrong, {warnings} to be warned of."
    return told if wrong else f"{told} An evaluation can begin."

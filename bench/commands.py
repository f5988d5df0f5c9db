"""What `evals` costs before it does anything: the help and the Tab key, against bare typer."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.measuring import Taken, measured
from bench.options import Options
from bench.project import environment
from bench.tables import Cell, Table

BARE = "python, typer loaded"
COLUMNS = ("", "CPU s", "best CPU s", "times bare typer", "peak MB")
COMMANDS: Mapping[str, Sequence[str]] = {
    BARE: (sys.executable, "-c", "import typer"),
    "evals --help": ("evals", "--help"),
    "evals run --help": ("evals", "run", "--help"),
    "Tab after evals run -e": ("evals",),
    "Tab after evals run -m": ("evals",),
}
REPEATED = 5
"""Times as often as other sections: each takes a fraction of a second."""


def section(options: Options) -> list[Table]:
    """The commands in turns, so that what else the machine does meets all of them."""
    project = options.project(options.scaled(1_000))
    found: dict[str, list[Taken]] = {name: [] for name in COMMANDS}
    for repetition in range(options.repetitions * REPEATED):
        options.say(f"Commands, {repetition + 1} of {options.repetitions * REPEATED}")
        for name, command in COMMANDS.items():
            found[name].append(_measured(name, command, project))
    bare = median(taken.cpu_s for taken in found[BARE])
    rows = tuple(_row(name, taken, bare) for name, taken in found.items())
    return [Table("What evals costs before it does anything", COLUMNS, rows)]


def _measured(name: str, command: Sequence[str], project: Path) -> Taken:
    return measured(command, project, environment(**_typed(name)))


def _typed(name: str) -> dict[str, str]:
    """What bash tells a command when the Tab key is pressed."""
    line = name.removeprefix("Tab after ")
    if line == name:
        return {}
    words = [*line.split(), ""]
    return {
        "_EVALS_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }


def _row(name: str, found: Sequence[Taken], bare: float) -> tuple[Cell, ...]:
    cpu = [taken.cpu_s for taken in found]
    return (name, median(cpu), min(cpu), median(cpu) / bare, max(one.peak_mb for one in found))

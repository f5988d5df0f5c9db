"""Long texts: through a pager at a terminal, and as they are everywhere else."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from eval_pipeline.untrusted import printable

if TYPE_CHECKING:  # loading it takes a moment that `evals --help` does without
    from eval_pipeline.item_report.page import Section

PAGERS = ("EVALS_PAGER", "PAGER")
"""Who names what shows long texts, the first one first; an empty name means: nothing does."""
USUAL = "less"


def page_through(sections: "Iterable[Section]") -> None:
    """Prints the sections; what does not fit on the screen goes through a pager."""
    text = "\n\n".join(
        f"== {_clean(one.heading)} ==\n{_clean(one.text)}".rstrip() for one in sections
    )
    pager = _pager()
    if pager and sys.stdout.isatty() and not _fits(text):
        _show_in(pager, text)
    else:
        typer.echo(text)


def _pager() -> list[str]:
    named = next((os.environ[name] for name in PAGERS if name in os.environ), USUAL)
    try:
        command = shlex.split(named)
    except ValueError:  # a quote without its other half
        return []
    return command if command and shutil.which(command[0]) else []


def _show_in(pager: list[str], text: str) -> None:
    # Ctrl-C in a pager is meant for the pager.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        subprocess.run(pager, input=f"{text}\n", text=True, encoding="utf-8", check=False)  # noqa: S603
    finally:
        signal.signal(signal.SIGINT, before)


def _clean(text: str) -> str:
    return printable(text.replace("\r\n", "\n"))


def _fits(text: str) -> bool:
    columns, height = shutil.get_terminal_size()
    return sum(len(line) // columns + 1 for line in text.split("\n")) < height

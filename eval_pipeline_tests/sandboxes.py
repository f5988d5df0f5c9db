"""Commands for the tests of the sandbox: this Python, inside and outside of the walls."""

import asyncio
import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.suites.coding.sandbox.base import (
    Command,
    Finished,
    Limits,
    Mount,
    Sandbox,
    SandboxError,
)
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox

SMALL = Limits(seconds=20, memory_mb=128, processes=24, disk_mb=16, output_kb=64)
_HOME = Path(sys.base_prefix).resolve()
PYTHON = str(Path(sys.executable).resolve())
MOUNTS = () if _HOME.is_relative_to("/usr") else (Mount(_HOME, str(_HOME)),)


@functools.cache
def why_not() -> str | None:
    """Why there can be no bubblewrap here; None where it holds."""
    try:
        open_sandbox("bwrap")
    except SandboxError as error:
        return str(error)
    return None


def the_sandbox() -> Sandbox:
    """The hardened sandbox; a test that needs it is skipped where the machine has none."""
    if reason := why_not():
        pytest.skip(reason)
    return open_sandbox("bwrap")


def python(script: str, *arguments: str, **others: Any) -> Command:
    """A command that runs the script with this Python."""
    others.setdefault("limits", SMALL)
    mounts = (*MOUNTS, *others.pop("mounts", ()))
    return Command((PYTHON, "-I", "-S", "-c", script, *arguments), mounts=mounts, **others)


def shell(script: str, **others: Any) -> Command:
    """A command that runs the script with a shell."""
    others.setdefault("limits", SMALL)
    return Command(("/bin/sh", "-c", script), **others)


def run(command: Command, sandbox: Sandbox | None = None) -> Finished:
    """Runs it to its end, in the hardened sandbox unless told otherwise."""
    return asyncio.run((sandbox or the_sandbox()).run(command))


def run_bare(script: str, *arguments: str, folder: Path) -> str:
    """What the script prints when nothing holds it."""
    words = [PYTHON, "-I", "-S", "-c", script, *arguments]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(words, cwd=folder, stdin=nothing, stdout=subprocess.PIPE) as process:
        return process.communicate(timeout=60)[0].decode()

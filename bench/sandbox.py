"""What the sandbox costs: the same command bare and behind its walls, taken in turns."""

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median

from bench.measuring import BenchError
from bench.options import Options
from bench.tables import Cell, Table
from eval_pipeline.suites.coding.sandbox.base import Command, Sandbox, SandboxError
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox

TIMES = 60
COMMANDS = {
    "a program that does nothing": ("/bin/true",),
    "a shell that starts ten": (
        "/bin/sh",
        "-c",
        "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done",
    ),
    "ten at once": ("/bin/true",),
}
AT_ONCE = {"ten at once": 10}
COLUMNS = ("", "bare ms", "sandboxed ms", "added ms", "ratio")


def section(options: Options) -> list[Table]:
    """The middle of many runs of each, the bare one always right before the sandboxed one."""
    try:
        sandbox = open_sandbox("bwrap")
    except SandboxError as error:
        raise BenchError(str(error)) from error
    times = options.scaled(TIMES)
    options.say(f"Sandbox: each command {times} times")
    rows = [asyncio.run(_row(title, sandbox, times)) for title in COMMANDS]
    return [Table("A command in the sandbox", COLUMNS, tuple(rows), note="Per command, median.")]


async def _row(title: str, sandbox: Sandbox, times: int) -> tuple[Cell, ...]:
    command, at_once = COMMANDS[title], AT_ONCE.get(title, 1)
    bare, walled = [], []
    for _ in range(times):
        bare.append(await _taken(partial(_bare, command), at_once))
        walled.append(await _taken(partial(_sandboxed, sandbox, command), at_once))
    before, after = 1000 * median(bare), 1000 * median(walled)
    return (title, before, after, after - before, after / before)


async def _taken(run: Callable[[], Awaitable[None]], at_once: int) -> float:
    started = time.perf_counter()
    await asyncio.gather(*(run() for _ in range(at_once)))
    return (time.perf_counter() - started) / at_once


async def _bare(command: tuple[str, ...]) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL)
    if await process.wait() != 0:
        raise BenchError(f"{' '.join(command)} failed")


async def _sandboxed(sandbox: Sandbox, command: tuple[str, ...]) -> None:
    finished = await sandbox.run(Command(command))
    if not finished.succeeded:
        raise BenchError(f"{' '.join(command)} ended as {finished.ending}")

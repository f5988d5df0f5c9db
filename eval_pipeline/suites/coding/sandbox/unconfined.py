"""Commands without any wall around them, for those who said that they want that.

They get a folder of their own, no variables of ours, limits and an end; but they can read, write
and reach whatever the user can who runs them.
"""

import os
import re
import signal
import tempfile
from asyncio.subprocess import Process
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from eval_pipeline.records.coding import Isolation
from eval_pipeline.suites.coding.sandbox import usage as watching
from eval_pipeline.suites.coding.sandbox.base import INPUT, WORK, Command, Finished
from eval_pipeline.suites.coding.sandbox.supervise import (
    SHELL,
    Confined,
    channel_of,
    copying,
    environment,
    killed,
    starting,
    supervise,
)
from eval_pipeline.suites.coding.sandbox.usage import Usage


@dataclass(frozen=True)
class NoSandbox:
    """Isolates nothing; only `open_sandbox` makes one, and only when told twice."""

    isolation: Isolation = "none"

    async def run(self, command: Command) -> Finished:
        with tempfile.TemporaryDirectory(prefix="unsafe-", ignore_cleanup_errors=True) as folder:
            return await supervise(command, _Unconfined(command, Path(folder)))


class _Unconfined(Confined):
    """One command in a folder and a session of its own."""

    def __init__(self, command: Command, folder: Path) -> None:
        self._folder = folder
        self._command = _as_on_the_host(command, folder)

    async def start(self, *, output: int, control: int) -> Process:
        command = self._command
        files = copying(str(command.folder.resolve()), str(self._folder)) if command.folder else ""
        return await self.spawn(
            *(SHELL, "-c", files + starting(command, processes=False), "sh", *command.argv),
            cwd=self._folder,
            env={**environment(command), "HOME": str(self._folder)},
            stdout=output,
            stderr=control,
            pass_fds=channel_of(command),
        )

    def usage(self, enough: int) -> Usage:
        processes = watching.tree(self.process.pid) if self.process else []
        return watching.usage(processes, enough=enough)

    async def end(self) -> None:
        """Ends the session and whatever still descends from it; what has left both gets away."""
        if self.process is None:
            return
        members = []
        for member in watching.tree(self.process.pid)[1:]:
            with suppress(ProcessLookupError):
                members.append(os.pidfd_open(member))
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for descriptor in members:
            await killed(descriptor)
        await self.process.wait()


def _as_on_the_host(command: Command, folder: Path) -> Command:
    """The command with the places of the sandbox replaced by where they really are."""
    places = {mount.target: str(mount.source.resolve()) for mount in command.mounts}
    places[WORK] = str(folder)
    places[INPUT] = str(command.folder.resolve() if command.folder else folder)
    longest_first = sorted(places, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, longest_first))})(?![\w.-])")

    def placed(text: str) -> str:
        return pattern.sub(lambda found: places[found[1]], text)

    env = {name: placed(value) for name, value in command.env.items()}
    return replace(command, argv=tuple(map(placed, command.argv)), env=env)

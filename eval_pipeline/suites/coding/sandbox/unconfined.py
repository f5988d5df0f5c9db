"""Commands without any wall around them, for those who said that they want that.

They get a folder of their own, no variables of ours, limits and an end; but they can read, write
and reach whatever the user can who runs them.
"""

import asyncio
import os
import re
import signal
import tempfile
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from eval_pipeline.records.coding import Isolation
from eval_pipeline.suites.coding.sandbox import usage as watching
from eval_pipeline.suites.coding.sandbox.base import (
    INPUT,
    WORK,
    Command,
    Ending,
    Finished,
    SandboxError,
)
from eval_pipeline.suites.coding.sandbox.supervise import (
    SHELL,
    copying,
    environment,
    gone,
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


class _Unconfined:
    """One command in a folder and a session of its own."""

    def __init__(self, command: Command, folder: Path) -> None:
        self._folder = folder
        self._command = _as_on_the_host(command, folder)
        self._process: Process | None = None

    async def start(self, *, output: int, control: int) -> Process:
        command = self._command
        files = copying(str(command.folder.resolve()), str(self._folder)) if command.folder else ""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(SHELL, "-c", files + starting(command, processes=False), "sh", *command.argv),
                cwd=self._folder,
                env={**environment(command), "HOME": str(self._folder)},
                stdin=DEVNULL,
                stdout=output,
                stderr=control,
                pass_fds=() if command.channel is None else (command.channel.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"No command could be started: {error}") from error
        return self._process

    def usage(self, enough: int) -> Usage:
        if self._process is None:
            return Usage()
        return watching.usage(watching.tree(self._process.pid), enough=enough)

    async def end(self) -> None:
        """Ends the session and whoever still descends from it; who has left both gets away."""
        if self._process is None:
            return
        members = []
        for member in watching.tree(self._process.pid)[1:]:
            with suppress(ProcessLookupError):
                members.append(os.pidfd_open(member))
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for member in members:
            await _killed(member)
        await self._process.wait()

    async def verdict(self) -> Ending | None:
        return None


async def _killed(process_fd: int) -> None:
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process_fd, signal.SIGKILL)
        await gone(process_fd)
    finally:
        os.close(process_fd)


def _as_on_the_host(command: Command, folder: Path) -> Command:
    """The command with the places of the sandbox replaced by where they really are."""
    places = {mount.target: str(mount.source.resolve()) for mount in command.mounts}
    places |= {
        WORK: str(folder),
        INPUT: str(command.folder.resolve() if command.folder else folder),
    }
    longest_first = sorted(places, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, longest_first))})(?![\w.-])")

    def placed(text: str) -> str:
        return pattern.sub(lambda found: places[found[1]], text)

    return replace(
        command,
        argv=tuple(map(placed, command.argv)),
        env={name: placed(value) for name, value in command.env.items()},
    )

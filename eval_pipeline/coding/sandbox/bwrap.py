"""Commands behind bubblewrap: namespaces, read-only mounts, a filter for system calls, limits."""

import asyncio
import json
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from dataclasses import dataclass

from eval_pipeline.coding.records import Isolation
from eval_pipeline.coding.sandbox import watching
from eval_pipeline.coding.sandbox.descriptors import Descriptors
from eval_pipeline.coding.sandbox.launching import SHELL, as_user, copying, starting
from eval_pipeline.coding.sandbox.sandbox import (
    INPUT,
    WORK,
    Command,
    Ending,
    Finished,
    SandboxError,
)
from eval_pipeline.coding.sandbox.supervising import LONGEST_START_S, MEGABYTE, Tap, gone, supervise
from eval_pipeline.coding.sandbox.users import fresh_uid
from eval_pipeline.coding.sandbox.walls import IN_MEMORY, walls
from eval_pipeline.coding.sandbox.watching import Usage


@dataclass(frozen=True)
class BwrapSandbox:
    """The hardened default; works for root and, where it may make namespaces, for anybody."""

    program: str
    isolation: Isolation = "bwrap"

    @classmethod
    def found(cls) -> "BwrapSandbox":
        """The one on the search path; SandboxError says how to get it."""
        program = shutil.which("bwrap")
        if program is None:
            raise SandboxError(
                "bubblewrap is not installed (on Debian: apt-get install bubblewrap)"
            )
        return cls(program)

    async def run(self, command: Command) -> Finished:
        return await supervise(command, _Confined(self.program, command))


class _Confined:
    """One command in its namespaces, which live exactly as long as their first process."""

    def __init__(self, program: str, command: Command) -> None:
        self._program, self._command = program, command
        # Root keeps its rights over files even in a user namespace, and no count of processes
        # holds for it: so whoever is root becomes somebody else, and everybody else only seems to.
        self._uid = fresh_uid() if os.geteuid() == 0 else None
        self._process: Process | None = None
        self._first, self._first_fd = -1, -1

    async def start(self, *, output: int, control: int) -> Process:
        told = Tap(MEGABYTE)
        try:
            with Descriptors() as passed:
                held, go = passed.pipe()
                options = walls(self._command, passed, self._uid)
                options += ["--info-fd", str(told.writer), "--block-fd", str(held)]
                words = passed.holding("\0".join(options).encode())
                self._process = await asyncio.create_subprocess_exec(
                    *(self._program, "--args", str(words), "--"),
                    *self._launcher(),
                    env={},  # what is in it could be read in /proc inside
                    stdin=DEVNULL,
                    stdout=output,
                    stderr=control,
                    pass_fds=(*passed.numbers, told.writer, *_channel(self._command)),
                    start_new_session=True,
                )
                told.started()
                await self._find_first(told)
                os.write(go, b"!")
        except OSError as error:
            raise SandboxError(f"bubblewrap could not be started: {error}") from error
        finally:
            told.close()
        return self._process

    def _launcher(self) -> list[str]:
        files = copying(INPUT, WORK) if self._command.folder else ""
        script = starting(self._command)
        if self._uid is None:
            return [SHELL, "-c", files + script, "sh", *self._command.argv]
        return [SHELL, "-c", as_user(self._uid, files), script, *self._command.argv]

    async def _find_first(self, told: Tap) -> None:
        """Gets hold of the first process inside, which waits for us; there may be none."""
        try:
            async with asyncio.timeout(LONGEST_START_S):
                while not told.content.endswith(b"}\n") and not told.ended:
                    told.changed.clear()
                    await told.changed.wait()
        except TimeoutError:
            raise SandboxError("bubblewrap does not answer") from None
        if told.content:
            self._first = json.loads(told.content)["child-pid"]
            with suppress(ProcessLookupError):
                self._first_fd = os.pidfd_open(self._first)

    def usage(self, enough: int) -> Usage:
        _, *inside = watching.tree(self._first)
        watching.let_others_go_first(inside)
        files = watching.files_in(self._first, IN_MEMORY)
        return watching.usage(inside, enough=enough, files=files)

    async def end(self) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill()
        if self._first_fd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first_fd, signal.SIGKILL)
            await gone(self._first_fd)
            os.close(self._first_fd)
            self._first_fd = -1
        await self._process.wait()

    async def verdict(self) -> Ending | None:
        return None


def _channel(command: Command) -> tuple[int, ...]:
    return () if command.channel is None else (command.channel.fileno(),)

"""Runs one command in whatever confines it: reads its output and files, ends it at its limits."""

import asyncio
import io
import os
import shlex
import signal
import tarfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, TypeVar

from eval_pipeline.suites.coding.sandbox.base import Command, Ending, Finished, Limits, SandboxError
from eval_pipeline.suites.coding.sandbox.usage import Usage
from eval_pipeline.text import clean

MOST_BYTES = 32 * 2**20
LARGEST_FILE = 8 * 2**20
MOST_FILES = 2000
READY = b"the command starts\n"
SHELL = "/bin/sh"
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
# The command may have been given a search path on which there is nothing.
_TOOL = "PATH=/usr/bin:/bin"
OPEN_FILES = 1024
# Bubblewrap's, which count as well where the command only seems to be another user.
_OWN_PROCESSES = 2


def environment(command: Command) -> Mapping[str, str]:
    """Every variable the command finds: what it was given, and what any program needs."""
    channel = command.channel
    given = {"PATH": SEARCH_PATH, "HOME": "/tmp", "LANG": "C.UTF-8", **command.env}  # noqa: S108
    return given if channel is None else {**given, "EVALS_CHANNEL": str(channel.fileno())}


def channel_of(command: Command) -> tuple[int, ...]:
    """The descriptor that the command inherits, if any."""
    return () if command.channel is None else (command.channel.fileno(),)


def copying(source: str, target: str) -> str:
    """Copies a folder; links stay links."""
    return f"{_TOOL} cp -R -P {shlex.quote(source)}/. {shlex.quote(target)} || exit 1\n"


def as_user(uid: int, first: str) -> str:
    """Does the `first` lines as a user that nobody else is, and goes on as that user, for good.

    Those lines may read what only root may; `$0` is the script to go on with.
    """
    become = f"/usr/bin/setpriv --reuid={uid} --regid={uid} --clear-groups"
    reading = "--inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search"
    nothing = "--inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs"
    files = f"{become} {reading} -- {SHELL} -c {shlex.quote(first)} || exit 1\n" if first else ""
    return f'{files}exec {become} {nothing} -- {SHELL} -c "$0" sh "$@"\n'


def starting(command: Command, *, processes: bool = True) -> str:
    """Sets the limits of a process, says that it is about to, and runs what follows as `$@`."""
    script = _limits(command.limits, processes=processes) + (
        'command -v -- "$1" >/dev/null || { echo "There is no program $1 here." >&2; exit 1; }\n'
        f"printf '{READY.decode().strip()}\\n' >&2\n"
    )
    if not command.collect:
        return script + 'exec "$@" 2>&1\n'
    return script + (
        'exec 3>&2 2>&1\n"$@" 3>&-\ncode=$?\n' + _handing_over(command.collect) + "exit $code\n"
    )


def _limits(limits: Limits, *, processes: bool) -> str:
    """Of one process each; those of all together are watched from outside.

    What may be mapped is twice what may be used, so that a command which uses too much is ended
    for that, and not by whatever it does when an allocation fails.
    """
    lines = [
        "umask 022",
        "ulimit -c 0",
        f"ulimit -n {OPEN_FILES}",
        f"ulimit -f {limits.disk_mb * 2048}",
        f"ulimit -d {limits.memory_mb * 2048}",
    ]
    if processes:  # which dash calls p and bash u
        most = limits.processes + _OWN_PROCESSES
        lines.append(f"ulimit -p {most} 2>/dev/null || ulimit -u {most}")
    # If the machine runs out of memory after all, then this is to go, and nothing else.
    adjust = "{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null\n"
    return "".join(f"{line} || exit 1\n" for line in lines) + adjust


def _handing_over(paths: Iterable[str]) -> str:
    """Finds the files without following a link in any part of their path, and packs them."""
    either = " -o ".join(
        f"-path {shlex.quote(path)} -o -path {shlex.quote(path + '/*')}" for path in named(paths)
    )
    return (
        f"PATH=/usr/bin:/bin\n"
        f"find . -xdev -type f -size -{LARGEST_FILE}c \\( {either} \\) -print0 2>/dev/null"
        f" | head -z -n {MOST_FILES} | tar --create --file=- --null --no-recursion"
        " --verbatim-files-from --hard-dereference --files-from=- >&3 2>/dev/null\n"
    )


MEGABYTE = 2**20
_LOOK_EVERY_S = 0.05
LONGEST_START_S = 60.0
_TROUBLE = 2000
# How a shell, and everything that imitates it, says that a signal ended a process.
_SIGNALS = range(129, 193)
_T = TypeVar("_T")


class Confined:
    """One command to be run, behind the walls of one kind of sandbox."""

    process: Process | None = None

    async def start(self, *, output: int, control: int) -> Process:
        """Starts the command with these as its standard output and error."""
        raise NotImplementedError

    def usage(self, enough: int) -> Usage:
        """What all of it uses now; exact only where it might be more than `enough` bytes."""
        return Usage()

    async def end(self) -> None:
        """Ends whatever is alive of it and waits until nothing is; may be called twice."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()

    async def verdict(self) -> Ending | None:
        """What ended it, where the walls know better than its exit code does."""
        return None

    async def spawn(self, *argv: str, stdin: Any = DEVNULL, **options: Any) -> Process:
        """Starts a process in a session of its own."""
        try:
            self.process = await asyncio.create_subprocess_exec(
                *argv, stdin=stdin, start_new_session=True, **options
            )
        except OSError as error:
            raise SandboxError(f"{argv[0]} could not be started: {error}") from error
        return self.process


class Tap:
    """A pipe that is read as it fills, and no further than to its limit."""

    def __init__(self, limit: int) -> None:
        self.content = bytearray()
        self.changed = asyncio.Event()
        self.full = asyncio.Event()
        self._limit = limit
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reader, self._read)

    @property
    def ended(self) -> bool:
        """Nothing more is to be read."""
        return self._reader < 0

    async def until(self, reached: Callable[[], bool], otherwise: str) -> None:
        """Waits for content with which something is reached; SandboxError if that takes long."""
        try:
            async with asyncio.timeout(LONGEST_START_S):
                while not reached():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            raise SandboxError(otherwise) from None

    def started(self) -> None:
        """The other side has its end."""
        if self.writer >= 0:
            os.close(self.writer)
        self.writer = -1

    def close(self) -> None:
        """Takes what is still in the pipe and lets go of it, whoever else may hold it open."""
        while self._reader >= 0 and self._read():
            pass
        self.started()
        self._stop()

    def _read(self) -> bool:
        try:
            data = os.read(self._reader, 65536)
        except BlockingIOError:
            return False
        self.content += data
        self.changed.set()
        if len(self.content) > self._limit:
            self.full.set()
        if not data or self.full.is_set():
            self._stop()
        return bool(data)

    def _stop(self) -> None:
        if self._reader >= 0:
            self._loop.remove_reader(self._reader)
            os.close(self._reader)
        self._reader = -1


async def supervise(command: Command, confined: Confined) -> Finished:
    """Runs the command to its end; afterwards, and also when cancelled, nothing of it is left."""
    output, control = Tap(command.limits.output_kb * 1024), Tap(MOST_BYTES)
    try:
        try:
            process = await _whole(confined.start(output=output.writer, control=control.writer))
        finally:
            output.started()
            control.started()
            if command.channel is not None:
                command.channel.close()
        exited = asyncio.ensure_future(process.wait())
        await _ready(exited, control)
        started = time.monotonic()
        ending = await _ending(exited, output, confined, command.limits)
        seconds = time.monotonic() - started
        if ending == "exited":
            ending = await confined.verdict() or ending
    finally:
        await _whole(confined.end())
        output.close()
        control.close()
    ending = _named(ending, process.returncode, output)
    by_itself = ending in ("exited", "killed")
    archive = bytes(control.content).partition(READY)[2] if by_itself else b""
    return Finished(
        ending=ending,
        exit_code=process.returncode if by_itself else None,
        output=clean(bytes(output.content), command.limits.output_kb * 1024),
        seconds=seconds,
        files=unpack(archive, command.collect),
    )


async def killed(process_fd: int) -> None:
    """Kills a process by its descriptor, waits for its end and closes the descriptor."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process_fd, signal.SIGKILL)
        loop.add_reader(process_fd, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(process_fd)
        os.close(process_fd)


async def _whole(work: Coroutine[Any, Any, _T]) -> _T:
    """Does the work to its end even if cancelled: half a start would leave something behind."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # looked at, or asyncio would complain that nobody did
        raise


async def _ready(exited: asyncio.Future[int], control: Tap) -> None:
    """Waits until the command itself is about to run; everything before that is our business."""
    exited.add_done_callback(lambda _: control.changed.set())
    await control.until(
        lambda: READY in control.content or exited.done(),
        f"No command started within {LONGEST_START_S:g} s.",
    )
    if exited.done():
        control.close()
    if READY not in control.content:
        said = clean(bytes(control.content), _TROUBLE).strip() or "it did not say why"
        raise SandboxError(f"The sandbox could not start a command: {said}")


async def _ending(
    exited: asyncio.Future[int], output: Tap, confined: Confined, limits: Limits
) -> Ending:
    """Waits for the first of all the things that end a command."""
    flooded = asyncio.ensure_future(output.full.wait())
    watched = asyncio.ensure_future(_watch(confined, limits))
    everything = (exited, flooded, watched)
    try:
        await asyncio.wait(everything, timeout=limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        if exited.done():
            return "exited"
        if flooded.done():
            return "output"
        return watched.result() if watched.done() else "timeout"
    finally:
        for task in everything:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*everything, return_exceptions=True)


async def _watch(confined: Confined, limits: Limits) -> Ending:
    """Looks at all processes together, which no limit of the kernel's does."""
    memory, disk = limits.memory_mb * MEGABYTE, limits.disk_mb * MEGABYTE
    while True:
        await asyncio.sleep(_LOOK_EVERY_S)
        # In a thread: a tree can be grown of which looking at it takes a while.
        usage = await asyncio.to_thread(confined.usage, memory)
        if usage.tasks >= limits.processes:
            return "processes"
        if usage.memory > memory or usage.memory + usage.files > memory + disk:
            return "memory"


def _named(ending: Ending, code: int | None, output: Tap) -> Ending:
    """How it ended, now that everything it said and did is known."""
    if ending == "exited" and output.full.is_set():
        return "output"
    if ending == "exited" and code is not None and (code < 0 or code in _SIGNALS):
        return "killed"
    return ending


def named(paths: Iterable[str]) -> list[str]:
    """The paths as `find` spells them, with its wildcards made harmless; raises ValueError."""
    spelled = [f"./{_checked(path)}" for path in paths]
    return [path.translate({ord(char): f"\\{char}" for char in "\\*?["}) for path in spelled]


def unpack(archive: bytes, wanted: Iterable[str]) -> Mapping[str, bytes]:
    """The regular files of the archive that were asked for; an unfinished one ends where it ends.

    Whoever wrote the archive may have lied, so each name is looked at again.
    """
    asked = [PurePosixPath(_checked(path)) for path in wanted]
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                path = _path_of(member, asked)
                if path is not None and (content := tar.extractfile(member)) is not None:
                    files[path] = content.read(LARGEST_FILE)
                if len(files) >= MOST_FILES:
                    break
    except (tarfile.TarError, OSError, ValueError, OverflowError):
        return files
    return files


def _path_of(member: tarfile.TarInfo, asked: Iterable[PurePosixPath]) -> str | None:
    if member.type != tarfile.REGTYPE or member.sparse or member.size > LARGEST_FILE:
        return None
    try:
        path = PurePosixPath(_checked(member.name))
    except ValueError:
        return None
    return str(path) if any(path.is_relative_to(name) for name in asked) else None


def _checked(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or not name.isprintable():
        raise ValueError(f"{name!r} is no path inside of the work folder")
    return str(path)

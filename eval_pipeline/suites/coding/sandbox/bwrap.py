"""Commands behind bubblewrap: namespaces, read-only mounts, a filter for system calls, limits."""

import json
import os
import platform
import secrets
import shutil
import stat
from asyncio.subprocess import Process
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path, PurePosixPath

from eval_pipeline.records.coding import Isolation
from eval_pipeline.suites.coding.sandbox import usage as watching
from eval_pipeline.suites.coding.sandbox.base import INPUT, WORK, Command, Finished, SandboxError
from eval_pipeline.suites.coding.sandbox.container import SYSTEM
from eval_pipeline.suites.coding.sandbox.seccomp import filter_program
from eval_pipeline.suites.coding.sandbox.supervise import (
    MEGABYTE,
    SHELL,
    Confined,
    Tap,
    as_user,
    channel_of,
    copying,
    environment,
    killed,
    starting,
    supervise,
)
from eval_pipeline.suites.coding.sandbox.usage import Usage

_TMP, _SHM, _SHM_MB = "/tmp", "/dev/shm", 64  # noqa: S108 (paths inside of the sandbox)
IN_MEMORY = (WORK, _TMP, _SHM)
"""Where a command may write, up to the sizes of these file systems."""

_FROM_ETC = ("/etc/alternatives", "/etc/ld.so.cache")
# Not /dev/zero: what is mapped of it and shared is memory that belongs to no process.
_DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
# To copy files and to become somebody else; gone before any code runs that is not ours.
_KEPT_FOR_A_WHILE = ("CAP_DAC_READ_SEARCH", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID")
_SEEMING_UID = 1000


class Descriptors(ExitStack):
    """Descriptors that a command inherits, closed here with their block."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[int] = []

    def holding(self, content: bytes) -> int:
        """One to read the content from, which is nowhere on a disk."""
        number = os.memfd_create("sandbox")
        self._inherited(number)
        os.write(number, content)
        os.lseek(number, 0, os.SEEK_SET)
        return number

    def pipe(self) -> tuple[int, int]:
        """One to read from, to be inherited, and one to write to, to be kept."""
        reader, writer = os.pipe()
        self._inherited(reader)
        self.callback(os.close, writer)
        return reader, writer

    def _inherited(self, number: int) -> None:
        self.numbers.append(number)
        self.callback(os.close, number)


def walls(command: Command, passed: Descriptors, uid: int | None) -> list[str]:
    """The options for the command; with a `uid` we are root and the command becomes that user."""
    return [
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
        *("--unshare-cgroup-try", "--hostname", "sandbox", "--die-with-parent", "--new-session"),
        *_rights(uid),
        *("--seccomp", str(passed.holding(_filter()))),
        *(word for path in SYSTEM for word in _as_on_the_host(Path(path))),
        *_etc(passed, _SEEMING_UID if uid is None else uid),
        *_devices(),
        *("--proc", "/proc"),
        *_in_memory(_TMP, command.limits.disk_mb),
        *_in_memory(_SHM, min(_SHM_MB, command.limits.memory_mb)),
        *_in_memory(WORK, command.limits.disk_mb),
        *_mounts(command, by_others=uid is not None),
        *("--remount-ro", "/", "--chdir", WORK, "--clearenv"),
        *(word for item in environment(command).items() for word in ("--setenv", *item)),
    ]


def _rights(uid: int | None) -> Iterator[str]:
    yield from ("--cap-drop", "ALL")
    if uid is None:
        yield from ("--unshare-user", "--disable-userns")
        yield from ("--uid", str(_SEEMING_UID), "--gid", str(_SEEMING_UID))
    else:
        yield from (word for right in _KEPT_FOR_A_WHILE for word in ("--cap-add", right))


def _filter() -> bytes:
    try:
        return filter_program(platform.machine())
    except KeyError as error:
        raise SandboxError(f"There is no filter for system calls on {error}.") from error


def _as_on_the_host(path: Path) -> Iterator[str]:
    if path.is_symlink():
        yield from ("--symlink", str(path.readlink()), str(path))
    elif path.is_dir():
        yield from ("--ro-bind", str(path), str(path))


def _etc(passed: Descriptors, uid: int) -> Iterator[str]:
    """Enough for `localhost` and for one's own name; nothing of the host's."""
    yield from _folder("/etc")
    for name, content in {
        "passwd": f"root:x:0:0:::\nanswer:x:{uid}:{uid}::{_TMP}:/bin/sh\n",
        "group": f"root:x:0:\nanswer:x:{uid}:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }.items():
        descriptor = passed.holding(content.encode("ascii"))
        yield from ("--perms", "0644", "--file", str(descriptor), f"/etc/{name}")
    for path in _FROM_ETC:
        yield from ("--ro-bind-try", path, path)


def _devices() -> Iterator[str]:
    yield from _folder("/dev")
    for device in _DEVICES:
        yield from ("--dev-bind", device, device)
    for name, target in _LINKS.items():
        yield from ("--symlink", target, f"/dev/{name}")


def _in_memory(folder: str, size_mb: int) -> tuple[str, ...]:
    return ("--perms", "1777", "--size", str(size_mb * MEGABYTE), "--tmpfs", folder)


def _mounts(command: Command, *, by_others: bool) -> Iterator[str]:
    if command.folder is not None:
        yield from ("--ro-bind", str(command.folder.resolve()), INPUT)
    for mount in command.mounts:
        if by_others and _is_private(mount.source):
            raise SandboxError(f"Only its owner may read {mount.source}: chmod -R o+rX it.")
        for parent in reversed(PurePosixPath(mount.target).parents):
            if not parent.is_relative_to(WORK) and not parent.is_relative_to("/usr"):
                yield from _folder(str(parent))
        yield from ("--ro-bind", str(mount.source.resolve()), mount.target)


def _is_private(path: Path) -> bool:
    """Whether others may not look into it, as into most temporary folders."""
    needed = stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)
    return path.exists() and path.stat().st_mode & needed != needed


def _folder(path: str) -> tuple[str, ...]:
    """Those that bubblewrap makes by itself on the way to a file are for root alone."""
    return ("--perms", "0755", "--dir", path) if path != "/" else ()


_ALL = 2**32 - 1
# Where no distribution has users, and where no container engine puts its own.
_FIRST, _COUNT = 1_900_000_000, 200_000_000


def fresh_uid(mapping: Path = Path("/proc/self/uid_map")) -> int:
    """A user id that hardly anything else on this machine has at the moment."""
    lines = mapping.read_text("ascii").splitlines() if mapping.exists() else []
    ranges = [[int(word) for word in line.split()] for line in lines]
    inside, _, count = max(ranges, key=itemgetter(2), default=(0, 0, _ALL))
    if count >= _ALL:
        return _FIRST + secrets.randbelow(_COUNT)
    # In a container there are fewer; the upper half of them is the least likely to be somebody's.
    return inside + count // 2 + secrets.randbelow(max(1, count - count // 2))


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


class _Confined(Confined):
    """One command in its namespaces, which live exactly as long as their first process."""

    def __init__(self, program: str, command: Command) -> None:
        self._program, self._command = program, command
        # Root keeps its rights over files even in a user namespace, and no count of processes
        # holds for it: so whoever is root becomes somebody else, and everybody else only seems to.
        self._uid = fresh_uid() if os.geteuid() == 0 else None
        self._first, self._first_fd = -1, -1

    async def start(self, *, output: int, control: int) -> Process:
        told = Tap(MEGABYTE)
        try:
            with Descriptors() as passed:
                held, go = passed.pipe()
                options = walls(self._command, passed, self._uid)
                options += ["--info-fd", str(told.writer), "--block-fd", str(held)]
                words = passed.holding("\0".join(options).encode())
                process = await self.spawn(
                    *(self._program, "--args", str(words), "--", *self._launcher()),
                    env={},  # what is in it could be read in /proc inside
                    stdout=output,
                    stderr=control,
                    pass_fds=(*passed.numbers, told.writer, *channel_of(self._command)),
                )
                told.started()
                await self._find_first(told)
                os.write(go, b"!")
        except OSError as error:
            raise SandboxError(f"bubblewrap could not be started: {error}") from error
        finally:
            told.close()
        return process

    def _launcher(self) -> list[str]:
        files = copying(INPUT, WORK) if self._command.folder else ""
        script = starting(self._command)
        if self._uid is None:
            return [SHELL, "-c", files + script, "sh", *self._command.argv]
        return [SHELL, "-c", as_user(self._uid, files), script, *self._command.argv]

    async def _find_first(self, told: Tap) -> None:
        """Gets hold of the first process inside, which waits for us; there may be none."""
        await told.until(
            lambda: told.content.endswith(b"}\n") or told.ended, "bubblewrap does not answer"
        )
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
        first, self._first_fd = self._first_fd, -1
        if first >= 0:
            await killed(first)
        await super().end()

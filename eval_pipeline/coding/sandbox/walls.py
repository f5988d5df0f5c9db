"""What bubblewrap is told: which namespaces, which files, which variables, and nothing else."""

import platform
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from eval_pipeline.coding.sandbox.descriptors import Descriptors
from eval_pipeline.coding.sandbox.image import SYSTEM
from eval_pipeline.coding.sandbox.launching import environment
from eval_pipeline.coding.sandbox.sandbox import INPUT, WORK, Command, SandboxError
from eval_pipeline.coding.sandbox.seccomp import filter_program
from eval_pipeline.coding.sandbox.supervising import MEGABYTE

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
        return
    for right in _KEPT_FOR_A_WHILE:
        yield from ("--cap-add", right)


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

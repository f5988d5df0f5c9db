"""What a tree of processes uses, read from /proc: where there is none, nothing can be seen."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")
# What the kernel keeps for a file besides its content, about.
_INODE = 1024
# What it may keep in a socket, which is in nobody's memory; so many need not be looked at.
_SOCKET, _FEW_DESCRIPTORS = 2**20, 512
# So many processes of one command may want to run at once before they are a crowd.
_CROWD, _LAST = 8, 19


@dataclass(frozen=True)
class Usage:
    """Bytes of memory, bytes of files in memory, and processes with all their threads."""

    memory: int = 0
    files: int = 0
    tasks: int = 0


def tree(root: int) -> list[int]:
    """The process and all that descend from it; orphans of a namespace belong to its first."""
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting.extend(_children(process))
    return found


def usage(processes: Iterable[int], *, enough: int, files: int = 0) -> Usage:
    """What the processes use; looked at closely only if it might be more than `enough`."""
    processes = list(processes)
    tasks = sum(len(_listed(process, "task")) for process in processes)
    memory = sum(map(_resident, processes))
    if memory > enough:
        memory = sum(map(_share, processes))
    return Usage(memory + _in_descriptors(processes), files, tasks)


def let_others_go_first(processes: Iterable[int]) -> None:
    """Makes a crowd yield to everybody else, or the time of other commands runs out meanwhile.

    Each session is scheduled apart on many machines, so that it has to be told apart too.
    """
    processes = list(processes)
    if sum(map(_wants_to_run, processes)) > _CROWD:
        for process in processes:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, process, _LAST)
            with suppress(OSError):
                (_PROC / str(process) / "autogroup").write_text(str(_LAST), "ascii")


def files_in(process: int, folders: Iterable[str]) -> int:
    """Bytes of memory in the file systems that the process has at these folders."""
    used = 0
    for folder in folders:
        with suppress(OSError):
            system = os.statvfs(_PROC / str(process) / "root" / folder.strip("/"))
            used += (system.f_blocks - system.f_bfree) * system.f_frsize
            used += (system.f_files - system.f_ffree) * _INODE
    return used


def _read(process: int, name: str) -> bytes:
    """Return what /proc says of the process; nothing once the process has ended."""
    with suppress(OSError):
        return (_PROC / str(process) / name).read_bytes()
    return b""


def _listed(process: int, name: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(_PROC / str(process) / name)  # noqa: PTH208 (names will do)
    return []


def _children(process: int) -> Iterator[int]:
    for thread in _listed(process, "task"):
        yield from map(int, _read(process, f"task/{thread}/children").split())


def _in_descriptors(processes: Iterable[int]) -> int:
    """Bytes that the kernel may hold behind all open descriptors, if these are many."""
    descriptors = sum(len(_listed(process, "fd")) for process in processes)
    return max(0, descriptors - _FEW_DESCRIPTORS) * _SOCKET


def _wants_to_run(process: int) -> bool:
    # Behind its name, which may have any letters in it.
    return _read(process, "stat").rpartition(b") ")[2].startswith(b"R")


def _resident(process: int) -> int:
    """Everything that is in memory for the process, also what it shares with others."""
    pages = _read(process, "statm").split()[1:2]
    return sum(map(int, pages)) * _PAGE


def _share(process: int) -> int:
    """Its part of what is in memory for it; what is shared with forks is not counted twice."""
    for file, names in (
        ("smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")),
        ("status", (b"RssAnon:", b"RssShmem:")),
    ):
        lines = _read(process, file).splitlines()
        if amounts := [int(line.split()[1]) for line in lines if line.startswith(names)]:
            return sum(amounts) * 1024
    return 0

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
    tasks = sum(map(_tasks, processes))
    memory = sum(map(_resident, processes))
    if memory > enough:
        memory = sum(map(_share, processes))
    return Usage(memory, files, tasks)


def files_in(process: int, folders: Iterable[str]) -> int:
    """Bytes of memory in the file systems that the process has at these folders."""
    return sum(_files(_PROC / str(process) / "root" / folder.strip("/")) for folder in folders)


def _files(folder: Path) -> int:
    try:
        system = os.statvfs(folder)
    except OSError:
        return 0
    blocks = (system.f_blocks - system.f_bfree) * system.f_frsize
    return blocks + (system.f_files - system.f_ffree) * _INODE


def _children(process: int) -> Iterator[int]:
    with suppress(OSError):
        for thread in os.listdir(_PROC / str(process) / "task"):  # noqa: PTH208 (names will do)
            with suppress(OSError):
                listed = (_PROC / str(process) / "task" / thread / "children").read_bytes()
                yield from map(int, listed.split())


def _tasks(process: int) -> int:
    with suppress(OSError):
        return len(os.listdir(_PROC / str(process) / "task"))  # noqa: PTH208
    return 0


def _resident(process: int) -> int:
    """Everything that is in memory for the process, also what it shares with others."""
    with suppress(OSError, IndexError):
        return int((_PROC / str(process) / "statm").read_bytes().split()[1]) * _PAGE
    return 0


def _share(process: int) -> int:
    """Its part of what is in memory for it; what is shared with forks is not counted twice."""
    for file, names in (
        ("smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:")),
        ("status", (b"RssAnon:", b"RssShmem:")),
    ):
        with suppress(OSError):
            lines = (_PROC / str(process) / file).read_bytes().splitlines()
            amounts = [int(line.split()[1]) for line in lines if line.startswith(names)]
            if amounts:
                return sum(amounts) * 1024
    return 0

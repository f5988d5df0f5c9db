"""What it means to run a command of which nothing is to be trusted."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from eval_pipeline.errors import MendableError
from eval_pipeline.records.coding import Isolation

INPUT = "/input"
"""Where a command finds its folder, read-only."""
WORK = "/work"
"""Where a command runs: a throw-away copy of its folder."""


class SandboxError(MendableError):
    """The sandbox could not do its part; says nothing about the code that was to run in it."""

    wrong_use = False


@dataclass(frozen=True)
class Limits:
    """What one command may use, all its processes together."""

    seconds: float = 60.0
    memory_mb: int = 1024
    processes: int = 64
    output_kb: int = 256
    disk_mb: int = 256


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host that a command may read."""

    source: Path
    target: str


@dataclass(frozen=True)
class Command:
    """One command, and all of the world that it gets to see."""

    argv: tuple[str, ...]
    # Copied to /work, where the command runs; None for an empty one.
    folder: Path | None = None
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    # One end of a socket pair, for words that neither output nor files can forge: the command
    # finds its descriptor's number in EVALS_CHANNEL. Closed here as soon as the command has it.
    channel: socket.socket | None = None
    # Folders and files under /work to bring out when the command has ended by itself.
    collect: tuple[str, ...] = ()


Ending = Literal["exited", "killed", "timeout", "memory", "output", "processes"]
"""By itself, by a signal, or because it reached one of its limits."""


@dataclass(frozen=True)
class Finished:
    """How a command ended; nothing of it is alive any more."""

    ending: Ending
    exit_code: int | None
    # Standard output and error together, cut at the limit, as text without control characters.
    output: str
    seconds: float
    # What was to be collected and is a regular file within the limits.
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        return self.ending == "exited" and self.exit_code == 0


class Sandbox(Protocol):
    """Runs commands apart from everything else."""

    @property
    def isolation(self) -> Isolation:
        """How far apart; recorded with every verdict."""

    async def run(self, command: Command) -> Finished:
        """Runs the command to its end; SandboxError if that could not even begin."""

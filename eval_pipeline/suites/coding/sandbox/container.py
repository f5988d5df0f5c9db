"""Commands in containers of podman, where bubblewrap can not make its namespaces.

The container has the programs of this machine, mounted read-only into an image of links and a few
lines: a toolchain that was prepared here then runs there.
"""

import asyncio
import hashlib
import io
import secrets
import shutil
import sys
import tarfile
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from eval_pipeline.processes import to_contain_with
from eval_pipeline.records.coding import Isolation
from eval_pipeline.suites.coding.sandbox.base import (
    INPUT,
    WORK,
    Command,
    Ending,
    Finished,
    SandboxError,
)
from eval_pipeline.suites.coding.sandbox.supervise import (
    OPEN_FILES,
    SHELL,
    Confined,
    environment,
    starting,
    supervise,
)
from eval_pipeline.text import clean

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Where the programs of a Linux machine are, and what they are linked against."""
_LINES = {
    "etc/passwd": "root:x:0:0:::\nanswer:x:65534:65534::/tmp:/bin/sh\n",
    "etc/group": "root:x:0:\nanswer:x:65534:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


def host_image() -> tuple[str, bytes]:
    """Its name, which changes with its content, and its content as an archive."""
    if sys.platform != "linux":
        raise SandboxError(
            "The programs of this system do not run in a container: grade code on Linux."
        )
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for path in filter(Path.is_symlink, map(Path, SYSTEM)):
            entry = tarfile.TarInfo(str(path).lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, str(path.readlink())
            tar.addfile(entry)
        for name, text in _LINES.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode("ascii")))
    archive = content.getvalue()
    return f"evals-sandbox:{hashlib.sha256(archive).hexdigest()[:12]}", archive


def host_mounts() -> Iterator[str]:
    """Words that mount the host's programs, read-only."""
    for path in (*SYSTEM, "/etc/alternatives", "/etc/ld.so.cache"):
        if Path(path).exists() and not Path(path).is_symlink():
            yield from ("--mount", f"type=bind,source={path},target={path},readonly")


ENGINES = ("podman", "docker")
_NOBODY = "65534:65534"
_SHM_MB = 64
_TMP = "/tmp"  # noqa: S108 (inside of the container)
_CHANNEL = 3
_TROUBLE = 2000
_UNPACKING = f"PATH=/usr/bin:/bin tar -x -f - -C {WORK} || exit 1\n"


@dataclass
class ContainerSandbox:
    """One new container per command, without network, rights or anything to write to."""

    engine: str
    isolation: Isolation = "container"
    _image: str | None = None

    @classmethod
    def found(cls) -> "ContainerSandbox":
        """With the engine on the search path; SandboxError if there is none."""
        for name in ENGINES:
            if (engine := shutil.which(name)) is not None:
                return cls(engine)
        raise SandboxError(f"there is no container engine: none of {', '.join(ENGINES)}")

    async def run(self, command: Command) -> Finished:
        if command.channel is not None and not self.engine.endswith("podman"):
            raise SandboxError("Only podman can hand a channel to a command; docker can not.")
        self._image = self._image or await self._image_of_this_host()
        with tempfile.NamedTemporaryFile() as files:
            _pack(command.folder, files)
            return await supervise(command, _Contained(self.engine, self._image, command, files))

    async def _image_of_this_host(self) -> str:
        """Made when first needed; named after its content, so that it is made only once."""
        name, content = host_image()
        known = await _told(self.engine, "image", "inspect", name)
        if known is None and await _told(self.engine, "import", "-", name, stdin=content) is None:
            raise SandboxError(f"{self.engine} could not make the image {name}.")
        return name


class _Contained(Confined):
    """One command in its container."""

    def __init__(self, engine: str, image: str, command: Command, files: IO[bytes]) -> None:
        self._engine, self._image = engine, image
        self._command, self._files = command, files
        self._name = f"evals-{secrets.token_hex(8)}"

    async def start(self, *, output: int, control: int) -> Process:
        channel = self._command.channel
        # Puts the channel, which comes as standard input, where podman hands it on.
        inherit = (SHELL, "-c", f'exec {_CHANNEL}<&0 <"$0" && exec "$@"', self._files.name)
        return await self.spawn(
            *(() if channel is None else inherit),
            *(self._engine, "run", *self._options(), self._image, SHELL, "-c"),
            _UNPACKING + "exec </dev/null\n" + starting(self._command, processes=False),
            *("sh", *self._command.argv),
            env=to_contain_with(),
            stdin=self._files if channel is None else channel.fileno(),
            stdout=output,
            stderr=control,
        )

    def _options(self) -> Iterator[str]:
        limits, command = self._command.limits, self._command
        memory = f"{limits.memory_mb + limits.disk_mb}m"
        yield from ("--name", self._name, "--interactive", "--network", "none", "--read-only")
        yield from ("--cap-drop", "all", "--security-opt", "no-new-privileges", "--user", _NOBODY)
        yield from ("--memory", memory, "--memory-swap", memory, "--ipc", "private")
        yield from ("--pids-limit", str(limits.processes), "--shm-size", f"{_SHM_MB}m")
        yield from ("--ulimit", "core=0:0", "--ulimit", f"nofile={OPEN_FILES}:{OPEN_FILES}")
        for folder in (WORK, _TMP):
            size = f"size={limits.disk_mb}m"
            yield from ("--tmpfs", f"{folder}:rw,exec,nosuid,nodev,mode=1777,{size}")
        yield from host_mounts()
        if command.folder is not None:
            yield from _mounted(command.folder, INPUT)
        for mount in command.mounts:
            yield from _mounted(mount.source, mount.target)
        variables = dict(environment(command))
        if command.channel is not None:
            yield from ("--preserve-fds", "1")
            variables["EVALS_CHANNEL"] = str(_CHANNEL)
        for name, value in variables.items():
            yield from ("--env", f"{name}={value}")
        yield from ("--workdir", WORK)

    async def end(self) -> None:
        await super().end()
        if self.process is not None:
            # Podman would first ask nicely and wait for an answer.
            await _told(self._engine, "kill", self._name)
            await _told(self._engine, "rm", "--force", self._name)

    async def verdict(self) -> Ending | None:
        """Whether memory ran out; an engine that knows nothing of its container is out of order."""
        state = await _told(self._engine, "inspect", "--format", "{{.State.OOMKilled}}", self._name)
        if state is None:
            raise SandboxError(f"{self._engine} lost the container of a command.")
        return "memory" if state.strip() == "true" else None


def _mounted(source: Path, target: str) -> tuple[str, str]:
    return ("--mount", f"type=bind,source={source.resolve()},target={target},readonly")


def _pack(folder: Path | None, files: IO[bytes]) -> None:
    """As a stream, since the folder's owner may be nobody inside of the container."""
    with tarfile.open(fileobj=files, mode="w") as tar:
        if folder is not None:
            for entry in sorted(folder.iterdir()):
                tar.add(entry, entry.name)
    files.seek(0)


async def _told(engine: str, *words: str, stdin: bytes | None = None) -> str | None:
    """What the engine says to a question; None if it says no."""
    process = await asyncio.create_subprocess_exec(
        *(engine, *words),
        env=to_contain_with(),
        stdin=DEVNULL if stdin is None else PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,  # a Ctrl-C is for us; what is being graded is waited for
    )
    said, _ = await process.communicate(stdin)
    return clean(said, _TROUBLE) if process.returncode == 0 else None

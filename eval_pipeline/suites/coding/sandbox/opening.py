"""Opens a sandbox, and only one that has shown on this machine, now, that it holds."""

import asyncio
import logging
import os
import secrets
import socket
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from eval_pipeline.records.coding import Isolation
from eval_pipeline.suites.coding.sandbox.base import Command, Limits, Mount, Sandbox, SandboxError
from eval_pipeline.suites.coding.sandbox.bwrap import BwrapSandbox
from eval_pipeline.suites.coding.sandbox.container import ContainerSandbox
from eval_pipeline.suites.coding.sandbox.unconfined import NoSandbox

_PROBE = (Path(__file__).parent / "probe.py").read_text("utf-8")
_HOLDS = "the sandbox holds"
_DECOY = "EVALS_DECOY_KEY"
_LIMITS = Limits(seconds=60, memory_mb=512, processes=32, disk_mb=32)
_OTHER = {
    "bwrap": 'use a container engine: isolation = "container" under [coding] in the settings, with '
    "podman installed",
    "container": 'use bubblewrap: isolation = "bwrap" under [coding] in the settings',
}
_WAYS_OUT = (
    "Answers are not run without a sandbox. Either {}; or, if you trust every answer with all that "
    "this user can reach, pass --unsafe-no-sandbox."
)
_NAMESPACES = (
    " Where Ubuntu's AppArmor forbids user namespaces, either install its profile for bubblewrap "
    "(apt-get install apparmor-profiles, then link bwrap-userns-restrict into /etc/apparmor.d) or "
    "allow them: sysctl kernel.apparmor_restrict_unprivileged_userns=0; elsewhere look at "
    "sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone."
)
log = logging.getLogger(__name__)


def open_sandbox(isolation: Isolation, *, unsafe: bool = False) -> Sandbox:
    """The sandbox of that kind; SandboxError with the ways out if it does not hold here."""
    if unsafe:
        log.warning(
            "Answers run WITHOUT A SANDBOX: what a model wrote can read, change and send whatever "
            "this user can. Every verdict says so (isolation: none)."
        )
        return NoSandbox()
    ways_out = _WAYS_OUT.format(_OTHER["container" if isolation == "container" else "bwrap"])
    if isolation == "none":
        raise SandboxError(f'isolation = "none" is refused by itself. {ways_out}')
    try:
        return _proven(isolation)
    except SandboxError as error:
        forbidden = isolation == "bwrap" and "could not start a command" in str(error)
        reason = str(error).rstrip(".") + "." + (_NAMESPACES if forbidden else "")
        raise SandboxError(f"No sandbox ({isolation}): {reason} {ways_out}") from error


@cache
def _proven(isolation: Isolation) -> Sandbox:
    """Tried once per process: walls that stood a minute ago still stand."""
    sandbox = BwrapSandbox.found() if isolation == "bwrap" else ContainerSandbox.found()
    # In a thread, as whoever opens a sandbox may be in the middle of waiting for something else.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, prove(sandbox)).result()
    return sandbox


async def prove(sandbox: Sandbox) -> None:
    """Has a decoy looked for from inside; SandboxError if anything of it can be seen."""
    ours, theirs = socket.socketpair()
    with ours, theirs:  # without a channel, no test could say what came of it
        simple = await sandbox.run(Command(("/bin/true",), limits=_LIMITS, channel=theirs))
    if not simple.succeeded:
        raise SandboxError(f"a command that does nothing ended as {simple.ending}")
    secret = secrets.token_hex(16)
    with tempfile.NamedTemporaryFile("w", suffix=".decoy") as file, socket.socket() as listener:
        file.write(secret)
        file.flush()
        os.fchmod(file.fileno(), 0o644)  # only the walls are to be in the way
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        os.putenv(_DECOY, secret)  # for whatever is started now, and not for us
        try:
            seen = await sandbox.run(_look(file.name, listener.getsockname()[1]))
        finally:
            os.unsetenv(_DECOY)
    if not seen.succeeded or seen.output.strip() != _HOLDS:
        raise SandboxError(f"it does not hold ({seen.ending}): {seen.output.strip()[-500:]}")


def _look(file: str, port: int) -> Command:
    """Runs the probe with this very Python, whose folder may have to be mounted."""
    home = Path(sys.base_prefix).resolve()
    mounts = () if home.is_relative_to("/usr") else (Mount(home, str(home)),)
    python = str(Path(sys.executable).resolve())
    words = (python, "-I", "-S", "-c", _PROBE, _DECOY, file, str(port))
    return Command(words, mounts=mounts, limits=_LIMITS)

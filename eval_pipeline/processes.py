"""Our own modules as processes: what one takes is given back when it ends, and it has no keys."""

import os
import subprocess
import sys
from pathlib import Path

EXPLAINED, GONE = 3, 4
"""How such a process ends if it has said what is wrong, or if a file went that it was reading."""
# Of the environment, which has keys in it.
NEEDED = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "PYTHONPATH", "SYSTEMROOT", "TEMP")
# Prefixes of the variables by which package managers find and reach their packages.
_FOR_FETCHING = ("PIP_", "NPM_CONFIG_", "BUN_CONFIG_", "SSL_CERT_", "NODE_EXTRA_CA_CERTS", "XDG_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
# Prefixes of the variables by which container commands find their engine.
_FOR_CONTAINERS = ("DOCKER_", "CONTAINER", "XDG_", "DBUS_")


def without_keys() -> dict[str, str]:
    """Return of the environment what any process needs."""
    return {name: os.environ[name] for name in NEEDED if name in os.environ}


def to_fetch_with() -> dict[str, str]:
    """Return the same, and what package managers need."""
    for_fetching = {
        name: value
        for name, value in os.environ.items()
        if name.upper().startswith(_FOR_FETCHING) or name.upper() in _PROXIES
    }
    return without_keys() | for_fetching


def to_contain_with() -> dict[str, str]:
    """Return the same, and what container engines need; no proxies: podman would hand them on."""
    found = {name: text for name, text in os.environ.items() if name.startswith(_FOR_CONTAINERS)}
    return without_keys() | found


def run_module(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the module to its end; what it writes to stderr is for us."""
    return subprocess.run(  # noqa: S603  (the modules are our own)
        [sys.executable, "-m", module, *words],
        cwd=Path(__file__).parents[1],
        env=without_keys(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def is_running(pid: int) -> bool:
    """Return whether there is a process of that number, of whichever user."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of its stderr, or at least how it ended."""
    said = done.stderr.strip().splitlines()
    return said[-1] if said else f"exit code {done.returncode}"

"""Runs inside of a sandbox and tells whether it holds: looks for what must not be there."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_DECOY, _FILE, _PORT = sys.argv[1:] if len(sys.argv) == 4 else ("", "", "0")  # noqa: PLR2004


def _faults() -> Iterator[str]:
    if _DECOY in os.environ or any(_DECOY.encode() in content for content in _environments()):
        yield "variables of the outside can be read"
    with suppress(OSError):
        Path(_FILE).read_bytes()
        yield "files of the outside can be read"
    with suppress(OSError), socket.create_connection(("127.0.0.1", int(_PORT)), timeout=5):
        yield "the network of the outside can be reached"
    status = dict(line.split(":\t", 1) for line in _status() if ":\t" in line)
    if os.geteuid() == 0 or int(status["CapEff"], 16) or int(status["CapBnd"], 16):
        yield "commands keep rights of root"
    if status["NoNewPrivs"] != "1" or status["Seccomp"] != "2":
        yield "system calls are not filtered"


def _status() -> list[str]:
    return Path("/proc/self/status").read_text("ascii").splitlines()


def _environments() -> Iterator[bytes]:
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit():
                yield (process / "environ").read_bytes()


if __name__ == "__main__":
    print("; ".join(_faults()) or "the sandbox holds")

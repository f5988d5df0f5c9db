"""An image without programs: links and lines that make the host's own programs usable in it."""

import hashlib
import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from eval_pipeline.coding.sandbox.sandbox import SandboxError

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
        for path in map(Path, SYSTEM):
            if path.is_symlink():
                tar.addfile(_link(path))
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


def _link(path: Path) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(str(path).lstrip("/"))
    entry.type, entry.linkname = tarfile.SYMTYPE, str(path.readlink())
    return entry

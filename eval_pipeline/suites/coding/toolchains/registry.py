"""Every toolchain that there is, where each keeps its environment, and how that gets there."""

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType

from filelock import FileLock

from eval_pipeline.suites.coding.toolchains.base import Toolchain, ToolchainError
from eval_pipeline.suites.coding.toolchains.convex.toolchain import Convex
from eval_pipeline.suites.coding.toolchains.python.toolchain import Python

KEPT_S = 7 * 24 * 3600
TOOLCHAINS: Mapping[str, Toolchain] = MappingProxyType({"python": Python(), "convex": Convex()})


def toolchain(name: str) -> Toolchain:
    """The toolchain of that name."""
    if name not in TOOLCHAINS:
        raise ToolchainError(
            f"There is no toolchain {name!r}; there are: {', '.join(sorted(TOOLCHAINS))}."
        )
    return TOOLCHAINS[name]


def home_of(tools: Toolchain, data: Path) -> Path:
    """Where a toolchain's environment is, or will be; another version has another one."""
    return data / "toolchains" / f"{tools.name}-{tools.version}"


def prepare(tools: Toolchain, data: Path, say: Callable[[str], None]) -> Path:
    """Makes the toolchain's environment unless it is there: whole, or not at all."""
    home = home_of(tools, data)
    if tools.is_prepared(home):
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(home.parent / f".{tools.name}.lock"):
        if not tools.is_prepared(home):
            say(f"Preparing the {tools.name} toolchain in {home}; this is done once.")
            _build(tools, home)
    return home


def prune(tools: Toolchain, data: Path) -> int:
    """Removes the environments of other versions that are old; returns how many."""
    home = home_of(tools, data)
    others = (path for path in home.parent.glob(f"{tools.name}-*") if path != home)
    # A process that was started before an update may still be at work with a recent one.
    old = [path for path in others if time.time() - path.stat().st_mtime > KEPT_S]
    for path in old:
        remove(path)
    return len(old)


def _build(tools: Toolchain, home: Path) -> None:
    """Builds beside and renames; what a build left that was killed is in nobody's way."""
    for left in home.parent.glob(f".{tools.name}-*.part"):
        remove(left)
    beside = home.parent / f".{tools.name}-{token_hex(4)}.part"
    beside.mkdir(mode=0o755)
    try:
        tools.prepare(beside)
        if home.exists():
            remove(home)
        beside.replace(home)
    except BaseException:
        remove(beside)
        raise


def remove(folder: Path) -> None:
    """Removes a folder of which parts may be read-only."""
    for inner in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        with suppress(FileNotFoundError):  # somebody else removes it too
            if not inner.is_symlink():
                inner.chmod(0o755)
    shutil.rmtree(folder, ignore_errors=True)

"""How the convex environment is fetched and built: bun from npm, everything else by bun."""

import json
import shutil
import socket
import subprocess
from filecmp import cmpfiles
from pathlib import Path
from tempfile import TemporaryDirectory

from eval_pipeline.processes import to_fetch_with
from eval_pipeline.suites.coding.toolchains.base import ToolchainError
from eval_pipeline.suites.coding.toolchains.convex.layout import (
    MARKER,
    SOURCES,
    built,
    built_cache,
    deploy_argv,
    environment,
    lint_argv,
    node,
    tests_argv,
    typecheck_argv,
    version,
)

NOT_HERE = "Convex evals need Linux on x86-64 or arm64, and this is another machine."
LONGEST = 900.0
"""Seconds that fetching may take, over a slow line too."""


def prepare(home: Path) -> None:
    """Fetches what the lock files name, and runs every tool once so that it starts quickly."""
    project = built(home)
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(SOURCES, project)
    _fetch(project)
    _warm_up(project, built_cache(home))
    _let_others_read(home)
    (home / MARKER).write_text(version(), "utf-8")


def is_prepared(home: Path) -> bool:
    """Return whether `prepare` ended well there, with the present version and harness."""
    marker = home / MARKER
    if not marker.is_file() or marker.read_text("utf-8") != version():
        return False
    harness, prepared = SOURCES / "harness", built(home) / "harness"
    names = [path.name for path in harness.iterdir()]
    return not any(cmpfiles(harness, prepared, names, shallow=False)[1:])


def _fetch(project: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise ToolchainError("Convex evals need npm once, to fetch their tools: install Node.js.")
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund")
    _run((npm, "ci", *quiet), project / "bun")
    bun = next((project / "bun" / "node_modules" / "@oven").glob("bun-*/bin/bun"), None)
    if bun is None:
        raise ToolchainError(NOT_HERE)
    _run((str(bun), "install", "--frozen-lockfile", "--ignore-scripts"), project)
    shutil.rmtree(project / "bun")
    if not Path(node(str(project))).is_file():
        raise ToolchainError(NOT_HERE)


def _warm_up(project: Path, cache: Path) -> None:
    """Takes every step with a small project; what node compiles on the way is kept."""
    answer, grader = project / "convex", project / "grader"
    for folder in (answer, grader):
        shutil.copytree(project / "sample" / folder.name, folder)
    with TemporaryDirectory() as scratch:
        work = Path(scratch)
        env = {"HOME": scratch, **environment(str(cache))}
        _run(deploy_argv(str(project)), work, env=env)
        shutil.copytree(work / "convex" / "_generated", answer / "_generated")
        _run(typecheck_argv(str(project)), work, env=env)
        _run(lint_argv(str(project)), work, env=env)
        _warm_up_tests(str(project), work, env)
    for folder in (answer, grader):
        shutil.rmtree(folder)


def _let_others_read(folder: Path) -> None:
    """Commands run as another user than who prepares, and node keeps its cache to itself."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    # The memory of a program that can not be read is out of reach for others of the same user.
    Path(node(str(built(folder)))).chmod(0o711)


def _warm_up_tests(project: str, work: Path, env: dict[str, str]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(json.dumps({"secret": "", "canary": "none of these"}).encode() + b"\n")
        env = {**env, "EVALS_CHANNEL": str(theirs.fileno())}
        _run(tests_argv(project), work, env=env, descriptors=(theirs.fileno(),))


def _run(
    argv: tuple[str, ...],
    folder: Path,
    *,
    env: dict[str, str] | None = None,
    descriptors: tuple[int, ...] = (),
) -> None:
    """Runs one of the tools, none of which sees an answer here, nor any of our keys."""
    try:
        done = subprocess.run(  # noqa: S603  (the tools that the lock files name)
            argv,
            cwd=folder,
            env=to_fetch_with() if env is None else env,
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"The convex toolchain could not be prepared: {error}") from error
    if done.returncode != 0:
        words = f"{Path(argv[0]).name} {Path(argv[1]).name} failed: {done.stdout[-2000:].strip()}"
        raise ToolchainError(f"The convex toolchain could not be prepared: {words}")

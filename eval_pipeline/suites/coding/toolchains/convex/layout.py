"""The convex environment: how it is fetched and built, and where its parts lie."""

import json
import platform
import shutil
import socket
from collections.abc import Mapping
from filecmp import cmpfiles
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from eval_pipeline.processes import to_fetch_with
from eval_pipeline.suites.coding.sandbox.base import Mount
from eval_pipeline.suites.coding.sandbox.supervise import SEARCH_PATH
from eval_pipeline.suites.coding.toolchains.base import ToolchainError, run_tool, toolchain_version

SOURCES = Path(__file__).with_name("environment")
PROJECT = "/project"
"""Where commands find the answer's folder `convex`, the tools and our configuration of them."""
CODE_CACHE = "/tmp/cache"  # noqa: S108  (in the sandbox, which has a /tmp of its own)
"""Where node looks for code that it compiled before."""
NOT_HERE = "Convex evals need Linux on x86-64 or arm64, and this is another machine."
MARKER = ".prepared"
PARTS = ("package.json", "node_modules", "harness")
VERSION = 1
"""Raise this when a change of this package or its harness may change a verdict."""
CONFIGURATION = (
    "package.json",
    "bun.lock",
    "bun/package.json",
    "bun/package-lock.json",
    "harness/tsconfig.json",
    "harness/eslint.config.js",
)
EARLIER: Mapping[str, str] = {"092f59ee21097230": "d55755881a9fc531"}
"""The hash of source text, from before explicit versions: results under it stay comparable."""

ARCHITECTURE = "arm64" if platform.machine() in ("aarch64", "arm64") else "x64"
"""This machine's, as npm packages call it."""
ENV = {
    "CONVEX_DEPLOYMENT": "",
    "NO_COLOR": "1",
    "TZ": "UTC",
    # However many cores there are, one answer is graded with a few threads.
    "GOMAXPROCS": "2",
    "RAYON_NUM_THREADS": "2",
    "TOKIO_WORKER_THREADS": "2",
    "UV_THREADPOOL_SIZE": "2",
}


def built(home: Path) -> Path:
    """The project's folder in a prepared environment."""
    return home / PROJECT.lstrip("/")


def built_cache(home: Path) -> Path:
    """The code cache of a prepared environment: to the project as it will be in a sandbox."""
    return home / CODE_CACHE.lstrip("/")


def mounts(home: Path) -> tuple[Mount, ...]:
    """The environment's part of what a command gets to see."""
    parts = (Mount(built(home) / part, f"{PROJECT}/{part}") for part in PARTS)
    return (*parts, Mount(built_cache(home), f"{PROJECT}/cache"))


def environment(code_cache: str) -> dict[str, str]:
    """The variables of every command: graders that start a node find ours, not the machine's."""
    path = f"{Path(node(PROJECT)).parent}:{SEARCH_PATH}"
    return {**ENV, "PATH": path, "EVALS_CODE_CACHE": code_cache}


def node(project: str) -> str:
    """The interpreter that comes with the environment: the machine's own does not matter."""
    return f"{project}/node_modules/node-linux-{ARCHITECTURE}/bin/node"


def script_argv(project: str, script: str, *words: str) -> tuple[str, ...]:
    """The command line of one of the harness's or a tool's scripts."""
    # That signal would open a debugger, through which an answer could change who reports on it.
    options = ("--disable-sigusr1", f"{project}/harness/start.js")
    return (node(project), *options, f"{project}/{script}", *words)


def compiler(project: str) -> str:
    return f"{project}/node_modules/@typescript/typescript-linux-{ARCHITECTURE}/lib/tsc"


def typecheck_argv(project: str) -> tuple[str, ...]:
    return script_argv(project, "harness/typecheck.js", project, compiler(project))


def lint_argv(project: str) -> tuple[str, ...]:
    options = ("--no-inline-config", "--max-warnings", "0", "convex")
    return eslint_argv(project, "harness/lint.js", "harness/eslint.config.js", *options)


def eslint_argv(project: str, script: str, config: str, *words: str) -> tuple[str, ...]:
    ours = ("--config", f"{project}/{config}", "--format", f"{project}/harness/formatter.js")
    return script_argv(project, script, *ours, *words)


def tests_argv(project: str, config: str = "vitest.config.js") -> tuple[str, ...]:
    ours = ("--config", f"{project}/harness/{config}", "--configLoader", "native")
    return script_argv(project, "node_modules/vitest/vitest.mjs", "run", *ours)


@cache
def version() -> str:
    """Hash the explicit version, the lock files and the configuration of checks."""
    return toolchain_version([VERSION], (SOURCES / name for name in CONFIGURATION), EARLIER)


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
    run_tool("convex", (npm, "ci", *quiet), to_fetch_with(), project / "bun")
    bun = next((project / "bun" / "node_modules" / "@oven").glob("bun-*/bin/bun"), None)
    if bun is None:
        raise ToolchainError(NOT_HERE)
    install = (str(bun), "install", "--frozen-lockfile", "--ignore-scripts")
    run_tool("convex", install, to_fetch_with(), project)
    shutil.rmtree(project / "bun")
    if not Path(node(str(project))).is_file():
        raise ToolchainError(NOT_HERE)


def _warm_up(project: Path, cache: Path) -> None:
    """Takes every step with a small project; what node compiles on the way is kept."""
    answer, grader = project / "convex", project / "grader"
    for folder in (answer, grader):
        shutil.copytree(project / "sample" / folder.name, folder)
    with TemporaryDirectory() as scratch:
        work, tools = Path(scratch), str(project)
        env = {"HOME": scratch, **environment(str(cache))}
        run_tool("convex", script_argv(tools, "harness/deploy.js", tools), env, work)
        shutil.copytree(work / "convex" / "_generated", answer / "_generated")
        run_tool("convex", typecheck_argv(tools), env, work)
        run_tool("convex", lint_argv(tools), env, work)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(json.dumps({"secret": "", "canary": "none of these"}).encode() + b"\n")
            env["EVALS_CHANNEL"] = str(theirs.fileno())
            run_tool("convex", tests_argv(tools), env, work, (theirs.fileno(),))
    for folder in (answer, grader):
        shutil.rmtree(folder)


def _let_others_read(folder: Path) -> None:
    """Commands run as another user than who prepares, and node keeps its cache to itself."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
    # The memory of a program that can not be read is out of reach for others of the same user.
    Path(node(str(built(folder)))).chmod(0o711)

"""Where the parts of the convex environment lie: here, when prepared, and in a sandbox."""

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from eval_pipeline.suites.coding.sandbox.base import Mount
from eval_pipeline.suites.coding.toolchains.base import toolchain_version

SOURCES = Path(__file__).with_name("environment")
PROJECT = "/project"
"""Where commands find the answer's folder `convex`, the tools and our configuration of them."""
CODE_CACHE = "/tmp/cache"  # noqa: S108  (in the sandbox, which has a /tmp of its own)
"""Where node looks for code that it compiled before."""
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


def architecture() -> str:
    """This machine's, as npm packages call it."""
    return "arm64" if platform.machine() in ("aarch64", "arm64") else "x64"


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
    """The variables of every command."""
    return {**ENV, "EVALS_CODE_CACHE": code_cache}


def node(project: str) -> str:
    """The interpreter that comes with the environment: the machine's own does not matter."""
    return f"{project}/node_modules/node-linux-{architecture()}/bin/node"


def install_argv(project: str, *words: str) -> tuple[str, ...]:
    return _argv(project, "harness/install.js", f"{PROJECT}/answer.json", *words)


def deploy_argv(project: str) -> tuple[str, ...]:
    return _argv(project, "harness/deploy.js", project)


def describe_argv(project: str) -> tuple[str, ...]:
    return _argv(project, "harness/describe.js", project)


def typecheck_argv(project: str) -> tuple[str, ...]:
    return _argv(project, "harness/typecheck.js", project, compiler(project))


def compiler(project: str) -> str:
    return f"{project}/node_modules/@typescript/typescript-linux-{architecture()}/lib/tsc"


def lint_argv(project: str) -> tuple[str, ...]:
    harness = f"{project}/harness"
    ours = ("--config", f"{harness}/eslint.config.js", "--format", f"{harness}/formatter.js")
    return _argv(
        project, "harness/lint.js", *ours, "--no-inline-config", "--max-warnings", "0", "convex"
    )


def lint_project_argv(project: str, config: str, folder: str) -> tuple[str, ...]:
    ours = ("--config", config, "--format", f"{project}/harness/formatter.js")
    return _argv(project, "harness/lint_project.js", *ours, folder)


def tests_argv(project: str, config: str = "vitest.config.js") -> tuple[str, ...]:
    ours = ("--config", f"{project}/harness/{config}", "--configLoader", "native")
    return _argv(project, "node_modules/vitest/vitest.mjs", "run", *ours)


def _argv(project: str, script: str, *words: str) -> tuple[str, ...]:
    # That signal would open a debugger, through which an answer could change who reports on it.
    options = ("--disable-sigusr1", f"{project}/harness/start.js")
    return (node(project), *options, f"{project}/{script}", *words)


@cache
def version() -> str:
    """Hash the explicit version, the lock files and the configuration of checks."""
    return toolchain_version([VERSION], (SOURCES / name for name in CONFIGURATION), EARLIER)

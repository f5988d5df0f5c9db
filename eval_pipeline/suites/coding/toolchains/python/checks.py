"""The steps that only read an answer: what it depends on, its types and its style."""

import asyncio
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from eval_pipeline.records.coding import CodingTask, Step, StepName
from eval_pipeline.suites.coding.sandbox.base import Finished, Limits
from eval_pipeline.suites.coding.toolchains.base import Workbench, finished_step, limits_of
from eval_pipeline.suites.coding.toolchains.python.environment import LOCK, ROOT, Environment
from eval_pipeline.suites.coding.toolchains.python.inside import SILENCED

_CONFIGURATION = """
    conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg setup.py
    mypy.ini .mypy.ini ruff.toml .ruff.toml sitecustomize.py usercustomize.py pyvenv.cfg
    .coveragerc
"""
_NOT_SOURCE = (".pth", ".so", ".pyd", ".dylib", ".dll", ".pyc", ".pyo", ".whl", ".egg", ".egg-link")
_FOLDERS = frozenset({"__pycache__", ".git", ".venv", "site-packages"})
_TOOLS_MODULES = """
    pytest _pytest pluggy iniconfig packaging pygments py mypy mypyc mypy_extensions ruff
    typing_extensions librt exceptiongroup tomli duckdb _duckdb pandas numpy httpx httpcore h11
    anyio pydantic pydantic_core dagster dagster_shared dagster_pipes eval_pipeline
"""
# What checks answers, and what they build on: a module of that name would be taken instead.
_TAKEN = sys.stdlib_module_names | set(_TOOLS_MODULES.split())


def refusal(path: str) -> str | None:
    """Why an answer must not bring a file with this path."""
    parts = PurePosixPath(path).parts
    name, top = parts[-1].casefold(), parts[0].partition(".")[0]
    if name in _CONFIGURATION.split():
        return "An answer must not configure its own checks."
    if name.endswith(".pyi"):
        return "A stub would be checked instead of the module itself."
    if name.endswith(_NOT_SOURCE):
        return "Only source code is graded."
    if any(part.casefold() in _FOLDERS or part.endswith("-info") for part in parts):
        return "This folder is not the answer's to bring."
    if top in _TAKEN and (len(parts) > 1 or name.endswith(".py")):
        return f"It would take the place of the module {top}."
    return None


_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)\s*(?:;\s*([^\\]+?))?\s*\\?$", re.MULTILINE)
_COMMENT = re.compile(r"(^|\s)#.*$")
# In more than that, keys and versions can be nested so that reading them takes minutes.
_MOST_BYTES = 16 * 1024


@cache
def available() -> Mapping[str, str]:
    """Version by name of everything that the environment has."""
    found = _LOCKED.findall(LOCK.read_text("utf-8"))
    return {
        canonicalize_name(name): version
        for name, version, marker in found
        if not marker or Marker(marker).evaluate()
    }


def problem(folder: Path) -> str | None:
    """Why what the answer in this folder asks for can not be had."""
    files = [*filter(Path.is_file, (*folder.glob("requirements*.txt"), folder / "pyproject.toml"))]
    if sum(path.stat().st_size for path in files) > _MOST_BYTES:
        return f"What it depends on takes more than {_MOST_BYTES} bytes to say."
    try:
        return next(filter(None, map(_missing, _asked_for(folder))), None)
    except (ValueError, RecursionError) as error:
        return f"pyproject.toml can not be read: {error}"


def _asked_for(folder: Path) -> Iterator[str]:
    for path in filter(Path.is_file, sorted(folder.glob("requirements*.txt"))):
        lines = path.read_text("utf-8", "replace").splitlines()
        yield from filter(None, (_COMMENT.sub("", line).strip() for line in lines))
    if (path := folder / "pyproject.toml").is_file():
        project = tomllib.loads(path.read_text("utf-8")).get("project")
        wanted = project.get("dependencies") if isinstance(project, dict) else None
        yield from map(str, wanted if isinstance(wanted, list) else ())


def _missing(line: str) -> str | None:
    try:
        return _lacking(Requirement(line))
    except (ValueError, KeyError):  # all that packaging raises, and numbers with too many digits
        return f"{line[:200]!r} is not a name with a version; nothing else can be depended on."


def _lacking(wanted: Requirement) -> str | None:
    if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
        return None
    version = available().get(canonicalize_name(wanted.name))
    if version is None or wanted.url:
        names = ", ".join(sorted(available()))
        return f"{wanted.name} is not available in this environment; available are: {names}"
    if not wanted.specifier.contains(version, prereleases=True):
        return f"{wanted.name} is available only as {version}, which is not {wanted.specifier}."
    return None


_TOOLS = {"typecheck": ("mypy", "Types do not hold"), "lint": ("ruff", "Rules are broken")}
LIMITS = {"typecheck": Limits(60.0), "lint": Limits(20.0), "tests": Limits(30.0)}
_TOOL_FILES = {"typecheck": ("mypy.ini", "mypy"), "lint": ("env/bin/ruff",)}


def ending(finished: Finished, limits: Limits) -> str:
    """How a command ended that did not end as it should."""
    words = {
        "timeout": f"took longer than {limits.seconds:g} s",
        "memory": f"used more than {limits.memory_mb} MB of memory",
        "output": f"wrote more than {limits.output_kb} kB of output",
        "processes": f"started more than {limits.processes} processes",
        "killed": "was ended by a signal",
        "exited": f"ended by itself with exit code {finished.exit_code}",
    }
    return words[finished.ending]


async def install(workbench: Workbench) -> Step:
    """Whether all is there that the answer wants; nothing is run or fetched."""
    reason = await asyncio.to_thread(problem, workbench.folder)
    return Step(name="install", status="failed" if reason else "passed", reason=reason or "")


async def check(step: StepName, task: CodingTask, workbench: Workbench) -> Step:
    """Types or style of all source files of the answer, by our configuration."""
    tool, complaint = _TOOLS[step]
    paths = await asyncio.to_thread(_sources, workbench.folder)
    if not paths:
        return Step(name=step, status="failed", reason="There are no Python files.")
    limits = limits_of(step, task, LIMITS[step])
    needed = [f"{ROOT}/{name}" for name in _TOOL_FILES[step]]
    words = (f"{ROOT}/inside.py", tool, *needed, "--", *paths)
    command = Environment(workbench.home).command(*words, limits=limits, folder=workbench.folder)
    finished = await workbench.sandbox.run(command)
    reason = "" if finished.succeeded else _complaint(finished, limits, complaint)
    return finished_step(step, finished, reason)


def _complaint(finished: Finished, limits: Limits, complaint: str) -> str:
    if finished.ending != "exited":
        return f"The check {ending(finished, limits)}."
    lines = [line for line in finished.output.splitlines() if line.strip()]
    if finished.exit_code == SILENCED:
        return f"It silences the check: {lines[1] if len(lines) > 1 else ''}"
    return f"{complaint}: {lines[0] if lines else ending(finished, limits)}"


def _sources(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))

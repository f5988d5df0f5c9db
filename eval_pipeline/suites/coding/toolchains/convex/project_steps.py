"""The steps of answers that are whole projects, as in a checkout of convex-evals."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from eval_pipeline.records.coding import CodingTask, Files, StepName
from eval_pipeline.suites.coding.files import private_folder, write_files
from eval_pipeline.suites.coding.sandbox.base import Command, Finished, Limits, SandboxError
from eval_pipeline.suites.coding.toolchains.base import GraderError, Workbench
from eval_pipeline.suites.coding.toolchains.convex import layout
from eval_pipeline.suites.coding.toolchains.convex.backend import Backend
from eval_pipeline.suites.coding.toolchains.convex.layout import PROJECT
from eval_pipeline.suites.coding.toolchains.convex.project import (
    COLLECTED,
    FOLDER,
    OUTPUT,
    Project,
    fair_tsconfig,
    keep_generated,
    project,
)

SECONDS: dict[StepName, float] = {
    "install": 120,
    "deploy": 150,  # of which generating code may take 60
    "typecheck": 120,
    "lint": 120,
    "tests": 300,
}
"""As long as convex-evals lets each step take."""
DESCRIPTION = "description.json"
_NOT_HERE = 3
"""How the check of a manifest ends if nobody can tell here whether it could be installed."""
_OWN_CONFIGS = ("tsconfig.json", "convex/tsconfig.json")


def refusal(path: str) -> str | None:
    """Why a project must not bring a file: tools are told their configuration, so few matter."""
    parts = path.split("/")
    if {"tsconfig.json", "package.json"} & {*parts[:-1]}:
        return "a folder is not to have the name of such a file"
    if "node_modules" in parts:
        return "packages are installed, not brought along"
    if parts[0].startswith(".env"):
        return "no answer decides on variables of the environment"
    return None


def settle(workbench: Workbench) -> None:
    """Puts what belongs to every project where tools look for it, once code has been generated."""
    folder, installed = workbench.folder, layout.built(workbench.home) / "node_modules"

    def is_installed(package: str) -> bool:
        scoped = package.removeprefix("@").replace("/", "__")
        return any((installed / name).is_dir() for name in (package, f"@types/{scoped}"))

    link_tools(folder)
    manifest = _text(folder / "package.json")
    for name in _configs(folder):
        file = folder / name
        file.write_text(fair_tsconfig(_text(file), is_installed, manifest), "utf-8")


def _text(file: Path) -> str | None:
    return file.read_text("utf-8") if file.is_file() else None


def link_tools(folder: Path) -> None:
    """Packages are looked for in the project's own folder, too."""
    link = folder / "node_modules"
    if not link.is_symlink():
        link.symlink_to("../node_modules")


def _configs(folder: Path) -> list[str]:
    """Where the project has a tsconfig.json; the usual place, where it has none."""
    return [name for name in _OWN_CONFIGS if (folder / name).is_file()] or [_OWN_CONFIGS[1]]


def install_status(finished: Finished) -> Literal["passed", "failed", "error"] | None:
    """What the check of a manifest came to; None if it did not come to its end."""
    if finished.ending != "exited":
        return None
    if finished.exit_code == 0:
        return "passed"
    return "error" if finished.exit_code == _NOT_HERE else "failed"


def typecheck_commands(workbench: Workbench) -> list[tuple[str, ...]]:
    """One for every tsconfig.json that the project has."""
    compiler = layout.compiler(PROJECT)
    return [
        (compiler, "--project", f"{PROJECT}/{OUTPUT}/{name}", "--pretty", "false")
        for name in _configs(workbench.folder)
    ]


def lint_commands(task: CodingTask, workbench: Workbench) -> list[tuple[str, ...]]:
    """With the checkout's configurations, or ours where it has none: convex/, then src/."""
    configs = [path for path in task.grader if path.rpartition("/")[2].startswith("eslint.config.")]
    nearest = max(configs, key=lambda path: path.count("/"), default="harness/eslint.config.js")
    argv = [layout.lint_project_argv(PROJECT, f"{PROJECT}/{nearest}", "convex")]
    src = next((path for path in task.grader if path.startswith("src.eslint.config.")), None)
    if src and (workbench.folder / "src").is_dir():
        argv.append(layout.lint_project_argv(PROJECT, f"{PROJECT}/{src}", "src"))
    return argv


@contextmanager
def graded_by(files: Files, workbench: Workbench, more: Files | None = None) -> Iterator[Project]:
    """The answer's project among the checkout's files, which lie where they import each other."""
    with private_folder("grader") as folder:
        write_files(folder, {**files, **(more or {})})
        added = {entry.name: entry for entry in folder.iterdir()}
        with project(workbench, added, whole=True) as seen:
            yield seen


def beside(task: CodingTask) -> Files:
    """What graders import of the reference: names of functions, the same for everybody."""
    api = (
        'import { anyApi, componentsGeneric } from "convex/server";\n'
        "export const api = anyApi;\nexport const internal = anyApi;\n"
        "export const components = componentsGeneric();\n"
    )
    folder = f"evals/{task.id}/answer/{FOLDER}"
    return {f"{folder}/api.js": api, f"{folder}/dataModel.js": "export {};\n"}


async def description(
    task: CodingTask, workbench: Workbench, limits: Limits, server: Backend | None
) -> str:
    """The reference's schema and functions as JSON, for graders that compare an answer with them.

    It is made apart, so that no answer ever finds the reference beside itself.
    """
    key = f"{task.grader_version}-{server.url if server else ''}"
    if (known := _DESCRIBED.get(key)) is not None:
        return known
    with private_folder("reference") as folder:
        write_files(folder, task.answer)
        link_tools(folder)
        apart = Workbench(workbench.sandbox, folder, workbench.home, None)
        finished = await _described(apart, limits)
        if not finished.succeeded or DESCRIPTION not in finished.files:
            raise SandboxError(f"The reference of {task.id} is not described: {finished.output}")
        told = _checked(finished.files[DESCRIPTION], task)
        if server:
            keep_generated(finished, folder)
            await deploy(apart, server)
            told = await server.describe()
    return _DESCRIBED.setdefault(key, told)


async def deploy(workbench: Workbench, server: Backend) -> None:
    """Puts a project on the server that was there before, so nobody's answer is to blame now."""
    done = await server.deploy(workbench.folder, workbench.home)
    if not done.succeeded:
        raise SandboxError(f"The backend does not take what it took before: {done.output}")


async def _described(workbench: Workbench, limits: Limits) -> Finished:
    with project(workbench, {}, whole=True) as seen:
        command = Command(
            layout.describe_argv(PROJECT),
            mounts=seen.mounts,
            env=seen.env,
            limits=limits,
            collect=(DESCRIPTION, COLLECTED),
        )
        return await workbench.sandbox.run(command)


def _checked(told: bytes, task: CodingTask) -> str:
    try:
        return json.dumps(json.loads(told))
    except ValueError as error:
        raise GraderError(f"The reference of {task.id} is described by no JSON: {error}") from error


_DESCRIBED: dict[str, str] = {}
"""By version of the grader, of which the reference is a part; one process grades many answers."""

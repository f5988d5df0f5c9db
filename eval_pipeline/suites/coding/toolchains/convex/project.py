"""Answers in the folder that commands work in, and the steps of those that are whole projects."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval_pipeline.records.coding import CodingTask, Files, StepName
from eval_pipeline.suites.coding.files import private_folder, write_files
from eval_pipeline.suites.coding.sandbox.base import Command, Finished, Limits, Mount, SandboxError
from eval_pipeline.suites.coding.toolchains.base import Workbench
from eval_pipeline.suites.coding.toolchains.convex import layout
from eval_pipeline.suites.coding.toolchains.convex.backend import Backend
from eval_pipeline.suites.coding.toolchains.convex.layout import CODE_CACHE, PARTS, PROJECT

SECONDS: dict[StepName, float] = {
    "install": 120,
    "deploy": 150,  # of which generating code may take 60
    "typecheck": 120,
    "lint": 120,
    "tests": 300,
}
"""The time that convex-evals lets each step of a whole project take."""
DESCRIPTION = "description.json"
OUTPUT = "output"
"""Where an answer that is a whole project lies in the folder of tools and graders."""
FOLDER = "convex/_generated"
GENERATED = ("api.d.ts", "api.js", "dataModel.d.ts", "server.d.ts", "server.js")
COLLECTED = "generated"
"""The folder in which commands leave generated code, at its paths in the project."""
_KEPT = re.compile(r"convex/(\w+/)*_generated/(api|server|dataModel)\.(d\.ts|js)", re.ASCII)
NOT_HERE = 3
"""How the check of a manifest ends if nobody can tell here whether it could be installed."""
_OWN_CONFIGS = ("tsconfig.json", "convex/tsconfig.json")
_DESCRIBED: dict[str, str] = {}
"""By version of the grader, of which the reference is a part; one process grades many answers."""


@contextmanager
def open_project(
    workbench: Workbench, added: Mapping[str, Path], *, whole: bool = False
) -> Iterator[Command]:
    """Yield a command, its words still missing, that sees an answer's project and what is added."""
    answer = {OUTPUT: workbench.folder} if whole else {"convex": workbench.folder / "convex"}
    sources = {**answer, **added}
    if workbench.sandbox.isolation == "none":
        with TemporaryDirectory(prefix="evals-") as folder:
            built = layout.built(workbench.home)
            _bring_together(Path(folder), {part: built / part for part in PARTS} | sources)
            env = layout.environment(f"{PROJECT}/code-cache")
            yield Command((), mounts=(Mount(Path(folder), PROJECT),), env=env)
        return
    placed = (Mount(source, f"{PROJECT}/{name}") for name, source in sources.items())
    mounts = (*layout.mounts(workbench.home), *placed)
    yield Command((), mounts=mounts, env=layout.environment(CODE_CACHE))


def _bring_together(folder: Path, sources: Mapping[str, Path]) -> None:
    """Copy the sources into the folder instead of mounting them, and link to the packages."""
    for name, source in sources.items():
        if name == "node_modules":
            (folder / name).symlink_to(source.resolve())
        elif source.is_dir():
            shutil.copytree(source, folder / name, symlinks=True)
        else:
            shutil.copyfile(source, folder / name)


def keep_generated(finished: Finished, folder: Path) -> None:
    """Writes the code that a command has generated where the project expects it."""
    brought = {path.removeprefix(f"{COLLECTED}/"): text for path, text in finished.files.items()}
    expected = [f"{FOLDER}/{name}" for name in GENERATED]
    if missing := [path for path in expected if path not in brought]:
        raise SandboxError(f"Generated code did not come out of the sandbox: {missing[0]}.")
    kept = {path: text for path, text in brought.items() if _KEPT.fullmatch(path)}
    write_files(folder, {path: text.decode("utf-8", "replace") for path, text in kept.items()})


def take_out_generated(folder: Path) -> None:
    """Removes whatever generated code a project brought along, its components' included."""
    for found in list(folder.glob("convex/**/_generated")):
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()


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
    lint = partial(layout.eslint_argv, PROJECT, "harness/lint_project.js")
    argv = [lint(nearest, "convex")]
    src = next((path for path in task.grader if path.startswith("src.eslint.config.")), None)
    if src and (workbench.folder / "src").is_dir():
        argv.append(lint(src, "src"))
    return argv


@contextmanager
def graded_by(files: Files, workbench: Workbench) -> Iterator[Command]:
    """The answer's project among the checkout's files, which lie where they import each other."""
    with private_folder("grader") as folder:
        write_files(folder, files)
        added = {entry.name: entry for entry in folder.iterdir()}
        with open_project(workbench, added, whole=True) as seen:
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
        apart = replace(workbench, folder=folder, expected_tests=None)
        with open_project(apart, {}, whole=True) as seen:
            argv = layout.script_argv(PROJECT, "harness/describe.js", PROJECT)
            collect = (DESCRIPTION, COLLECTED)
            command = replace(seen, argv=argv, limits=limits, collect=collect)
            finished = await workbench.sandbox.run(command)
        if not finished.succeeded or DESCRIPTION not in finished.files:
            raise SandboxError(f"The reference of {task.id} is not described: {finished.output}")
        told = finished.files[DESCRIPTION].decode("utf-8", "replace")
        if server:
            keep_generated(finished, folder)
            await deploy(apart, server)
            told = await server.describe()
    return _DESCRIBED.setdefault(key, told)


async def deploy(workbench: Workbench, server: Backend) -> None:
    """Puts a project on the server that was there before, so nobody's answer is to blame now."""
    succeeded, output = await server.deploy(workbench.folder, workbench.home)
    if not succeeded:
        raise SandboxError(f"The backend does not take what it took before: {output}")


OPTIONS: dict[str, Any] = {
    "target": "ESNext",
    "lib": ["ES2023", "DOM"],
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "jsx": "react-jsx",
    "strict": True,
    "noEmit": True,
    "skipLibCheck": True,
    "isolatedModules": True,
    "allowJs": True,
    "allowSyntheticDefaultImports": True,
    "forceConsistentCasingInFileNames": True,
}
"""For a project that brings none, and for whatever one does not decide."""
_LEFT_TO_PROJECTS = (
    "lib",
    "jsx",
    "jsxImportSource",
    "paths",
    "types",
    "resolveJsonModule",
    "allowImportingTsExtensions",
)


def fair_tsconfig(
    text: str | None, is_installed: Callable[[str], bool], manifest: str | None = None
) -> str:
    """A project's configuration without what says nothing about its code.

    Types of packages that are not there are dropped, resolution is a bundler's, and a list of
    libraries has the web's. It can not loosen the check: that stays strict and leaves nothing out.
    Where it lists no types, those that the manifest asks for are seen, as before TypeScript 6.
    """
    options = {**OPTIONS, **_chosen(text)}
    listed = [name for name in options.pop("types", []) if is_installed(_package(name))]
    kept = listed or [name for name in _asked_for(manifest) if is_installed(name)]
    if kept:
        options["types"] = kept
    if not {"dom", "webworker"} & {name.lower() for name in options["lib"]}:
        options["lib"] = [*options["lib"], "DOM"]
    config = {"compilerOptions": options, "include": ["./**/*"], "exclude": ["**/node_modules"]}
    return json.dumps(config, indent=2) + "\n"


def _chosen(text: str | None) -> dict[str, Any]:
    """What it may decide and does, in a form that makes sense."""
    options = _object(_parsed(text).get("compilerOptions"))
    kept = {name: options[name] for name in _LEFT_TO_PROJECTS if name in options}
    for name in ("lib", "types"):
        listed = kept.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            del kept[name]
    return kept


def _asked_for(manifest: str | None) -> list[str]:
    """The packages of which a package.json asks for types: node for @types/node."""
    said = _parsed(manifest)
    names = {*_object(said.get("dependencies")), *_object(said.get("devDependencies"))}
    return sorted(name[len("@types/") :] for name in names if name.startswith("@types/"))


def _parsed(text: str | None) -> dict[str, Any]:
    """The object of a JSON text; what is none decides nothing."""
    try:
        return _object(json.loads(text or "{}"))
    except (ValueError, RecursionError):
        return {}


def _object(said: Any) -> dict[str, Any]:
    return said if isinstance(said, dict) else {}


def _package(name: str) -> str:
    """The package that an entry of `types` is in: vite for vite/client."""
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])

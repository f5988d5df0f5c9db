"""The folder that commands work in: an answer's modules among tools that it can not change."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeGuard

from eval_pipeline.suites.coding.files import write_files
from eval_pipeline.suites.coding.sandbox.base import Finished, Mount, SandboxError
from eval_pipeline.suites.coding.sandbox.supervise import SEARCH_PATH
from eval_pipeline.suites.coding.toolchains.base import Workbench
from eval_pipeline.suites.coding.toolchains.convex.layout import (
    CODE_CACHE,
    PARTS,
    PROJECT,
    built,
    environment,
    mounts,
    node,
)


@dataclass(frozen=True)
class Project:
    """All that a command is given to see."""

    mounts: tuple[Mount, ...]
    env: Mapping[str, str]


OUTPUT = "output"
"""Where an answer that is a whole project lies in the folder of tools and graders."""


@contextmanager
def project(
    workbench: Workbench, added: Mapping[str, Path], *, whole: bool = False
) -> Iterator[Project]:
    """The project of an answer, with what is added to it under these names."""
    answer = {OUTPUT: workbench.folder} if whole else {"convex": workbench.folder / "convex"}
    sources = {**answer, **added}
    if workbench.sandbox.isolation == "none":
        with TemporaryDirectory(prefix="evals-") as folder:
            yield _in_one_folder(Path(folder), workbench.home, sources)
        return
    placed = (Mount(source, f"{PROJECT}/{name}") for name, source in sources.items())
    yield Project((*mounts(workbench.home), *placed), _environment(CODE_CACHE))


def _in_one_folder(folder: Path, home: Path, sources: Mapping[str, Path]) -> Project:
    """Without mounts, the parts can only lie together if they are brought together."""
    for part in PARTS:
        source = built(home) / part
        if part == "node_modules":
            (folder / part).symlink_to(source.resolve())
        else:
            _copy(source, folder / part)
    for name, source in sources.items():
        _copy(source, folder / name)
    return Project((Mount(folder, PROJECT),), _environment(f"{PROJECT}/code-cache"))


def _environment(code_cache: str) -> dict[str, str]:
    """With our node in front: graders may start one, and the machine's own must not matter."""
    return {**environment(code_cache), "PATH": f"{Path(node(PROJECT)).parent}:{SEARCH_PATH}"}


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copyfile(source, target)


FOLDER = "convex/_generated"
GENERATED = ("api.d.ts", "api.js", "dataModel.d.ts", "server.d.ts", "server.js")
COLLECTED = "generated"
"""The folder in which commands leave generated code, at its paths in the project."""
_KEPT = re.compile(r"convex/(\w+/)*_generated/(api|server|dataModel)\.(d\.ts|js)", re.ASCII)


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
_WITH_WEB = ("dom", "webworker")
_TYPES = "@types/"


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
    if not any(name.lower() in _WITH_WEB for name in options["lib"]):
        options["lib"] = [*options["lib"], "DOM"]
    config = {"compilerOptions": options, "include": ["./**/*"], "exclude": ["**/node_modules"]}
    return json.dumps(config, indent=2) + "\n"


def _chosen(text: str | None) -> dict[str, Any]:
    """What it may decide and does, in a form that makes sense; what is no JSON decides nothing."""
    try:
        said = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    options = said.get("compilerOptions") if isinstance(said, dict) else None
    if not isinstance(options, dict):
        return {}
    kept = {name: options[name] for name in _LEFT_TO_PROJECTS if name in options}
    for name in ("lib", "types"):
        listed = kept.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            del kept[name]
    return kept


def _asked_for(manifest: str | None) -> list[str]:
    """The packages of which a package.json asks for types: node for @types/node."""
    try:
        said = json.loads(manifest or "{}")
    except (ValueError, RecursionError):
        return []
    groups = (
        [said.get(name) for name in ("dependencies", "devDependencies")] if _is_object(said) else []
    )
    names = {name for group in groups if _is_object(group) for name in group}
    return sorted(name.removeprefix(_TYPES) for name in names if name.startswith(_TYPES))


def _is_object(said: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(said, dict)


def _package(name: str) -> str:
    """The package that an entry of `types` is in: vite for vite/client."""
    return "/".join(name.split("/")[: 2 if name.startswith("@") else 1])

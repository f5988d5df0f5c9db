"""The folder that commands work in: an answer's modules among tools that it can not change."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from eval_pipeline.coding.sandbox.launching import SEARCH_PATH
from eval_pipeline.coding.sandbox.sandbox import Mount
from eval_pipeline.coding.toolchains.convex.layout import (
    CODE_CACHE,
    PARTS,
    PROJECT,
    built,
    environment,
    mounts,
    node,
)
from eval_pipeline.coding.toolchains.toolchain import Workbench


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

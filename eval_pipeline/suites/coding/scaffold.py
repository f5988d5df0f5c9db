"""A new coding task: a folder that loads and can be graded as it is, for its author to change."""

import re
from pathlib import Path

from eval_pipeline.errors import RunError
from eval_pipeline.suites.coding.convex_checkout import is_checkout
from eval_pipeline.suites.coding.dataset import NUMBERED, task_toolchain
from eval_pipeline.suites.coding.files import write_files
from eval_pipeline.suites.coding.reply import read_files
from eval_pipeline.suites.coding.toolchains.registry import toolchain as known_toolchain

EXAMPLES = Path(__file__).parent / "examples"
"""A tiny task for each toolchain, written as a reply in files: what a new task begins as."""

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_LONGEST_NAME = 60
_LAST_NUMBER = 999


def create(root: Path, category: str, name: str, toolchain: str) -> Path:
    """Makes the folder of a new task under the next free number and says where it is.

    A category that there is already is found by its name, with or without its number.
    """
    if is_checkout(root):
        raise RunError(
            f"{root} is a checkout of convex-evals: add a folder there as its README says, "
            "or name a suite of your own with --suite."
        )
    example = (EXAMPLES / f"{known_toolchain(toolchain).name}.md").read_text("utf-8")
    _check_name(name, "a task")
    parent = _category(root, category, toolchain)
    if name in [folder.name[len("001-") :] for folder in _folders(parent)]:
        raise RunError(f"{parent.name} has a task '{name}' already; choose another name.")
    folder = parent / f"{_next_number(parent):03}-{name}"
    folder.mkdir(parents=True)
    write_files(folder, read_files(example))
    return folder


def _category(root: Path, category: str, toolchain: str) -> Path:
    """The category's folder, there or not; of two with the name, that of the same toolchain."""
    if NUMBERED.fullmatch(category):
        return root / category
    _check_name(category, "a category")
    known = [folder for folder in _folders(root) if folder.name[len("001-") :] == category]
    for folder in known:
        if any(task_toolchain(task) in (None, toolchain) for task in _folders(folder)):
            return folder
    return known[0] if known else root / f"{_next_number(root):03}-{category}"


def _check_name(name: str, of: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise RunError(
            f"'{name}' cannot be the name of {of}: it must be lower-case words with hyphens "
            f"between them, as in data-modelling, and at most {_LONGEST_NAME} characters."
        )


def _folders(root: Path) -> list[Path]:
    entries = sorted(root.iterdir()) if root.is_dir() else []
    return [entry for entry in entries if entry.is_dir() and NUMBERED.fullmatch(entry.name)]


def _next_number(folder: Path) -> int:
    number = max((int(entry.name[:3]) for entry in _folders(folder)), default=0) + 1
    if number > _LAST_NUMBER:
        raise RunError(f"{folder.name} has no free number left after {_LAST_NUMBER}.")
    return number

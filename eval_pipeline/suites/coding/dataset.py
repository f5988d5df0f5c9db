"""Task folders -> CodingTask: all of them, or an error that names each wrong one and the reason."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from eval_pipeline.errors import NAMED_PROBLEMS, DatasetError
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.base import field_error
from eval_pipeline.records.coding import STEPS, CodingTask, Files, TaskConfig, TaskLimits
from eval_pipeline.settings.sections import Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.coding.convex_checkout import checkout_tasks, is_checkout
from eval_pipeline.suites.coding.files import FolderFiles, is_ignored
from eval_pipeline.suites.coding.toolchains.base import Toolchain, ToolchainError
from eval_pipeline.suites.coding.toolchains.registry import toolchain

HARNESS = 1
"""Raised when the code changes what a pass means in a way that no file of a task shows."""
NUMBERED = re.compile(r"(\d{3})-([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")
"""How the folders of categories and tasks are named: 001-data-modelling."""
DEFAULT_TOOLCHAIN = "python"

_ALLOWED = ("TASK.txt", "answer/", "grader/", "grader.test.ts", "wrong/", "eval.toml", "GAPS.txt")
_NAMING = "must be named by three digits and lower-case words, as in 001-data-modelling"


def load_tasks(suite: Suite, settings: Settings) -> Iterator[CodingTask]:
    """Every task of a suite, sorted by id; if one is wrong there are none.

    Those that the suite leaves out have to be right too.
    """
    setting = f"suites.{suite.name}.path"
    if suite.path is None:
        raise DatasetError(f"{setting}: coding tasks are in a folder, and this is its path.")
    root = settings.path(suite.path)
    if not root.is_dir():
        raise DatasetError(f"{suite.path}: there is no such folder; correct {setting}.")
    problems: list[str] = []
    reader = checkout_tasks if is_checkout(root) else _tasks
    tasks = [_versioned(task) for task in reader(root, suite, problems)]
    if problems:
        named = [f"{suite.path}/{problem}." for problem in problems[:NAMED_PROBLEMS]]
        raise DatasetError.of(named, len(problems))
    if not tasks:
        raise DatasetError(
            f"{suite.path}: there are no tasks; one is a folder such as "
            f"001-parsing/001-dates with a TASK.txt ({setting})."
        )
    wanted = [task for task in tasks if re.search(suite.only, task.id)]
    if not wanted:
        raise DatasetError(
            f"{suite.path}: of {len(tasks)} tasks none matches suites.{suite.name}.only."
        )
    yield from wanted


def _versioned(task: CodingTask) -> CodingTask:
    version = grader_version(task, toolchain(task.toolchain).version)
    return task.model_copy(update={"grader_version": version})


def grader_version(task: CodingTask, toolchain_version: str) -> str:
    """Of all that decides a pass: the same as long as the same files are graded the same way."""
    parts = task.model_dump(
        mode="json",
        include={"toolchain", "config", "grader", "answer"},
        # Both are named anyway, whether the task itself has chosen them or not.
        exclude={"config": {"toolchain", "expected_files"}},
    )
    return fingerprint(HARNESS, toolchain_version, parts, *sorted(task.expected_files))


def task_toolchain(folder: Path) -> str | None:
    """What a task's eval.toml chooses; None if it chooses none or can not be read."""
    try:
        config = tomllib.loads((folder / "eval.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    chosen = config.get("toolchain")
    return chosen if isinstance(chosen, str) else None


def _tasks(root: Path, suite: Suite, problems: list[str]) -> Iterator[CodingTask]:
    """The tasks that are right; what is wrong with the others goes to the problems."""
    for category in _folders(root):
        if not category.name[0].isdigit():
            continue
        if category.is_symlink() or not NUMBERED.fullmatch(category.name):
            problems.append(f"{category.name}: a category is a folder that {_NAMING}")
            continue
        folders = list(_folders(category))
        names = [match for folder in folders if (match := NUMBERED.fullmatch(folder.name))]
        problems += [
            f"{category.name}: {count} tasks have the number {number}"
            for number, count in Counter(name[1] for name in names).items()
            if count > 1
        ]
        for folder in folders:
            task_id = f"{category.name}/{folder.name}"
            if folder.is_symlink() or not NUMBERED.fullmatch(folder.name):
                problems.append(f"{task_id}: a task is a folder that {_NAMING}")
                continue
            read = FolderFiles.read(folder)
            task = _task(task_id, read, suite)
            problems += [f"{task_id}: {problem}" for problem in read.problems]
            if not read.problems:
                yield task


def _folders(folder: Path) -> list[Path]:
    return sorted(
        entry for entry in folder.iterdir() if entry.is_dir() and not is_ignored(entry.name)
    )


def _task(task_id: str, read: FolderFiles, suite: Suite) -> CodingTask:
    """Return the task in a folder, and add what is wrong with it to the folder's problems."""
    for path in read.files:
        name, slash, _ = path.partition("/")
        if f"{name}{slash}" not in _ALLOWED:
            read.problems.append(f"{path} is not known here; allowed are {', '.join(_ALLOWED)}")
    config = _config(read)
    tools = _toolchain(config, suite, read)
    question, answer = read.text("TASK.txt"), read.below("answer")
    if not question and ("TASK.txt" in read.files or not read.has("TASK.txt")):
        read.problems.append("TASK.txt is missing or blank")
    if not read.has("answer/"):
        read.problems.append("answer/ is missing or empty")
    read.check("answer", answer)
    task = CodingTask(
        suite=suite.name,
        id=task_id,
        category=task_id.partition("/")[0][len("001-") :],
        question=question,
        toolchain=tools.name if tools else "",
        config=config,
        answer=answer,
        grader=_grader(read),
        wrong=_wrong(answer, read),
        gaps=read.files.get("GAPS.txt", "").strip(),
        grader_version="",
    )
    read.problems += [f"eval.toml: {problem}" for problem in _contradictions(task, tools)]
    return task


def _config(read: FolderFiles) -> TaskConfig:
    text = read.files.get("eval.toml", "").removeprefix("\ufeff")
    try:
        return TaskConfig.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        read.problems.append(f"eval.toml is not valid TOML ({error})")
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            problem = field_error(detail)
            if detail["type"] == "extra_forbidden":
                path = [str(part) for part in detail["loc"]]
                known = TaskLimits.model_fields if path[1:] else sorted(TaskConfig.model_fields)
                problem = f"{'.'.join(path)} is not known; known are {', '.join(known)}"
            read.problems.append(f"eval.toml: {problem}")
    return TaskConfig()


def _toolchain(config: TaskConfig, suite: Suite, read: FolderFiles) -> Toolchain | None:
    try:
        return toolchain(config.toolchain or suite.toolchain or DEFAULT_TOOLCHAIN)
    except ToolchainError as error:
        setting = "eval.toml" if config.toolchain else f"suites.{suite.name}"
        read.problems.append(f"{setting}: toolchain: {str(error).rstrip('.')}")
        return None


def _grader(read: FolderFiles) -> Files:
    """Return the grader's files, which keep their folder's name."""
    grader = {path: text for path, text in read.files.items() if path.startswith("grader/")}
    if (beside := read.files.get("grader.test.ts")) is not None:
        grader["grader/grader.test.ts"] = beside
    if not read.has("grader/") and not read.has("grader.test.ts"):
        read.problems.append("grader/ is missing or empty")
    return dict(sorted(grader.items()))


def _wrong(answer: Files, read: FolderFiles) -> dict[str, Files]:
    wrong: dict[str, Files] = {}
    for path, text in read.below("wrong").items():
        name, slash, inner = path.partition("/")
        if slash:
            wrong.setdefault(name, {})[inner] = text
        else:
            read.problems.append(
                f"wrong/{path} must be in a folder that says what is wrong, "
                f"as in wrong/forgets-zero/{path}"
            )
    for name, answered in wrong.items():
        read.check(f"wrong/{name}", answered)
        if answered == answer:
            read.problems.append(f"wrong/{name} is the same as answer")
    return wrong


def _contradictions(task: CodingTask, tools: Toolchain | None) -> Iterator[str]:
    """Yield each contradiction between a task's configuration and its files or its toolchain."""
    config = task.config
    for path in (path for path in config.expected_files if path not in task.answer):
        yield f"expected_files: answer has no file {path}"
    for module in config.interface:
        file = module.replace(".", "/")
        if not {f"{file}.py", f"{file}/__init__.py"} & task.answer.keys():
            yield f"interface: answer has no module {module}"
    if config.verdict == "oracle" and not config.interface:
        yield "verdict: an oracle needs an interface"
    if config.steps is not None and "tests" not in config.steps:
        yield "steps: without tests nothing would run grader/"
    known = {"filesystem", *(tools.steps if tools else STEPS)}
    for step in dict.fromkeys((*(config.steps or ()), *config.limits)):
        if step not in known:
            yield f"the toolchain {task.toolchain} has no step {step}"

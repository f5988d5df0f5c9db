"""Task folders -> CodingTask: all of them, or an error that names each wrong one and the reason."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from eval_pipeline.errors import NAMED_PROBLEMS, DatasetError
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.coding import STEPS, CodingTask, Files, TaskConfig
from eval_pipeline.settings.sections import Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.coding.convex_checkout import checkout_tasks, is_checkout
from eval_pipeline.suites.coding.files import FolderFiles, UnsafePath, check_files, is_ignored
from eval_pipeline.suites.coding.toolchains.base import Toolchain, ToolchainError
from eval_pipeline.suites.coding.toolchains.registry import toolchain

HARNESS = 1
"""Raised when the code changes what a pass means in a way that no file of a task shows."""
NUMBERED = re.compile(r"(\d{3})-([a-z][a-z0-9]*(?:-[a-z0-9]+)*)")
"""How the folders of categories and tasks are named: 001-data-modelling."""
DEFAULT_TOOLCHAIN = "python"

_ALLOWED = ("TASK.txt", "answer/", "grader/", "grader.test.ts", "wrong/", "eval.toml", "GAPS.txt")
_NAMING = "must be named by three digits and lower-case words, as in 001-data-modelling"
_BOM = "\ufeff"


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
        problems += _twice_numbered(category.name, folders)
        for folder in folders:
            task_id = f"{category.name}/{folder.name}"
            reading = _Reading(folder, task_id, suite)
            task = reading.task()
            problems += [f"{task_id}: {reason}" for reason in reading.reasons]
            if task:
                yield task


def _folders(folder: Path) -> list[Path]:
    return sorted(
        entry for entry in folder.iterdir() if entry.is_dir() and not is_ignored(entry.name)
    )


def _twice_numbered(category: str, folders: list[Path]) -> list[str]:
    counts = Counter(match[1] for folder in folders if (match := NUMBERED.fullmatch(folder.name)))
    return [
        f"{category}: {count} tasks have the number {number}"
        for number, count in counts.items()
        if count > 1
    ]


class _Reading:
    """One task's folder and the reasons why it can not be loaded, as far as it was read."""

    def __init__(self, folder: Path, task_id: str, suite: Suite) -> None:
        self.reasons: list[str] = []
        self._folder, self._id, self._suite = folder, task_id, suite

    def task(self) -> CodingTask | None:
        if self._folder.is_symlink() or not NUMBERED.fullmatch(self._folder.name):
            self.reasons.append(f"a task is a folder that {_NAMING}")
            return None
        read = FolderFiles.read(self._folder)
        self.reasons += read.problems
        self._check_names(read.files)
        config = self._config(read.files.get("eval.toml", ""))
        tools = self._toolchain(config)
        task = CodingTask(
            suite=self._suite.name,
            id=self._id,
            category=self._id.partition("/")[0][len("001-") :],
            question=self._question(read),
            toolchain=tools.name if tools else "",
            config=config,
            answer=self._answer(read),
            grader=self._grader(read),
            wrong=self._wrong(read),
            gaps=read.files.get("GAPS.txt", "").strip(),
            grader_version="",
        )
        self._check_config(task, tools)
        return None if self.reasons or tools is None else task

    def _check_names(self, files: Files) -> None:
        for path in files:
            name, slash, _ = path.partition("/")
            if f"{name}{slash}" not in _ALLOWED:
                self.reasons.append(f"{path} is not known here; allowed are {', '.join(_ALLOWED)}")

    def _question(self, read: FolderFiles) -> str:
        question = read.files.get("TASK.txt", "").removeprefix(_BOM).strip()
        if not question and ("TASK.txt" in read.files or not read.has("TASK.txt")):
            self.reasons.append("TASK.txt is missing or blank")
        return question

    def _config(self, text: str) -> TaskConfig:
        try:
            return TaskConfig.model_validate(tomllib.loads(text.removeprefix(_BOM)))
        except tomllib.TOMLDecodeError as error:
            self.reasons.append(f"eval.toml is not valid TOML ({error})")
        except ValidationError as error:
            details = error.errors(include_url=False)
            self.reasons += [f"eval.toml: {_explained(detail)}" for detail in details]
        return TaskConfig()

    def _toolchain(self, config: TaskConfig) -> Toolchain | None:
        try:
            return toolchain(config.toolchain or self._suite.toolchain or DEFAULT_TOOLCHAIN)
        except ToolchainError as error:
            setting = "eval.toml" if config.toolchain else f"suites.{self._suite.name}"
            self.reasons.append(f"{setting}: toolchain: {str(error).rstrip('.')}")
            return None

    def _answer(self, read: FolderFiles) -> Files:
        answer = read.below("answer")
        if not read.has("answer/"):
            self.reasons.append("answer/ is missing or empty")
        self._check_files("answer", answer)
        return answer

    def _grader(self, read: FolderFiles) -> Files:
        """The grader's files, which keep their folder's name."""
        grader = {path: text for path, text in read.files.items() if path.startswith("grader/")}
        if (beside := read.files.get("grader.test.ts")) is not None:
            grader["grader/grader.test.ts"] = beside
        if not read.has("grader/") and not read.has("grader.test.ts"):
            self.reasons.append("grader/ is missing or empty")
        return dict(sorted(grader.items()))

    def _wrong(self, read: FolderFiles) -> dict[str, Files]:
        wrong: dict[str, Files] = {}
        for path, text in read.below("wrong").items():
            name, slash, inner = path.partition("/")
            if not slash:
                self.reasons.append(
                    f"wrong/{path} must be in a folder that says what is wrong, "
                    f"as in wrong/forgets-zero/{path}"
                )
                continue
            wrong.setdefault(name, {})[inner] = text
        for name, answered in wrong.items():
            self._check_files(f"wrong/{name}", answered)
            if answered == read.below("answer"):
                self.reasons.append(f"wrong/{name} is the same as answer")
        return wrong

    def _check_files(self, folder: str, files: Files) -> None:
        try:
            check_files(files)
        except UnsafePath as unsafe:
            self.reasons.append(f"{folder}: {str(unsafe).rstrip('.')}")

    def _check_config(self, task: CodingTask, tools: Toolchain | None) -> None:
        config, answer = task.config, task.answer
        for path in config.expected_files:
            if path not in answer:
                self.reasons.append(f"eval.toml: expected_files: answer has no file {path}")
        for module in config.interface:
            file = module.replace(".", "/")
            if not {f"{file}.py", f"{file}/__init__.py"} & answer.keys():
                self.reasons.append(f"eval.toml: interface: answer has no module {module}")
        if config.verdict == "oracle" and not config.interface:
            self.reasons.append("eval.toml: verdict: an oracle needs an interface")
        self._check_steps(task, tools)

    def _check_steps(self, task: CodingTask, tools: Toolchain | None) -> None:
        config = task.config
        if config.steps is not None and "tests" not in config.steps:
            self.reasons.append("eval.toml: steps: without tests nothing would run grader/")
        known = {"filesystem", *(tools.steps if tools else STEPS)}
        for step in dict.fromkeys((*(config.steps or ()), *config.limits)):
            if step not in known:
                self.reasons.append(f"eval.toml: the toolchain {task.toolchain} has no step {step}")


def _explained(detail: ErrorDetails) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"{where} is not known; known are {', '.join(_known(detail['loc']))}"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{where}: {message[0].lower()}{message[1:]}"


def _known(location: tuple[Any, ...]) -> list[str]:
    fields: Mapping[str, Any] = TaskConfig.model_fields
    return sorted(fields) if len(location) == 1 else ["seconds", "memory_mb"]

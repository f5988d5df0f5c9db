"""A checkout of convex-evals -> CodingTask: its folders as they are, with all that grades them."""

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from eval_pipeline.records.coding import CodingTask, Files, StepName, TaskConfig
from eval_pipeline.settings.sections import Suite
from eval_pipeline.suites.coding.files import MAX_FILE_BYTES, FolderFiles, is_ignored

TOOLCHAIN = "convex"
GUIDELINES = Path("runner") / "models" / "guidelines.md"
"""Where a checkout keeps its guidelines, seen from its root."""
PIPELINES: dict[str, tuple[StepName, ...] | None] = {
    "backend": None,
    "static": ("tests",),
    "module": ("install", "tests"),
}
"""What eval.json may choose, and the steps that are taken then; None for all."""
LINT_CONFIGS = ("eslint.config.mjs", "eslint.config.js")
SRC_LINT_CONFIG = "src.eslint.config.mjs"
MOST_GRADER_FILES = 100
_TASKS = "evals"
"""What the folder of tasks is called in the paths of graders, whatever its name is."""
_NUMBERED = re.compile(r"\d{3}-([A-Za-z0-9][\w-]*)", re.ASCII)
_CODE = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs")
_IN_ANSWERS = (*_CODE, ".json", ".css", ".html")
_LOCKS = ("package-lock.json",)
_RESERVED = {"package.json", "node_modules", "harness", "cache", "convex", "output"}
_RELATIVE = re.compile(r"""["'`](\.{1,2}(?:/[^"'`\n]*)?)["'`]""")
_TRIED = ("", ".ts", ".tsx", ".mjs", ".js", "/index.ts", "/index.js")


def is_checkout(root: Path) -> bool:
    """Whether tasks are as in convex-evals: a grader beside the task, whole projects as answers."""
    tasks = [path.parent for path in root.glob("[0-9]*/[0-9]*/grader.test.ts")]
    ours = any((task / name).exists() for task in tasks for name in ("eval.toml", "grader"))
    return not ours and any((task / "answer" / "package.json").is_file() for task in tasks)


def guidelines_of(root: Path) -> Path | None:
    """The guidelines of the checkout that a folder of tasks is in."""
    path = root.resolve().parent / GUIDELINES
    return path if path.is_file() and is_checkout(root) else None


def checkout_tasks(root: Path, suite: Suite, problems: list[str]) -> Iterator[CodingTask]:
    """Every folder with a TASK.txt, as there; what is wrong with others goes to the problems."""
    if suite.toolchain not in (None, TOOLCHAIN):
        problems.append(f"this is a checkout of convex-evals, not of {suite.toolchain} tasks")
        return
    root = root.resolve()
    for category in _numbered(root):
        for folder in _numbered(category):
            if (folder / "TASK.txt").exists():
                task_id = f"{category.name}/{folder.name}"
                read = FolderFiles.read(folder, wanted=_wanted)
                task = _task(task_id, read, _Checkout(root), suite)
                problems += [f"{task_id}: {problem}" for problem in read.problems]
                if not read.problems:
                    yield task


def _numbered(folder: Path) -> list[Path]:
    return sorted(
        entry
        for entry in folder.iterdir()
        if _NUMBERED.fullmatch(entry.name) and entry.is_dir() and not entry.is_symlink()
    )


def _task(task_id: str, read: FolderFiles, checkout: "_Checkout", suite: Suite) -> CodingTask:
    """Return the task in a folder, and add what is wrong with it to the folder's problems."""
    question, answer = read.text("TASK.txt"), read.below("answer")
    if not question:
        read.problems.append("TASK.txt is blank or cannot be read")
    steps = PIPELINES[_pipeline(read)]
    if not answer:
        read.problems.append("answer/ is missing or empty")
    read.check("answer", answer)
    grader = checkout.grader(task_id)
    if not grader:
        read.problems.append("grader.test.ts is missing or cannot be read")
    if len(grader) > MOST_GRADER_FILES:
        read.problems.append(f"its grader imports more than {MOST_GRADER_FILES} files")
    # Only what is installed needs a manifest; a static grader looks at whatever there is.
    expected = () if steps == PIPELINES["static"] else ("package.json",)
    return CodingTask(
        suite=suite.name,
        id=task_id,
        category=task_id.partition("/")[0][len("001-") :],
        question=question,
        toolchain=TOOLCHAIN,
        config=TaskConfig(steps=steps, expected_files=expected),
        answer=answer,
        grader=grader,
        gaps=read.files.get("GAPS.txt", "").strip(),
        grader_version="",
    )


def _pipeline(read: FolderFiles) -> str:
    try:
        said = json.loads(read.files.get("eval.json", "{}"))
    except ValueError as error:
        read.problems.append(f"eval.json is not valid JSON ({error})")
        return "backend"
    chosen = said.get("pipeline", "backend") if isinstance(said, dict) else said
    if isinstance(chosen, str) and chosen in PIPELINES:
        return chosen
    known = ", ".join(PIPELINES)
    read.problems.append(f"eval.json: there is no pipeline {chosen!r}; there are {known}")
    return "backend"


@dataclass(frozen=True)
class _Checkout:
    """The files of a checkout by their paths in it, whatever its folder of tasks is called."""

    root: Path

    def grader(self, task_id: str) -> Files:
        """The grader, what it imports from the checkout, and the lint configurations that hold."""
        folder = f"{_TASKS}/{task_id}/"
        waiting = [f"{folder}grader.test.ts"]
        if self._source(waiting[0]) is None:
            return {}
        folders = (folder, f"{_TASKS}/{task_id.partition('/')[0]}/", f"{_TASKS}/", "")
        near = (f"{folder}{name}" for folder in folders for name in LINT_CONFIGS)
        nearest = next((path for path in near if self._source(path) is not None), SRC_LINT_CONFIG)
        waiting += [path for path in (nearest, SRC_LINT_CONFIG) if self._source(path)]
        found: Files = {}
        while waiting and len(found) <= MOST_GRADER_FILES:
            path = waiting.pop()
            text = self._source(path)
            if text is None or path in found:
                continue
            found[path] = text
            for named in _RELATIVE.findall(text) if path.endswith(_CODE) else ():
                waiting += self._meant(posixpath.normpath(posixpath.join(path, "..", named)))
        return dict(sorted(found.items()))

    def _meant(self, path: str) -> list[str]:
        """Which file a module's specifier stands for; generated code is made anew, not read."""
        if path.split("/", maxsplit=1)[0] in (*_RESERVED, "..") or "/_generated/" in path:
            return []
        typescript = [path.removesuffix(".js") + ".ts"] if path.endswith(".js") else []
        tried = [*typescript, *(path + end for end in _TRIED)]
        return [one for one in tried if self._source(one) is not None][:1]

    def _source(self, path: str) -> str | None:
        """A file of the checkout as text; None if it is none, or a link leads to it."""
        inside = path.partition("/")[2]
        file = self.root / inside if path.startswith(f"{_TASKS}/") else self.root.parent / path
        try:
            plain = file.is_file() and file.resolve() == file
            if not plain or file.stat().st_size > MAX_FILE_BYTES:
                return None
            return file.read_bytes().decode("utf-8")
        except (OSError, ValueError):
            return None


def _wanted(path: str) -> bool:
    """What is read of a task's folder besides its grader: its texts, and code of the answer."""
    name = PurePosixPath(path).name
    if path.startswith("answer/"):
        return path.endswith(_IN_ANSWERS) and name not in _LOCKS and not is_ignored(name)
    return path in ("TASK.txt", "GAPS.txt", "eval.json")

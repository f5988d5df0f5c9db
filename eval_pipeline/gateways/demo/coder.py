"""The simulated models' replies to coding tasks: the reference, a wrong or a broken answer."""

import re
from collections.abc import Callable, Mapping
from functools import partial

from eval_pipeline.gateways.demo.replies import REPLY_MARK, Mind, draw, is_right
from eval_pipeline.records.coding import CodingTask, Files

_PLAIN_PATH = re.compile(r"[\w./-]+")
_TYPE_ERRORS = {
    ".py": '\nSIMULATED_SLIP: int = "text"\n',
    ".ts": '\nexport const slip: number = "text";\n',
}
_LINT_ERRORS = {".py": "\nif True == True:\n    pass\n", ".ts": "\nvar slip = 1;\n"}
_PACKAGES = {
    ".py": ("requirements.txt", "simulated-package-that-nobody-made==1.0\n"),
    ".ts": ("package.json", '{"dependencies": {"simulated-package-that-nobody-made": "1.0.0"}}\n'),
}


def answer(mind: Mind, task: CodingTask, seed: int | None = None) -> str:
    """Return the mind's reply; how it fails, if it does, is the same each time."""
    if is_right(mind, task.question.strip(), seed):
        text = as_reply(task.answer)
    else:
        luck = draw("slip", mind.id, *([] if seed is None else [str(seed)]))
        # In turn, not by chance: even a few tasks then show all that can go wrong.
        turn = int(luck * len(_WAYS)) + sum(map(int, re.findall(r"\d+", task.id)))
        text = _WAYS[turn % len(_WAYS)](task)
    return (
        f"{REPLY_MARK} {mind.id} did not write this code. It is the task's reference, or that "
        f"with a mistake, chosen by a fixed rule.\n\n{text}"
    )


def as_reply(files: Files) -> str:
    """Return the files as a reply in the form that models are asked for."""
    return "\n".join(["# Files\n", *(_section(path, text) for path, text in files.items())])


def _section(path: str, text: str) -> str:
    heading = path if _PLAIN_PATH.fullmatch(path) else f"`{path}`"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    ending = "" if not text or text.endswith("\n") else "\n"
    return f"## {heading}\n\n{fence}\n{text}{ending}{fence}\n"


def _subtly_wrong(task: CodingTask) -> str:
    """Return one of the answers that look right, or half of the reference if there is none."""
    if not task.wrong:
        return _cut_off(task)
    names = sorted(task.wrong)
    return as_reply(task.wrong[names[int(draw("wrong", task.id) * len(names))]])


def _no_files(_: CodingTask) -> str:
    return "I would solve this with a small class and two functions, and test it well."


def _file_with_another_name(task: CodingTask) -> str:
    path = next(iter(task.answer))
    files = {key: text for key, text in task.answer.items() if key != path}
    folder, _, name = path.rpartition("/")
    renamed = f"{folder}/simulated_{name}" if folder else f"simulated_{name}"
    return as_reply({**files, renamed: task.answer[path]})


def _strange_package(task: CodingTask) -> str:
    path, text = _PACKAGES[_suffix(task)]
    return as_reply({**task.answer, path: text})


def _cut_off(task: CodingTask) -> str:
    return as_reply({path: f"{text[: len(text) // 2]}\n(" for path, text in task.answer.items()})


def _with(endings: Mapping[str, str], task: CodingTask) -> str:
    """Add the ending to the first file that is written in the language."""
    files, suffix = task.answer, _suffix(task)
    path = next((path for path in files if path.endswith(suffix)), None)
    if path is None:
        return _cut_off(task)
    return as_reply({**files, path: files[path] + endings[suffix]})


def _suffix(task: CodingTask) -> str:
    found = (suffix for suffix in _PACKAGES if any(path.endswith(suffix) for path in task.answer))
    return next(found, ".py")


# The ways to be wrong, half of them such that the answer looks right.
_WAYS: tuple[Callable[[CodingTask], str], ...] = (
    _subtly_wrong,
    _cut_off,
    _subtly_wrong,
    _strange_package,
    partial(_with, _TYPE_ERRORS),
    _subtly_wrong,
    partial(_with, _LINT_ERRORS),
    _no_files,
    _subtly_wrong,
    _file_with_another_name,
)

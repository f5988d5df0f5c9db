"""A new task is put under the next free number and loads as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline.errors import RunError
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.settings.sections import Suite
from eval_pipeline.suites.coding.dataset import load_tasks
from eval_pipeline.suites.coding.scaffold import EXAMPLES, create
from eval_pipeline.suites.coding.toolchains.base import ToolchainError
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS
from eval_pipeline_tests.builders import settings_in

ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, "-W", "error")


def load(root: Path) -> list[CodingTask]:
    settings = settings_in(root.parent / "project").model_copy(update={"root": root.parent})
    return list(load_tasks(Suite(name="code", kind="coding", path=Path(root.name)), settings))


def placed(root: Path, *folders: str) -> None:
    for folder in folders:
        (root / folder).mkdir(parents=True)


@pytest.mark.parametrize("toolchain", sorted(TOOLCHAINS))
def test_a_new_task_loads_without_complaint(tmp_path: Path, toolchain: str) -> None:
    folder = create(tmp_path / "evals", "parsing", "dates", toolchain)

    (task,) = load(tmp_path / "evals")

    assert folder == tmp_path / "evals" / "001-parsing" / "001-dates"
    assert (task.id, task.toolchain) == ("001-parsing/001-dates", toolchain)
    assert len(task.wrong) == 2
    assert all(task.answer.keys() == files.keys() for files in task.wrong.values())


def test_every_toolchain_has_an_example() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.md")} >= TOOLCHAINS.keys()


def test_numbers_go_on_after_the_last_one(tmp_path: Path) -> None:
    placed(tmp_path, "001-text", "004-parsing/002-times", "004-parsing/007-days", "drafts")

    old = create(tmp_path, "parsing", "dates", "python")
    new = create(tmp_path, "data-modelling", "dates", "python")

    assert old.relative_to(tmp_path) == Path("004-parsing/008-dates")
    assert new.relative_to(tmp_path) == Path("005-data-modelling/001-dates")


def test_a_category_may_be_given_with_its_number(tmp_path: Path) -> None:
    placed(tmp_path, "001-text")

    known = create(tmp_path, "001-text", "cases", "python")
    chosen = create(tmp_path, "020-maths", "sums", "python")

    assert [folder.parent.name for folder in (known, chosen)] == ["001-text", "020-maths"]


def test_of_two_categories_of_a_name_that_of_the_toolchain_is_taken(tmp_path: Path) -> None:
    for category, toolchain in (("001-text", "convex"), ("002-text", "python")):
        placed(tmp_path, f"{category}/001-first")
        (tmp_path / category / "001-first" / "eval.toml").write_text(f'toolchain = "{toolchain}"')

    folder = create(tmp_path, "text", "second", "python")

    assert folder.relative_to(tmp_path) == Path("002-text/002-second")


@pytest.mark.parametrize(
    "name", ["", "Dates", "dates_and_times", "-a", "a-", "a b", "../a", "x" * 61]
)
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    for arguments in ((name, "dates"), ("parsing", name)):
        with pytest.raises(RunError, match="cannot be the name of"):
            create(tmp_path, *arguments, "python")

    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    create(tmp_path, "parsing", "dates", "python")

    with pytest.raises(RunError, match="has a task 'dates' already"):
        create(tmp_path, "parsing", "dates", "python")


def test_an_unknown_toolchain_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="there are: "):
        create(tmp_path, "parsing", "dates", "cobol")

    assert list(tmp_path.iterdir()) == []


def test_a_category_can_be_full(tmp_path: Path) -> None:
    placed(tmp_path, "001-text/999-last")

    with pytest.raises(RunError, match="no free number"):
        create(tmp_path, "text", "dates", "python")


def test_the_python_example_passes_its_own_grader_and_its_wrong_answers_do_not(
    tmp_path: Path,
) -> None:
    folder = create(tmp_path, "parsing", "dates", "python")

    codes = {
        answer.name: subprocess.run(
            [*PYTEST, "--rootdir", str(folder), str(folder / "grader")],
            env={"PYTHONPATH": str(answer), **ALONE},
            stdout=subprocess.DEVNULL,
            check=False,
        ).returncode
        for answer in (folder / "answer", *(folder / "wrong").iterdir())
    }

    assert codes.pop("answer") == pytest.ExitCode.OK
    assert list(codes.values()) == [pytest.ExitCode.TESTS_FAILED] * 2

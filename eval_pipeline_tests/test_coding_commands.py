"""The commands about coding tasks, as a user types them, and how wide code is graded."""

import os
import subprocess
from pathlib import Path

import pytest

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.grading import num_workers
from eval_pipeline.settings.sections import Coding
from eval_pipeline.suites.coding.validate import changed_tasks
from eval_pipeline_tests.builders import settings_in, write_task
from eval_pipeline_tests.coding_stand import lend_toolchains
from eval_pipeline_tests.project import call, run

TASK = "001-numbers/007-number"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """One task, and the toolchain that it needs."""
    settings_in(tmp_path, suites=[{"name": "coding", "kind": "coding", "path": "tasks"}])
    write_task(tmp_path / "tasks", TASK, 7)
    lend_toolchains(tmp_path / "data")
    return tmp_path


@pytest.mark.slow
def test_answers_that_are_as_they_have_to_be_are_counted(project: Path) -> None:
    done = run(project, "evals validate-answers -f 007")

    assert "Tasks: 1. Answers: 2, graded wrongly: 0." in done.stdout
    assert done.returncode == 0


def test_a_wrong_answer_that_passes_is_named_whatever_it_is_called(project: Path) -> None:
    wrong = project / "tasks" / TASK / "wrong"
    for name in ("reference", "answer"):
        (wrong / name).mkdir()
        (wrong / name / "answer.py").write_text("def number() -> int:\n    return 3 + 4\n")

    done = call(project, "evals validate-answers")

    for name in ("reference", "answer"):
        assert f"{TASK} wrong/{name}: passes, but must fail." in done.stdout
    assert "Tasks: 1. Answers: 4, graded wrongly: 2." in done.stdout
    assert done.returncode == 1


def test_a_reference_that_fails_is_named(project: Path) -> None:
    answer = project / "tasks" / TASK / "answer" / "answer.py"
    answer.write_text("def number() -> int:\n    return 0\n")

    done = call(project, "evals validate-answers")

    assert f"{TASK} answer: nobody can tell, but must pass." in done.stdout
    assert done.returncode == 1


@pytest.mark.slow
def test_a_new_task_can_be_validated_as_it_is(project: Path) -> None:
    begun = call(project, "evals new numbers byte-ranges")
    done = call(project, "evals validate-answers -f byte-ranges")

    assert "evals validate-answers -f 008-byte-ranges" in begun.stdout
    assert done.stdout.endswith(" graded wrongly: 0.\n")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("evals new Numbers more", "'Numbers' cannot be the name of a category"),
        ("evals new numbers number", "has a task 'number' already"),
        ("evals new numbers more --toolchain cobol", "There is no toolchain 'cobol'"),
        ("evals new numbers more --suite other", "there are: coding."),
        ("evals validate-answers -f [", "-f must be a regular expression"),
        ("evals validate-answers --changed HEAD", "git cannot list what has changed"),
        ("evals toolchain prepare cobol", "There is no toolchain 'cobol'"),
    ],
)
def test_what_a_user_does_wrong_is_a_sentence_and_no_stack_trace(
    project: Path, command: str, sentence: str
) -> None:
    done = call(project, command, {"GIT_CEILING_DIRECTORIES": str(project.parent)})

    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_tasks_count_as_changed_whether_committed_or_not(tmp_path: Path) -> None:
    for number in range(1, 6):
        write_task(tmp_path / "tasks", f"001-numbers/00{number}-number", number)
    git(tmp_path, "init", "--initial-branch", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "five tasks")

    tasks = tmp_path / "tasks" / "001-numbers"
    (tasks / "002-number" / "TASK.txt").write_text("Write something else.\n")
    git(tmp_path, "commit", "-am", "one is changed")
    (tasks / "003-number" / "grader" / "test_answer.py").write_text("")
    (tasks / "004-number" / "GAPS.txt").write_text("It is too easy.\n")

    assert changed_tasks(tmp_path / "tasks", "HEAD~1") == {
        f"001-numbers/00{number}-number" for number in (2, 3, 4)
    }
    assert len(changed_tasks(tmp_path / "tasks", "HEAD")) == 2
    with pytest.raises(RunError, match="git cannot list"):
        changed_tasks(tmp_path / "tasks", "no-such-commit")


def test_git_is_told_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text(f"#!/bin/sh\nenv >> {tmp_path}/environment\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SOME_API_KEY", "very-secret")

    changed_tasks(tmp_path, "HEAD")

    assert "PATH=" in (tmp_path / "environment").read_text()
    assert "very-secret" not in (tmp_path / "environment").read_text()


def test_as_much_is_graded_at_once_as_cores_and_memory_allow() -> None:
    cores = len(os.sched_getaffinity(0))

    assert num_workers(Coding(num_workers=3)) == 3
    assert num_workers(Coding(memory_mb=256)) == 1
    assert num_workers(Coding(memory_mb=2**30)) == cores
    assert 1 <= num_workers(Coding()) <= cores


def test_a_reviewer_that_nobody_offers_is_told_before_any_model_is_asked(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, coding={"reviewer": "demo/nobody"})

    done = call(tmp_path, "evals run")

    assert done.returncode == 2
    assert "The model demo/nobody is in no gateway's list." in done.stderr
    assert not (settings.journal / "predictions").exists()

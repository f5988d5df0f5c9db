"""The simulated models' replies to coding tasks."""

from pathlib import Path

import pytest

from eval_pipeline.gateways.demo import coder
from eval_pipeline.gateways.demo.replies import AVERAGE, REPLY_MARK, STRONG, WEAK, Mind
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.coding.dataset import load_tasks
from eval_pipeline.suites.coding.reply import UnreadableReply, read_files
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS
from eval_pipeline_tests.builders import a_task

ROOT = Path(__file__).parents[1]
MINDS = (STRONG, AVERAGE, WEAK)


def demo_tasks() -> list[CodingTask]:
    """Those of the settings as they are committed."""
    settings = Settings.from_env({"EVALS_SETTINGS": str(ROOT / "eval_pipeline.toml")})
    coding = [suite for suite in settings.suites if suite.kind == "coding"]
    return [task for suite in coding for task in load_tasks(suite, settings)]


def kind_of(mind: Mind, task: CodingTask) -> str:
    """What is wrong with the mind's reply, as far as it can be seen without grading it."""
    try:
        files = read_files(coder.answer(mind, task), task.expected_files)
    except UnreadableReply:
        return "unreadable"
    if files == task.answer:
        return "reference"
    if files in task.wrong.values():
        return "subtly wrong"
    if set(task.expected_files) - set(files):
        return "a file is missing"
    return "a package more" if len(files) > len(task.answer) else "broken"


def test_the_same_reply_comes_each_time_and_says_that_it_is_simulated() -> None:
    task = a_task()

    replies = {coder.answer(mind, task) for mind in MINDS for _ in range(3)}

    assert len(replies) == 3
    assert all(reply.startswith(REPLY_MARK) for reply in replies)


def test_more_skill_gives_more_reference_answers() -> None:
    tasks = [a_task(f"001-words/{n:03}-task") for n in range(300)]

    right = [sum(kind_of(mind, task) == "reference" for task in tasks) for mind in MINDS]

    for count, mind in zip(right, MINDS, strict=True):
        assert count / len(tasks) == pytest.approx(mind.skill, abs=0.1)


def test_in_the_demo_every_way_of_being_wrong_occurs_for_every_toolchain_there_is() -> None:
    tasks = demo_tasks()

    found = {(task.toolchain, kind_of(mind, task)) for mind in MINDS for task in tasks}

    assert {toolchain for toolchain, _ in found} == set(TOOLCHAINS)
    assert {kind for _, kind in found} == {
        "reference",
        "subtly wrong",
        "unreadable",
        "a file is missing",
        "a package more",
        "broken",
    }


def test_a_task_without_wrong_answers_can_be_got_wrong_all_the_same() -> None:
    tasks = [a_task(f"001-words/{n:03}-task", wrong={}) for n in range(60)]

    kinds = {kind_of(WEAK, task) for task in tasks}

    assert "subtly wrong" not in kinds
    assert {"reference", "broken", "unreadable"} <= kinds


def test_code_in_a_language_it_does_not_know_is_answered_too() -> None:
    tasks = [a_task(f"001-words/{n:03}-task", answer={"main.rs": "fn main() {}"}) for n in range(9)]

    kinds = {kind_of(WEAK, task.model_copy(update={"wrong": {}})) for task in tasks}

    assert {"broken", "unreadable"} <= kinds

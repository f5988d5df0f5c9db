"""A coding task is put to a model after all that is said about every task, and word for word."""

import pytest

from eval_pipeline.gateways.demo.replies import Questions
from eval_pipeline.records.coding import CodingTask, TaskConfig
from eval_pipeline.suites.coding.guidelines import Guidelines
from eval_pipeline.suites.coding.reply import read_files
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS
from eval_pipeline.suites.kinds import Prompts, output_format
from eval_pipeline_tests.builders import a_model

FORMAT = output_format("python")
QUESTION = "Write solution.py.\n\n# Files\n\n    indented {braces}\n\nNo more."
TASK = CodingTask(
    suite="code",
    id="001-a/001-b",
    category="a",
    question=QUESTION,
    toolchain="python",
    config=TaskConfig(),
    answer={"solution.py": "x = 1\n"},
    grader={"grader/test_x.py": "secret"},
    grader_version="v1",
)


def asked(*, guidelines: str | None = "Guide.", system_role: bool = True) -> list[tuple[str, str]]:
    told = {} if guidelines is None else {"code": Guidelines.parse(guidelines)}
    messages = Prompts("", "System.", told).messages(TASK, a_model(system_role=system_role))
    return [(str(said["role"]), str(said["content"])) for said in messages]


def test_the_task_comes_last_after_a_blank_line() -> None:
    assert asked() == [
        ("system", "System."),
        ("user", f"{FORMAT}\n\nGuide.\n\nThe task:\n\n{QUESTION}"),
    ]


def test_a_model_without_a_system_role_reads_one_message() -> None:
    assert asked(system_role=False) == [
        ("user", f"System.\n\n{FORMAT}\n\nGuide.\n\nThe task:\n\n{QUESTION}"),
    ]


@pytest.mark.parametrize("nothing", [None, "", "\n"])
def test_without_guidelines_there_is_no_gap(nothing: str | None) -> None:
    assert asked(guidelines=nothing)[-1] == ("user", f"{FORMAT}\n\nThe task:\n\n{QUESTION}")


def test_neither_the_answer_nor_the_grader_is_told() -> None:
    said = str(asked())

    assert "secret" not in said
    assert "x = 1" not in said


@pytest.mark.parametrize("toolchain", sorted(TOOLCHAINS))
def test_every_toolchain_says_how_to_reply_in_a_form_that_is_read(toolchain: str) -> None:
    form = output_format(toolchain)

    files = read_files(form)

    assert list(files.values()) == ["the whole content of the file\n"]
    assert "silences a check" in form


def test_the_simulated_gateway_finds_the_task_that_it_is_asked() -> None:
    ((_, said),) = asked(guidelines="## A\n\nText.\n\n## B\n\nText.", system_role=False)

    found = Questions([TASK]).find(said)

    assert found == TASK

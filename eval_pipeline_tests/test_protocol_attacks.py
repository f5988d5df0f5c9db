"""Answers that speak to the tests themselves, in place of the server that serves them."""

import hashlib
import json
from typing import Any

import pytest

from eval_pipeline.records.coding import Step, TaskConfig, Verdict
from eval_pipeline.suites.coding.isolated_tests.relay import MAX_REPORTED, Reports
from eval_pipeline.suites.coding.isolated_tests.wire import signature
from eval_pipeline_tests.attacks import RIGHT, WRONG
from eval_pipeline_tests.coding_stand import a_task, take, with_interface

GRADER = """
from answer import add, largest

def test_add():
    assert add(2, 3) == 5

def test_largest():
    assert largest([3, 9, 4]) == 9
"""
TESTS = ["test_answer.py::test_add", "test_answer.py::test_largest"]
CONFIGS: dict[Verdict, TaskConfig] = {
    "oracle": with_interface("add", "largest"),
    "tamper_evident": TaskConfig(),
}
# Finds the line to the tests and says of its names and of every call's result what it likes.
SPEAKING = """
import gc
import json
import os
told, result = json.loads({words!r})
frames = next(one for one in gc.get_objects() if type(one).__name__ == "Frames")
frames.send({{"ready": True}})
while True:
    try:
        asked = frames.receive()
    except EOFError:
        os._exit(0)
    said = {{"interface": {{"answer": told}}}} if asked["do"] == "describe" else {{"value": result}}
    if asked["on"] == ["object", 7]:
        said = {{"value": True}}
    frames.send({{"id": asked["id"], "classes": [], **said}})
"""
FUNCTION = {"kind": "function", "async": False}
MEMBER = ["member", "answer", "largest", "ONE"]
CALLED = ["function", 8, False]
AGREES = ["function", 7, False]


def an_enum(**members: Any) -> dict[str, Any]:
    return {"kind": "enum", "name": "E", "base": "Enum", "members": {"ONE": 1, **members}}


def an_error(name: str, above: list[str]) -> dict[str, Any]:
    return {"kind": "exception", "name": name, "above": above}


SAID_OF_LARGEST = {
    "an enumeration that equals everything": an_enum(__eq__=AGREES, _missing_=CALLED),
    "an enumeration that can not be": an_enum(mro=1),
    "an error that is its own parent": an_error("E", ["ref", "answer", "largest"]),
    "an error whose name can not be": an_error("E\0", ["error", "builtins", "ValueError"]),
    "an error whose name is no text": an_error("\ud800", ["error", "builtins", "ValueError"]),
    "nothing that is known": {"kind": "fact"},
    "no word at all": {},
}


def graded(answer: str, verdict: Verdict) -> Step:
    task = a_task(GRADER, RIGHT, config=CONFIGS[verdict])
    return take("tests", task, {"answer.py": answer}, expected=TESTS)


@pytest.mark.parametrize("said", SAID_OF_LARGEST)
def test_what_an_answer_says_of_itself_neither_passes_nor_escapes(said: str) -> None:
    words = json.dumps([{"add": FUNCTION, "largest": SAID_OF_LARGEST[said]}, MEMBER])

    step = graded(SPEAKING.format(words=words), "oracle")

    assert step.status == "failed", step
    assert not any(test.passed for test in step.tests)


def test_who_speaks_as_agreed_is_understood() -> None:
    words = json.dumps([{"add": FUNCTION, "largest": FUNCTION}, 5])

    step = graded(SPEAKING.format(words=words), "oracle")

    assert [test.passed for test in step.tests] == [True, False]


@pytest.mark.parametrize("verdict", CONFIGS)
def test_what_an_error_says_can_be_kept_and_shown_anywhere(verdict: Verdict) -> None:
    answer = "def add(a, b):\n    raise ValueError('\\ud800 \\x1b[31mred')\nlargest = add\n"

    step = graded(answer, verdict)

    assert step.status == "failed"
    assert Step.model_validate_json(step.model_dump_json()) == step
    assert all("red" in test.message and "\x1b" not in test.message for test in step.tests)


SIGNING = """
import gc
import types
for one in gc.get_objects():
    if isinstance(one, types.FunctionType) and one.__qualname__ == "reporter.<locals>.say":
        one(*{words!r})
"""


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("test",),
        ("test", 5, True, "", ""),
        ("test", "name", True, "", {}),
        ("broken", {}),
        ([],),
    ],
    ids=lambda words: str(words)[:30],
)
def test_whoever_finds_the_pen_can_not_break_the_reader(words: tuple[Any, ...]) -> None:
    step = graded(SIGNING.format(words=words) + WRONG, "tamper_evident")

    assert step.status == "failed"
    assert "cannot be trusted" in step.reason


def test_reports_are_kept_up_to_a_size() -> None:
    reports = Reports()

    for number in range(10):
        text = json.dumps([number, "broken", "x" * (MAX_REPORTED // 5)])
        reports.add(json.dumps([text, _signed(reports, text)]).encode())

    assert len(reports.words) < 5
    assert reports.forged == "too much was reported"


def test_a_report_too_deep_to_be_read_is_a_forged_one() -> None:
    reports = Reports()

    reports.add(json.dumps(["[" * 100_000, "0"]).encode())

    assert reports.forged == "a report could not be read"


def _signed(reports: Reports, text: str) -> str:
    return signature(hashlib.blake2b(key=reports.key), text)

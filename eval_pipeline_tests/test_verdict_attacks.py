"""Wrong answers must not pass, whatever they do to the tests; right ones must."""

import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline.records.coding import CodingTask, TaskConfig, Verdict
from eval_pipeline_tests.attacks import ATTACKS, FOOLS_WHO_SHARES_ITS_PROCESS, RIGHT, WRONG
from eval_pipeline_tests.coding_stand import a_task, take, with_interface

GRADER = """
import pytest
from answer import add, largest

def test_add():
    expected = 5
    assert add(2, 3) == expected

def test_add_nothing():
    expected = -2
    assert add(-2, 0) == expected

def test_largest():
    expected = 9
    assert largest([3, 9, 4]) == expected
"""
TESTS = [f"test_answer.py::{name}" for name in ("test_add", "test_add_nothing", "test_largest")]
CONFIGS: dict[Verdict, TaskConfig] = {
    "oracle": with_interface("add", "largest", tests={"seconds": 20}),
    "tamper_evident": TaskConfig.model_validate({"limits": {"tests": {"seconds": 20}}}),
}
VERDICTS = tuple(CONFIGS)


def the_task(verdict: Verdict) -> CodingTask:
    return a_task(GRADER, RIGHT, config=CONFIGS[verdict])


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_right_answer_passes(verdict: Verdict) -> None:
    task = the_task(verdict)

    step = take("tests", task, expected=TESTS)

    assert (step.status, step.reason) == ("passed", "")
    assert [(test.name, test.passed) for test in step.tests] == [(name, True) for name in TESTS]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_plainly_wrong_answer_fails(verdict: Verdict) -> None:
    task = the_task(verdict)

    step = take("tests", task, {"answer.py": WRONG}, expected=TESTS)

    assert step.status == "failed"
    assert [test.passed for test in step.tests] == [False, False, False]


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_does_not_pass(attack: str, verdict: Verdict) -> None:
    task = the_task(verdict)

    step = take("tests", task, {"answer.py": ATTACKS[attack]}, expected=TESTS)

    assert step.status == "failed", step
    assert [test.name for test in step.tests] == TESTS
    assert not all(test.passed for test in step.tests)


@pytest.mark.parametrize("attack", FOOLS_WHO_SHARES_ITS_PROCESS)
def test_what_fools_tests_in_its_own_process_does_not_fool_the_oracle(attack: str) -> None:
    files = {"answer.py": FOOLS_WHO_SHARES_ITS_PROCESS[attack]}

    beside = take("tests", the_task("tamper_evident"), files, expected=TESTS)
    apart = take("tests", the_task("oracle"), files, expected=TESTS)

    assert beside.status == "passed"  # as the documents say; if this fails, they can promise more
    assert apart.status == "failed"


LIES = """
class add:
    def __init__(self, *given): pass
    def __sub__(self, other): return self
    __rsub__ = __sub__
    def __abs__(self): return 0
    def __float__(self): return 0.0
    def __contains__(self, one): return True
    def __len__(self): return 3
    def __eq__(self, other): return True
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __lt__
    __hash__ = None
largest = add
"""


@pytest.mark.parametrize(
    "assertion",
    [
        "abs(add(2, 3) - 5) < 1e-9",
        "abs(5 - add(2, 3)) < 1e-9",
        "add(2, 3) == pytest.approx(5)",
        "pytest.approx(5) == add(2, 3)",
        "5 in add(2, 3)",
        "add(2, 3) < 6",
        "6 > add(2, 3)",
        "[add(2, 3)] == [5]",
        "add(2, 3) in (5, 6)",
        "{'sum': add(2, 3)} == {'sum': 5}",
    ],
)
def test_an_object_that_agrees_with_everything_does_not_pass_the_oracle(assertion: str) -> None:
    imports = "import pytest\nfrom answer import add, largest\n"
    grader = f"{imports}def test_it():\n    assert {assertion}\n"
    task = a_task(grader, RIGHT, config=CONFIGS["oracle"])

    lying = take("tests", task, {"answer.py": LIES}, expected=["test_answer.py::test_it"])

    assert lying.status == "failed"


def test_a_module_in_the_place_of_tests_that_come_later_is_not_taken_for_them() -> None:
    tests = {f"grader/test_{name}.py": GRADER for name in ("first", "second")}
    names = [name.replace("answer", part) for part in ("first", "second") for name in TESTS]
    attack = """
import sys
import types
def _fake(name):
    fake = types.ModuleType(name)
    for test in ("test_add", "test_add_nothing", "test_largest"):
        setattr(fake, test, lambda: None)
    sys.modules[name] = fake
_fake("test_second")
"""

    step = take("tests", a_task(tests, RIGHT), {"answer.py": attack + WRONG}, expected=names)

    assert step.status == "failed"
    assert not any(test.passed for test in step.tests)


@pytest.mark.parametrize("name", ["conftest.py", "sitecustomize.py", "pytest.ini", "setup.cfg"])
@pytest.mark.parametrize("verdict", VERDICTS)
def test_files_that_configure_tests_do_nothing_even_if_they_got_in(
    name: str, verdict: Verdict
) -> None:
    python = "import os\nos._exit(1)\n"
    text = python if name.endswith(".py") else "[pytest]\n[tool:pytest]\naddopts = --co\n"

    step = take("tests", the_task(verdict), {"answer.py": RIGHT, name: text}, expected=TESTS)

    assert step.status == "passed"


@pytest.mark.parametrize(
    "attack",
    ["exits_with_success_on_import", "passes_every_report", "calls_nothing", "equal_to_everything"],
)
def test_an_exit_code_alone_is_fooled(attack: str, tmp_path: Path) -> None:
    (tmp_path / "test_answer.py").write_text(GRADER)
    (tmp_path / "answer.py").write_text((ATTACKS | FOOLS_WHO_SHARES_ITS_PROCESS)[attack])

    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    naive = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", *options, "."],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )

    assert naive.returncode == 0

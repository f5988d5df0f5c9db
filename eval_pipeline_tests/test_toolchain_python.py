"""How answers in Python are checked before they are tested, and where that is done."""

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from eval_pipeline.records.coding import CodingTask, Files, Step, StepName, TaskConfig
from eval_pipeline.suites.coding.sandbox.base import Limits
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox
from eval_pipeline.suites.coding.toolchains import registry
from eval_pipeline.suites.coding.toolchains.base import ToolchainError
from eval_pipeline.suites.coding.toolchains.python.environment import Environment
from eval_pipeline.suites.coding.toolchains.python.toolchain import Python
from eval_pipeline_tests.coding_stand import a_task, prepared, take, with_interface

CLEAN = '"""Sums."""\n\n\ndef add(a: int, b: int) -> int:\n    return a + b\n'
GRADER = "from answer import add\ndef test_add():\n    assert add(2, 3) == 5\n"


@pytest.mark.parametrize("step", ["install", "typecheck", "lint", "tests"])
@pytest.mark.parametrize("config", [TaskConfig(), with_interface("add")], ids=["beside", "apart"])
def test_a_clean_answer_passes_every_step(step: StepName, config: TaskConfig) -> None:
    task = a_task(GRADER, CLEAN, config=config)

    taken = take(step, task)

    assert (taken.status, taken.reason) == ("passed", ""), taken.output


LIBRARIES = '''"""Every library that answers may use."""

import dagster as dg
import duckdb
import httpx
import numpy as np
import pandas as pd
from pydantic import BaseModel


class Row(BaseModel):
    n: int


@dg.asset
def numbers() -> int:
    return 1


def frame() -> pd.DataFrame:
    with duckdb.connect() as db:
        total = db.execute("select 41 + 1").fetchone()
    assert total is not None
    client = httpx.Client()
    client.close()
    return pd.DataFrame({"n": np.array([Row(n=int(total[0])).n])})
'''


@pytest.mark.parametrize("step", ["typecheck", "lint", "tests"])
def test_the_libraries_of_the_environment_can_be_used(step: StepName) -> None:
    grader = (
        "from answer import frame\ndef test_frame():\n    assert frame()['n'].tolist() == [42]\n"
    )

    taken = take(step, a_task(grader, LIBRARIES))

    assert (taken.status, taken.reason) == ("passed", ""), taken.output


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, None),
        ({"requirements.txt": "# nothing\n\npandas>=2  # frames\nPyTest\nhttpx[http2]\n"}, None),
        ({"requirements.txt": "leftpad==1.0\n"}, "leftpad is not available in this environment"),
        ({"requirements.txt": "pandas<2\n"}, "pandas is available only as"),
        ({"requirements.txt": "-r other.txt\n"}, "is not a name with a version"),
        ({"requirements.txt": "--index-url https://example.org\n"}, "is not a name"),
        ({"requirements.txt": "pandas @ https://example.org/p.whl\n"}, "pandas is not available"),
        ({"requirements.txt": "leftpad; python_version < '3'\n"}, None),
        ({"pyproject.toml": "[project]\ndependencies = ['duckdb', 'flask']\n"}, "flask is not"),
        ({"pyproject.toml": "[project]\nname = 'x'\n[build-system]\nrequires = ['x']\n"}, None),
        ({"pyproject.toml": "[project\n"}, "can not be read"),
        ({"requirements.txt": "pandas; os_name ~= 'posix'\n"}, "is not a name with a version"),
        ({"requirements.txt": "pandas; 'a' < 'b'\n"}, "is not a name with a version"),
        ({"requirements.txt/a.py": CLEAN, "pyproject.toml/b.py": CLEAN}, None),
        ({"pyproject.toml": "project = 3\n"}, None),
        ({"requirements.txt": f"pandas==1{'0' * 5000}\n"}, "is not a name with a version"),
        ({"pyproject.toml": f"x = 1{'0' * 5000}\n"}, "can not be read"),
        # Reading this would take an hour.
        ({"pyproject.toml": f"{'a.' * 400_000}a = 1\n"}, "takes more than 16384 bytes"),
    ],
)
def test_only_what_is_there_can_be_depended_on(files: dict[str, str], reason: str | None) -> None:
    taken = take("install", a_task(), {"answer.py": CLEAN, **files})

    assert taken.status == ("failed" if reason else "passed")
    assert (reason or "") in taken.reason


def checked(step: StepName, source: str, others: Files | None = None) -> Step:
    return take(step, a_task(), {"answer.py": source} | (others or {}))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f(a):\n    return a\n", "missing a type annotation"),
        ("x: int = 'a'\n", "Incompatible types"),
        ("def f(:\n", "answer.py:1"),
        ("import nothing_of_that_name\n", "nothing_of_that_name"),
        ("import yaml\n", "yaml"),
        ("x: int = 'a'  # type: ignore\n", "silences the check: answer.py:1"),
        ("x: int = 'a'  # type: ignore[assignment]\n", "silences the check"),
        ("# mypy: ignore-errors\nx: int = 'a'\n", "silences the check"),
        ("# pyright: basic\nx = 1\n", "silences the check"),
        ("import typing\n@typing.no_type_check\ndef f(a): ...\n", "no_type_check"),
    ],
)
def test_types_are_checked_strictly_and_can_not_be_silenced(source: str, said: str) -> None:
    taken = checked("typecheck", source)

    assert taken.status == "failed"
    assert said in taken.reason


def test_a_string_that_looks_like_a_silencer_is_a_string() -> None:
    source = '"""Says # type: ignore and # noqa."""\n\nWORDS = "# mypy: ignore-errors"\n'

    assert checked("typecheck", source).status == "passed"
    assert checked("lint", source).status == "passed"


def test_every_module_is_checked_and_modules_find_each_other() -> None:
    source = "from shop.till import total\n\nprint(total([1]))\n"
    right = "def total(prices: list[int]) -> int:\n    return sum(prices)\n"

    good = checked("typecheck", source, {"shop/till.py": right, "shop/__init__.py": ""})
    bad = checked("typecheck", source, {"shop/till.py": f"{right}X: str = 1\n"})

    assert (good.status, good.reason) == ("passed", "")
    assert bad.status == "failed"
    assert "shop/till.py" in bad.reason


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os\n", "F401"),
        ("x = 1\n" + "y = '" + "a" * 100 + "'\n", "E501"),
        ("from typing import List\n\nx: List[int] = []\n", "UP"),
        ("import os  # noqa: F401\n", "silences the check"),
        ("# ruff: noqa\nimport os\n", "silences the check"),
        ("# flake8: noqa\nimport os\n", "silences the check"),
        ("def f(a=[]):\n    return a\n", "B006"),
    ],
)
def test_style_is_checked_by_our_rules_and_can_not_be_silenced(source: str, said: str) -> None:
    taken = checked("lint", source)

    assert taken.status == "failed"
    assert said in taken.reason


def test_an_answers_own_configuration_is_not_read() -> None:
    config = (
        "[tool.mypy]\nignore_errors = true\n[tool.ruff.lint]\nselect = []\n"
        "[tool.pytest.ini_options]\naddopts = '--collect-only'\n"
    )
    files = {"answer.py": "import os\nx: int = 'a'\n", "pyproject.toml": config}

    assert take("typecheck", a_task(), files).status == "failed"
    assert take("lint", a_task(), files).status == "failed"
    clean = {"answer.py": CLEAN, "pyproject.toml": config}
    assert take("tests", a_task(GRADER, CLEAN), clean).status == "passed"


def test_messages_show_nothing_of_the_host() -> None:
    grader = "import sys, httpx\ndef test_paths():\n    assert [sys.path, httpx.__file__] == 1\n"

    taken = take("tests", a_task(grader, CLEAN))

    assert "/toolchain" in taken.output
    assert str(Path.home()) not in taken.output
    assert str(prepared()) not in taken.output


@pytest.mark.parametrize(
    "path",
    [
        *("conftest.py", "pkg/conftest.py", "CONFTEST.py", "pytest.ini", "pytest.toml", "tox.ini"),
        *("setup.cfg", "setup.py", "mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", "a.pyi"),
        *("sitecustomize.py", "usercustomize.py", "x.pth", "x.so", "x.pyc", "__pycache__/x.py"),
        *("typing.py", "asyncio/__init__.py", "pytest.py", "_pytest/runner.py", "pandas.py"),
        *("eval_pipeline/x.py", "json/decoder.py", "x-1.0.dist-info/METADATA", "pluggy.py"),
    ],
)
def test_files_that_could_decide_their_own_grade_are_refused(path: str) -> None:
    assert Python().refuses(path)


@pytest.mark.parametrize(
    "path",
    [
        *("answer.py", "shop/queue.py", "shop/__init__.py", "README.md", "pyproject.toml"),
        *("data.json", "requirements.txt", "test_answer.py", "tests/test_more.py", "queries.sql"),
    ],
)
def test_other_files_are_welcome(path: str) -> None:
    assert Python().refuses(path) is None


def test_a_tests_own_modules_and_data_are_found_beside_it() -> None:
    task = a_task(
        answer=CLEAN,
        grader={
            "grader/test_one.py": (
                "import pathlib\nfrom answer import add\n"
                "def test_data():\n"
                "    here = pathlib.Path(__file__).parent\n"
                "    assert add(2, 3) == int((here / 'data.txt').read_text())\n"
            ),
            "grader/test_two.py": GRADER,
            "grader/data.txt": "5\n",
        },
    )

    taken = take("tests", task)

    assert taken.status == "passed", taken.output
    assert [test.name for test in taken.tests] == [
        "test_one.py::test_data",
        "test_two.py::test_add",
    ]


@pytest.mark.parametrize("config", [TaskConfig(), with_interface("add")], ids=["beside", "apart"])
def test_tests_that_are_not_the_references_do_not_count(config: TaskConfig) -> None:
    task = a_task(GRADER, CLEAN, config=config)

    missing = take("tests", task, expected=["test_answer.py::test_add", "test_answer.py::test_b"])
    stray = take("tests", task, expected=[])

    assert [test.passed for test in missing.tests] == [True, False]
    assert missing.status == "failed"
    assert "did not run" in missing.tests[1].message
    assert stray.status == "failed"


def test_without_a_sandbox_the_steps_are_the_same() -> None:
    sandbox = open_sandbox("none", unsafe=True)
    tasks = [
        a_task(GRADER, CLEAN, config=config) for config in (TaskConfig(), with_interface("add"))
    ]

    for task in tasks:
        for step in Python.steps:
            taken = take(step, task, sandbox=sandbox)
            assert (taken.status, taken.reason) == ("passed", ""), taken.output


def test_an_unknown_toolchain_is_told_with_those_there_are() -> None:
    with pytest.raises(ToolchainError, match=r"no toolchain 'cobol'; there are: .*python"):
        registry.toolchain("cobol")


def test_an_unprepared_toolchain_says_what_to_do(tmp_path: Path) -> None:
    assert not Python().is_prepared(tmp_path)
    with pytest.raises(ToolchainError, match="not prepared"):
        Environment(tmp_path).command("server", limits=Limits())


class Slow(Python):
    """A toolchain that takes a moment to prepare."""

    version = "1"

    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails

    def is_prepared(self, home: Path) -> bool:
        return (home / "done").exists()

    def prepare(self, home: Path) -> None:
        (home / "half").write_text("")
        if self._fails:
            raise ToolchainError("no network")
        with (home.parent / "count").open("a") as count:
            count.write("x")
        time.sleep(0.1)
        (home / "done").write_text("")


def _prepare(data: Path) -> None:
    registry.prepare(Slow(), data, print)


def test_preparing_fails_as_a_whole_and_can_be_done_again(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError):
        registry.prepare(Slow(fails=True), tmp_path, print)

    assert list((tmp_path / "toolchains").glob("*python-*")) == []
    home = registry.prepare(Slow(), tmp_path, print)
    assert home == registry.home_of(Slow(), tmp_path)
    assert {path.name for path in home.iterdir()} == {"half", "done"}


def test_two_processes_prepare_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_prepare, args=(tmp_path,)) for _ in range(2)]

    for process in both:
        process.start()
    for process in both:
        process.join()

    assert [process.exitcode for process in both] == [0, 0]
    assert (tmp_path / "toolchains" / "count").read_text() == "x"


def test_the_version_is_of_everything_that_checks() -> None:
    task: CodingTask = a_task()

    assert Python().version == Python().version
    assert Python().backend(task) is None
    assert prepared().name == f"python-{Python().version}"


def test_environments_of_earlier_versions_are_removed_once_they_are_old(tmp_path: Path) -> None:
    tools, folder = registry.toolchain("python"), tmp_path / "toolchains"
    present, recent, old = (
        registry.home_of(tools, tmp_path),
        folder / "python-new",
        folder / "python-old",
    )
    for home in (present, recent, old, folder / "convex-old"):
        (home / "env").mkdir(parents=True)
        (home / "env").chmod(0o555)
        long_ago = time.time() - registry.KEPT_S - 1
        os.utime(home, None if home == recent else (long_ago, long_ago))

    removed = registry.prune(tools, tmp_path)

    assert removed == 1
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [present.name, "python-new", "convex-old"]
    )

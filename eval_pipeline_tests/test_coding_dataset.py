"""Folders become coding tasks, all of them or none, and a refusal says which task and why."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from eval_pipeline.errors import DatasetError
from eval_pipeline.records.coding import CodingTask, TaskConfig, TaskLimits
from eval_pipeline.settings.sections import Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.coding.dataset import grader_version, load_tasks
from eval_pipeline.suites.coding.toolchains.registry import TOOLCHAINS
from eval_pipeline_tests.builders import settings_in

TASK = "001-parsing/001-dates"
FILES = {
    "TASK.txt": "Write dates.py.\n",
    "answer/dates.py": "x = 1\n",
    "grader/test_dates.py": "from dates import x\n",
}


def write(root: Path, files: Mapping[str, str | bytes | None], task: str = TASK) -> None:
    """A task of the usual files and these; without those that are None."""
    for path, content in {**FILES, **files}.items():
        if content is None:
            continue
        file = root / "evals" / task / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def settings_of(root: Path, **suite: object) -> Settings:
    coding = {"name": "code", "kind": "coding", "path": "evals", **suite}
    return settings_in(root / "project", suites=[coding | {"path": str(root / "evals")}])


def load(root: Path, **suite: object) -> list[CodingTask]:
    chosen = Suite.model_validate({"name": "code", "kind": "coding", "path": "evals", **suite})
    settings = settings_of(root).model_copy(update={"root": root})
    return list(load_tasks(chosen, settings))


def refusal(root: Path, **suite: object) -> str:
    with pytest.raises(DatasetError) as refused:
        load(root, **suite)
    return str(refused.value)


def the_task(root: Path, files: Mapping[str, str | bytes | None] | None = None) -> CodingTask:
    write(root, files or {})
    (task,) = load(root)
    return task


def test_a_folder_becomes_a_task_of_its_suite(tmp_path: Path) -> None:
    more = {
        "answer/pkg/__init__.py": "",
        "wrong/forgets-zero/dates.py": "x = 0\n",
        "wrong/says-two/dates.py": "x = 2\n",
        "GAPS.txt": "None of importance.\n",
        "eval.toml": 'review = ["?"]\ninterface = {dates = ["x"]}\nlimits.tests.seconds = 5',
    }

    task = the_task(tmp_path, more)

    assert task == CodingTask(
        suite="code",
        id="001-parsing/001-dates",
        category="parsing",
        question="Write dates.py.",
        toolchain="python",
        config=TaskConfig(
            interface={"dates": ("x",)},
            limits={"tests": TaskLimits(seconds=5)},
            review=("?",),
        ),
        answer={"dates.py": "x = 1\n", "pkg/__init__.py": ""},
        grader={"grader/test_dates.py": "from dates import x\n"},
        wrong={"forgets-zero": {"dates.py": "x = 0\n"}, "says-two": {"dates.py": "x = 2\n"}},
        gaps="None of importance.",
        grader_version=task.grader_version,
    )
    assert task.expected_files == ("dates.py", "pkg/__init__.py")


def test_tasks_are_sorted_by_their_ids(tmp_path: Path) -> None:
    ids = ["002-a/001-z", "001-b-c/002-a", "001-b-c/001-b", "010-a/001-y"]
    for task in ids:
        write(tmp_path, {}, task)

    tasks = load(tmp_path)

    assert [task.id for task in tasks] == sorted(ids)
    assert [task.category for task in tasks] == ["b-c", "b-c", "a", "a"]


def test_the_task_is_the_text_without_the_blanks_around_it(tmp_path: Path) -> None:
    task = the_task(tmp_path, {"TASK.txt": "\ufeff\nFirst.\r\n\n    indented\n  \n"})

    assert task.question == "First.\r\n\n    indented"


def test_what_is_no_category_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, {})
    (tmp_path / "evals" / "guidelines.md").write_text("# python\n")
    (tmp_path / "evals" / "001-notes.md").write_text("A file, no folder.")
    (tmp_path / "evals" / "drafts" / "what ever").mkdir(parents=True)
    (tmp_path / "evals" / ".git").mkdir()
    (tmp_path / "evals" / "001-parsing" / "README.md").write_text("About parsing.")

    assert [task.id for task in load(tmp_path)] == [TASK]


def test_what_tools_leave_behind_is_passed_over(tmp_path: Path) -> None:
    left: dict[str, str | bytes | None] = {
        "answer/__pycache__/dates.pyc": b"\xff",
        "answer/.mypy_cache/x.json": "{}",
        "answer/node_modules/a/index.js": "",
        "answer/convex/_generated/api.js": "",
        "grader/.DS_Store": b"\xff",
        ".hidden": "",
    }

    task = the_task(tmp_path, left)

    assert [*task.answer, *task.grader] == ["dates.py", "grader/test_dates.py"]


def test_a_grader_may_stand_beside_the_task(tmp_path: Path) -> None:
    files = {"grader/test_dates.py": None, "grader.test.ts": "test()\n"}

    task = the_task(tmp_path, files)

    assert task.grader == {"grader/grader.test.ts": "test()\n"}


def test_the_suite_chooses_a_toolchain_for_tasks_that_choose_none(tmp_path: Path) -> None:
    write(tmp_path, {})
    write(tmp_path, {"eval.toml": 'toolchain = "python"'}, "001-parsing/002-own")

    problem = refusal(tmp_path, toolchain="cobol")

    assert problem == (
        f"evals/{TASK}: suites.code: toolchain: There is no toolchain 'cobol'; "
        f"there are: {', '.join(sorted(TOOLCHAINS))}."
    )


def test_expected_files_may_be_fewer_than_those_of_the_answer(tmp_path: Path) -> None:
    files = {"answer/extra.py": "", "eval.toml": 'expected_files = ["dates.py"]'}

    assert the_task(tmp_path, files).expected_files == ("dates.py",)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"TASK.txt": None}, "TASK.txt is missing or blank"),
        ({"TASK.txt": " \n\t\n"}, "TASK.txt is missing or blank"),
        ({"TASK.txt": b"\xff\xfe"}, "TASK.txt is not valid UTF-8"),
        ({"answer/dates.py": None}, "answer/ is missing or empty"),
        ({"answer/dates.py": b"x = '\xe9'"}, "answer/dates.py is not valid UTF-8"),
        ({"answer/DATES.py": ""}, "answer: The paths 'DATES.py' and 'dates.py' differ"),
        ({"grader/test_dates.py": None}, "grader/ is missing or empty"),
        ({"answer/big.txt": "x" * (1024**2 + 1)}, "answer/big.txt is larger than 1048576 bytes"),
        ({f"answer/{n}.py": "" for n in range(200)}, "has 203 files, more than 200"),
        ({"wrong/dates.py": ""}, "wrong/dates.py must be in a folder that says what is wrong"),
        ({"wrong/same/dates.py": "x = 1\n"}, "wrong/same is the same as answer"),
        ({"notes.txt": ""}, "notes.txt is not known here; allowed are TASK.txt, answer/, grader/"),
        ({"Answer/dates.py": ""}, "Answer/dates.py is not known here"),
        ({"answers/dates.py": ""}, "answers/dates.py is not known here"),
        ({"eval.toml": "steps = ["}, "eval.toml is not valid TOML (Invalid value"),
        ({"eval.toml": b"\xff"}, "eval.toml is not valid UTF-8"),
        ({"eval.toml": "stepz = []"}, "eval.toml: stepz is not known; known are expected_files"),
        ({"eval.toml": "limits.lint.hours = 1"}, "limits.lint.hours is not known; known are"),
        ({"eval.toml": 'steps = ["compile"]'}, "eval.toml: steps.0: input should be 'filesystem'"),
        ({"eval.toml": 'steps = ["deploy", "tests"]'}, "the toolchain python has no step deploy"),
        ({"eval.toml": "steps = []"}, "eval.toml: steps: without tests nothing would run grader/"),
        ({"eval.toml": 'steps = ["lint"]'}, "steps: without tests nothing would run grader/"),
        ({"eval.toml": "limits = {deploy = {}}"}, "the toolchain python has no step deploy"),
        ({"eval.toml": "limits = {lint = {seconds = -1}}"}, "limits.lint.seconds: input should be"),
        ({"eval.toml": 'toolchain = "cobol"'}, "toolchain: There is no toolchain 'cobol'"),
        ({"eval.toml": "toolchain = 3"}, "eval.toml: toolchain: input should be a valid string"),
        ({"eval.toml": 'verdict = "hope"'}, "eval.toml: verdict: input should be 'oracle'"),
        ({"eval.toml": 'verdict = "oracle"'}, "eval.toml: verdict: an oracle needs an interface"),
        ({"eval.toml": 'expected_files = ["a.py"]'}, "expected_files: answer has no file a.py"),
        ({"eval.toml": 'interface = {dates2 = ["x"]}'}, "interface: answer has no module dates2"),
        ({"eval.toml": 'interface = {"a.b" = ["x"]}'}, "interface: answer has no module a.b"),
    ],
)  # fmt: skip
def test_a_task_that_is_not_right_is_refused(
    tmp_path: Path, files: dict[str, str | bytes | None], problem: str
) -> None:
    write(tmp_path, {}, "001-parsing/002-good")
    write(tmp_path, files)

    told = refusal(tmp_path)

    assert told.startswith(f"evals/{TASK}: ")
    assert problem in told
    assert told.endswith(".")
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("interface", ["pkg", "pkg.inner", "dates"])
def test_modules_of_an_interface_may_be_packages(tmp_path: Path, interface: str) -> None:
    more = {
        "answer/pkg/__init__.py": "",
        "answer/pkg/inner.py": "",
        "eval.toml": f'interface = {{"{interface}" = ["x"]}}',
    }

    assert the_task(tmp_path, more).config.interface == {interface: ("x",)}


@pytest.mark.parametrize(
    "category", ["1-parsing", "0001-parsing", "001_parsing", "001-Parsing", "001-", "001-a--b"]
)
def test_a_category_must_be_well_named(tmp_path: Path, category: str) -> None:
    write(tmp_path, {}, f"{category}/001-dates")

    assert refusal(tmp_path) == (
        f"evals/{category}: a category is a folder that must be named by three digits and "
        "lower-case words, as in 001-data-modelling."
    )


@pytest.mark.parametrize("name", ["dates", "1-dates", "001-dates_and_times", "001 dates"])
def test_a_task_must_be_well_named(tmp_path: Path, name: str) -> None:
    write(tmp_path, {}, f"001-parsing/{name}")

    assert refusal(tmp_path).startswith(
        f"evals/001-parsing/{name}: a task is a folder that must be"
    )


def test_a_number_can_not_be_used_twice_in_a_category(tmp_path: Path) -> None:
    for task in ("001-a/001-x", "001-a/001-y", "002-a/001-x"):
        write(tmp_path, {}, task)

    assert refusal(tmp_path) == "evals/001-a: 2 tasks have the number 001."


def test_links_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {})
    (tmp_path / "outside.py").write_text("secret")
    folder = tmp_path / "evals" / TASK
    (folder / "answer" / "link.py").symlink_to(tmp_path / "outside.py")
    (folder / "wrong").symlink_to(tmp_path)
    (tmp_path / "evals" / "001-parsing" / "002-link").symlink_to(folder)
    (tmp_path / "evals" / "002-link").symlink_to(folder.parent)

    told = refusal(tmp_path)

    assert "answer/link.py is a link" in told
    assert "wrong is a link" in told
    assert "001-parsing/002-link: a task is a folder" in told
    assert "002-link: a category is a folder" in told
    assert "secret" not in told


def test_every_problem_is_counted_and_the_first_five_are_told(tmp_path: Path) -> None:
    for number in range(1, 9):
        write(tmp_path, {"TASK.txt": None}, f"001-a/{number:03}-x")

    lines = refusal(tmp_path).splitlines()

    assert lines[0] == "evals/001-a/001-x: TASK.txt is missing or blank."
    assert (len(lines), lines[-1]) == (6, "There are 3 more problems.")


def test_one_task_may_have_several_problems(tmp_path: Path) -> None:
    write(tmp_path, {"TASK.txt": None, "answer/dates.py": None, "eval.toml": "a = 1\nb = 2"})

    assert len(refusal(tmp_path).splitlines()) == 4


def test_a_folder_that_is_missing_or_has_no_tasks_is_told(tmp_path: Path) -> None:
    missing = refusal(tmp_path, path="evalz")
    (tmp_path / "evals").mkdir()
    empty = refusal(tmp_path)

    assert missing == "evalz: there is no such folder; correct suites.code.path."
    assert empty.startswith("evals: there are no tasks; one is a folder such as 001-parsing/001-")


@pytest.mark.parametrize(
    "changes",
    [
        {"answer/dates.py": "x = 1 \n"},
        {"answer/more.py": ""},
        {"grader/test_dates.py": "from dates import y\n"},
        {"grader/data.json": "{}"},
        {"eval.toml": "limits = {tests = {seconds = 5}}"},
        {"eval.toml": 'interface = {dates = ["x"]}'},
        {"eval.toml": 'verdict = "tamper_evident"'},
        {"eval.toml": 'steps = ["tests"]'},
        {"eval.toml": 'review = ["Is it short?"]'},
    ],
)
def test_what_decides_a_pass_changes_the_graders_version(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    before = the_task(tmp_path / "before")

    after = the_task(tmp_path / "after", changes)

    assert after.grader_version != before.grader_version


@pytest.mark.parametrize(
    "changes",
    [
        {"TASK.txt": "Write dates.py, please.\n"},
        {"GAPS.txt": "It is dull."},
        {"wrong/two/dates.py": "x = 2\n"},
        {"eval.toml": 'toolchain = "python"'},
        {"eval.toml": 'expected_files = ["dates.py"]'},
    ],
)
def test_what_decides_no_pass_does_not(tmp_path: Path, changes: dict[str, str]) -> None:
    before = the_task(tmp_path / "before")

    after = the_task(tmp_path / "after", changes)

    assert after.grader_version == before.grader_version


def test_the_graders_version_is_of_the_toolchain_too(tmp_path: Path) -> None:
    task = the_task(tmp_path)
    tools = TOOLCHAINS["python"]

    versions = {grader_version(task, version) for version in (tools.version, "another")}
    renamed = grader_version(task.model_copy(update={"toolchain": "other"}), tools.version)

    assert task.grader_version in versions
    assert len(versions | {renamed}) == 3


def test_the_graders_version_is_of_the_expected_files_too(tmp_path: Path) -> None:
    both = the_task(tmp_path / "both", {"answer/more.py": ""})

    fewer = {"answer/more.py": "", "eval.toml": 'expected_files = ["dates.py"]'}
    one = the_task(tmp_path / "one", fewer)

    assert one.grader_version != both.grader_version

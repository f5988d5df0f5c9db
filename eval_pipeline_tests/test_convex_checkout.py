"""A checkout of convex-evals as a suite: what is read of it, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest

from eval_pipeline.analysis.report.earlier import read_convex_report
from eval_pipeline.errors import DatasetError, RunError
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.settings.sections import Suite
from eval_pipeline.suites.coding.convex_checkout import guidelines_of, is_checkout
from eval_pipeline.suites.coding.dataset import load_tasks
from eval_pipeline.suites.coding.guidelines import Guidelines
from eval_pipeline.suites.coding.scaffold import create
from eval_pipeline.suites.coding.toolchains.convex.project import OPTIONS, fair_tsconfig
from eval_pipeline.suites.coding.toolchains.convex.toolchain import Convex
from eval_pipeline.suites.kinds import PROJECT_FORMAT, Prompts, output_format
from eval_pipeline_tests.builders import a_model
from eval_pipeline_tests.convex_stand import CHECKOUT, CHECKOUT_SUITE, checkout_tasks, settings_with

GUEST_BOOK = "000-basics/000-guest_book"


def test_every_folder_with_a_task_is_read_as_it_is() -> None:
    tasks = checkout_tasks()

    assert [*tasks] == [
        GUEST_BOOK,
        "000-basics/001-door_bell",
        "001-parts/000-tally",
        "001-parts/001-choose_limiter",
        "001-parts/002-slugs",
        "001-parts/003-library",
    ]
    task = tasks[GUEST_BOOK]
    assert (task.suite, task.category, task.toolchain) == ("convex", "basics", "convex")
    assert task.question.startswith("Write a Convex backend for a guest book")
    assert task.gaps == "The task does not say whether names may be empty."
    assert sorted(task.answer) == ["convex/guests.ts", "convex/schema.ts", "package.json"]
    assert task.is_project


def test_a_grader_brings_what_it_imports_from_the_checkout_and_no_more() -> None:
    grader = checkout_tasks()["000-basics/001-door_bell"].grader

    assert sorted(grader) == [
        "eslint.config.mjs",
        "evals/000-basics/001-door_bell/grader.test.ts",
        "evals/000-basics/001-door_bell/until.ts",
        "grader/files.ts",
        "grader/index.ts",
        "lint/shared.mjs",
    ]


def test_the_nearest_lint_configuration_holds() -> None:
    grader = checkout_tasks()["001-parts/000-tally"].grader

    assert "evals/001-parts/eslint.config.mjs" in grader
    assert "eslint.config.mjs" not in grader


@pytest.mark.parametrize(
    ("task", "steps", "expected", "backend"),
    [
        (GUEST_BOOK, None, ("package.json",), "convex-test"),
        ("001-parts/001-choose_limiter", ("tests",), (), None),
        ("001-parts/002-slugs", ("install", "tests"), ("package.json",), None),
    ],
)
def test_a_pipeline_is_the_steps_that_are_taken(
    task: str, steps: tuple[str, ...] | None, expected: tuple[str, ...], backend: str | None
) -> None:
    found = checkout_tasks()[task]

    assert found.config.steps == steps
    assert found.expected_files == expected
    assert Convex().backend(found) == backend


def a_checkout(folder: Path) -> Path:
    """A copy that may be spoiled."""
    shutil.copytree(CHECKOUT, folder / "checkout")
    return folder / "checkout" / "evals"


def loaded(root: Path, **said: str) -> list[CodingTask]:
    settings = settings_with({"kind": "coding", "path": str(root), "toolchain": "convex", **said})
    return list(load_tasks(settings.suites[0], settings))


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        (
            "eval.json",
            '{"pipeline": "browser"}',
            "there is no pipeline 'browser'; there are backend",
        ),
        ("eval.json", '{"pipeline": ["static"]}', r"there is no pipeline \['static'\]"),
        ("eval.json", "{", "eval.json is not valid JSON"),
        ("TASK.txt", " \n", "TASK.txt is blank"),
        ("grader.test.ts", None, "grader.test.ts is missing"),
        ("answer", None, "answer/ is missing"),
    ],
)
def test_what_is_not_of_that_form_is_refused_with_a_sentence(
    file: str, text: str | None, reason: str, tmp_path: Path
) -> None:
    root = a_checkout(tmp_path)
    spoiled = root / GUEST_BOOK / file
    if text is not None:
        spoiled.write_text(text)
    elif spoiled.is_dir():
        shutil.rmtree(spoiled)
    else:
        spoiled.unlink()

    with pytest.raises(DatasetError, match=f"{GUEST_BOOK}: .*{reason}"):
        loaded(root)


def test_a_checkout_has_no_other_toolchain() -> None:
    with pytest.raises(DatasetError, match="a checkout of convex-evals, not of python tasks"):
        loaded(CHECKOUT / "evals", toolchain="python", name="x")


def test_imports_are_not_followed_out_of_the_checkout_nor_through_links(tmp_path: Path) -> None:
    root = a_checkout(tmp_path)
    (tmp_path / "secret.ts").write_text("export const secret = 1;")
    (root.parent / "grader" / "link.ts").symlink_to(tmp_path / "secret.ts")
    grader = root / GUEST_BOOK / "grader.test.ts"
    outside = 'import "../../../../secret";\nimport "../../../grader/link";\n'
    grader.write_text(outside + grader.read_text())

    task = next(task for task in loaded(root) if task.id == GUEST_BOOK)

    assert sorted(task.grader) == [
        "eslint.config.mjs",
        f"evals/{GUEST_BOOK}/grader.test.ts",
        "grader/files.ts",
        "grader/index.ts",
        "lint/shared.mjs",
    ]


def test_a_helper_that_changes_makes_another_grader(tmp_path: Path) -> None:
    root = a_checkout(tmp_path)
    before = {task.id: task.grader_version for task in loaded(root)}
    helper = root.parent / "grader" / "index.ts"
    helper.write_text(f"{helper.read_text()}\nexport const more = 1;\n")

    after = {task.id: task.grader_version for task in loaded(root)}

    changed = {task for task in before if before[task] != after[task]}
    static = {"001-parts/001-choose_limiter", "001-parts/002-slugs"}
    assert changed == before.keys() - static


def test_no_task_of_our_own_form_is_begun_in_a_checkout(tmp_path: Path) -> None:
    root = a_checkout(tmp_path)

    with pytest.raises(RunError, match="is a checkout of convex-evals"):
        create(root, "basics", "something", "convex")

    assert is_checkout(root)


def test_our_own_tasks_are_no_checkout() -> None:
    assert is_checkout(CHECKOUT / "evals")
    assert not is_checkout(Path(__file__).parents[1] / "evals")


def test_a_suite_without_a_name_is_called_by_its_toolchain() -> None:
    suite = Suite.model_validate({"kind": "coding", "path": "../x/evals", "toolchain": "convex"})

    assert suite.name == "convex"
    assert suite.model_copy(update={"name": "mine"}).name == "mine"


def test_models_are_told_the_checkouts_guidelines_and_asked_for_a_project() -> None:
    settings = settings_with(CHECKOUT_SUITE)
    prompts = Prompts.of(settings, settings.experiments["default"])
    silent = Prompts.of(settings, settings.experiments["no_guidelines"])
    task = checkout_tasks()[GUEST_BOOK]

    asked, unguided = (str(one.messages(task, a_model())) for one in (prompts, silent))

    assert guidelines_of(CHECKOUT / "evals") is not None
    assert "Every function says what arguments it takes" in asked
    assert "Every function says" not in unguided
    assert "Write the whole project that the task asks for" in asked
    assert prompts.formats[-1] == PROJECT_FORMAT
    assert "package.json" in output_format(PROJECT_FORMAT)


def test_their_guidelines_can_be_taken_apart() -> None:
    guidelines = Guidelines.read(CHECKOUT / "runner" / "models" / "guidelines.md")

    assert [one.name for one in guidelines.sections("convex")] == ["all", "Functions", "Schemas"]


def test_their_reports_are_earlier_reports_of_the_same_model() -> None:
    earlier = read_convex_report(CHECKOUT / "reports/acme/swift-1/jn7abc_2026-03-04.md")

    assert earlier is not None and earlier.run_id == "jn7abcdefgh"
    steps = {item: failure.step for item, (failure,) in earlier.failures.items()}
    assert steps == {
        "convex/000-basics/000-guest_book": "tests",
        "convex/000-basics/001-door_bell": "lint",
    }
    (action,) = earlier.actions
    assert action.is_about("convex", "000-basics/001-door_bell")
    assert str(action.day) == "2026-03-04"


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        (None, {}),
        ("{ // a comment\n}", {}),
        ("[]", {}),
        ('{"compilerOptions": {"strict": false, "noEmit": false}}', {}),
        ('{"compilerOptions": {"moduleResolution": "node", "target": "ES5"}}', {}),
        ('{"compilerOptions": {"lib": ["ES2022"]}}', {"lib": ["ES2022", "DOM"]}),
        ('{"compilerOptions": {"lib": ["ES2022", "WebWorker"]}}', {"lib": ["ES2022", "WebWorker"]}),
        ('{"compilerOptions": {"types": ["node", "vite/client"]}}', {"types": ["node"]}),
        ('{"compilerOptions": {"types": ["vite/client"], "lib": "ES2022"}}', {}),
        ('{"compilerOptions": {"jsx": "preserve"}, "files": []}', {"jsx": "preserve"}),
    ],
)
def test_a_tsconfig_says_how_code_is_meant_and_not_how_it_is_checked(
    said: str | None, changed: dict[str, object]
) -> None:
    config = json.loads(fair_tsconfig(said, lambda package: package == "node"))

    assert config["compilerOptions"] == {**OPTIONS, **changed}
    assert config["include"] == ["./**/*"]
    assert "files" not in config


@pytest.mark.parametrize(
    ("said", "manifest", "types"),
    [
        (None, '{"devDependencies": {"@types/node": "18", "@types/gone": "1"}}', ["node"]),
        (None, '{"dependencies": {"@types/node": "18"}}', ["node"]),
        (
            '{"compilerOptions": {"types": ["gone"]}}',
            '{"dependencies": {"@types/node": "18"}}',
            ["node"],
        ),
        (None, '{"dependencies": {"node": "18"}}', None),
        (None, '{"dependencies": ["@types/node"]}', None),
        (None, '["@types/node"]', None),
        (None, "{", None),
    ],
)
def test_types_that_the_manifest_asks_for_are_seen_if_no_others_are_listed(
    said: str | None, manifest: str, types: list[str] | None
) -> None:
    config = json.loads(fair_tsconfig(said, lambda package: package == "node", manifest))

    assert config["compilerOptions"].get("types") == types


@pytest.mark.parametrize(
    ("path", "is_taken"),
    [
        ("package.json", True),
        ("convex/convex.config.ts", True),
        ("convex/tsconfig.json", True),
        ("src/App.tsx", True),
        ("eslint.config.js", True),
        ("README.md", True),
        (".env.local", False),
        ("convex/tsconfig.json/x.ts", False),
        ("node_modules/convex/index.js", False),
        ("convex/node_modules/x.ts", False),
    ],
)
def test_a_project_may_bring_what_decides_nothing(path: str, *, is_taken: bool) -> None:
    assert (Convex().refuses(path, project=True) is None) == is_taken

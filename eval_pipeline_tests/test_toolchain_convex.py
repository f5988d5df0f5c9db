"""Convex answers before their tests: what is taken, installed, deployed, checked and linted."""

import json
from pathlib import Path

import pytest

from eval_pipeline.records.coding import Files, StepName
from eval_pipeline.suites.coding.toolchains.base import ToolchainError
from eval_pipeline.suites.coding.toolchains.convex import layout
from eval_pipeline.suites.coding.toolchains.convex.project import GENERATED
from eval_pipeline.suites.coding.toolchains.convex.toolchain import Convex
from eval_pipeline_tests.coding_stand import prepared, take
from eval_pipeline_tests.convex_stand import (
    ANSWER,
    NOTES,
    a_convex_task,
    deployed,
    needs_tools,
    with_notes,
)

pytestmark = pytest.mark.usefixtures("tools")


@pytest.fixture
def tools() -> None:
    needs_tools()


def test_an_environment_is_prepared_only_in_the_version_of_now(tmp_path: Path) -> None:
    home = prepared("convex")
    (tmp_path / layout.MARKER).write_text("another")

    assert Convex().is_prepared(home)
    assert not Convex().is_prepared(tmp_path)
    assert not Convex().is_prepared(tmp_path / "nothing")


def test_without_npm_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ToolchainError, match=r"npm.*install Node\.js"):
        Convex().prepare(tmp_path / "home")


def test_lock_files_name_versions_and_hashes_and_no_hosts() -> None:
    locks = [layout.SOURCES / "bun.lock", layout.SOURCES / "bun/package-lock.json"]

    for lock in locks:
        text = lock.read_text("utf-8")
        assert "sha512-" in text
        assert "://" not in text


@pytest.mark.parametrize(
    "path",
    [
        "convex/notes.ts",
        "convex/lib/deep/names_2.ts",
        "convex/auth.config.ts",
        "convex/_generated/api.d.ts",
        "package.json",
    ],
)
def test_modules_and_the_manifest_are_taken(path: str) -> None:
    assert Convex().refuses(path) is None


@pytest.mark.parametrize(
    "path",
    [
        ".npmrc",
        "bunfig.toml",
        "tsconfig.json",
        "convex/tsconfig.json",
        "convex.json",
        "convex/convex.config.ts",
        "vitest.config.ts",
        "convex/vitest.config.ts",
        "eslint.config.js",
        "convex/.eslintrc.js",
        ".env.local",
        "convex/.env",
        "convex/postcss.config.js",
        "node_modules/convex/index.js",
        "convex/node_modules/vitest/index.ts.js",
        "convex/notes.test.ts",
        "convex/types.d.ts",
        "convex/plain.js",
        "convex/package.json",
        "grader/notes.test.ts",
        "harness/reporter.js",
        "src/notes.ts",
        "convex/größe.ts",
        "convex/../harness/start.ts",
        "convex//notes.ts",
    ],
)
def test_whatever_could_configure_the_checks_is_refused(path: str) -> None:
    reason = Convex().refuses(path)

    assert reason
    assert "convex/" in reason


@pytest.mark.parametrize(
    "manifest",
    [
        None,
        "{}",
        '{"dependencies": {"convex": "^1.30.0"}}',
        '{"dependencies": {"convex": "latest"}, "scripts": {"postinstall": "exit 1"}}',
        '{"dependencies": {"typescript": "^5.0.0"}, "devDependencies": {"prettier": "1"}}',
    ],
)
def test_what_the_environment_has_can_be_installed(manifest: str | None) -> None:
    files = ANSWER if manifest is None else ANSWER | {"package.json": manifest}

    step = take("install", a_convex_task(), files)

    assert (step.status, step.reason) == ("passed", "")


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ('{"dependencies": {"left-pad": "1"}}', "left-pad is not available"),
        ('{"peerDependencies": {"react": "19"}}', "react is not available"),
        ('{"dependencies": {"convex": "^0.9"}}', "convex ^0.9 is asked for"),
        ('{"dependencies": {"convex": "file:../x"}}', "convex file:../x is asked for"),
        ("{", "package.json can not be read"),
        ("[]", "not a JSON object"),
    ],
)
def test_other_dependencies_fail_with_the_reason(manifest: str, reason: str) -> None:
    step = take("install", a_convex_task(), ANSWER | {"package.json": manifest})

    assert step.status == "failed"
    assert reason in step.reason


def test_an_answer_without_modules_has_nothing_to_install() -> None:
    step = take("install", a_convex_task(), {"package.json": "{}"})

    assert (step.status, step.reason) == ("failed", "The answer has no convex/ folder.")


def test_deploying_generates_code_and_says_that_there_is_no_backend(tmp_path: Path) -> None:
    brought = {"convex/_generated/server.ts": "export const query = 1;"}

    step = deployed(tmp_path / "answer", ANSWER | brought)

    assert step.status == "skipped"
    assert "no Convex backend" in step.reason
    assert Convex().backend(a_convex_task()) == "convex-test"
    made = tmp_path / "answer" / "convex" / "_generated"
    assert {path.name for path in made.iterdir()} == set(GENERATED)
    assert "notes: typeof notes" in (made / "api.d.ts").read_text("utf-8")


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("export const = 1;", "Expected identifier"),
        ('import { x } from "./nowhere";\nexport const y = x;', 'Could not resolve "./nowhere"'),
        ('import { x } from "zod";\nexport const y = x;', 'Could not resolve "zod"'),
        ('import { expect } from "vitest";\nexpect(1);', 'Could not resolve "vitest"'),
        ('import fs from "node:fs";\nexport const x = fs;', 'Could not resolve "node:fs"'),
    ],
)
def test_modules_that_can_not_be_bundled_can_not_be_deployed(module: str, reason: str) -> None:
    step = take("deploy", a_convex_task(), ANSWER | {"convex/notes.ts": module})

    assert step.status == "failed"
    assert reason in step.reason


def test_modules_for_node_may_import_what_node_has() -> None:
    module = '"use node";\nimport { createHash } from "node:crypto";\nexport const x = createHash;'

    step = take("deploy", a_convex_task(), ANSWER | {"convex/hashing.ts": module})

    assert step.status == "skipped"


@pytest.mark.parametrize("step", ["typecheck", "lint"])
def test_a_clean_answer_passes_the_static_checks(step: str) -> None:
    text = NOTES + 'export const words = "// @ts-ignore /* eslint-disable */";\n'

    done = take("typecheck" if step == "typecheck" else "lint", a_convex_task(), with_notes(text))

    assert (done.status, done.reason) == ("passed", "")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("export const x: number = 'a';", "convex/notes.ts(23,14): error TS2322"),
        ("// @ts-ignore\nexport const x: number = 'a';", "convex/notes.ts:23: @ts-ignore"),
        ("/* @ts-expect-error */ export const x: number = 'a';", "@ts-expect-error"),
    ],
)
def test_type_errors_fail_and_can_not_be_silenced(line: str, reason: str) -> None:
    step = take("typecheck", a_convex_task(), with_notes(f"{NOTES}{line}\n"))

    assert step.status == "failed"
    assert reason in step.reason


def test_a_module_can_not_leave_the_type_check_as_a_whole() -> None:
    text = f"// @ts-nocheck\n{NOTES}export const x: number = 'a';\n"

    step = take("typecheck", a_convex_task(), with_notes(text))

    assert step.status == "failed"
    assert "convex/notes.ts:1: @ts-nocheck is not allowed" in step.reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("export const x: any = 1;", "convex/notes.ts:23:17: Unexpected any"),
        ("const unused = 1;", "'unused' is assigned a value but never used"),
        ("export const x = query(async () => 1);", "no-old-registered-function-syntax"),
        ("export const x = query({ handler: () => 1 });", "require-args-validator"),
        ("export const x: any = 1; // eslint-disable-line", "eslint-disable is not allowed"),
        ("/* eslint no-debugger: 0 */", "eslint is not allowed"),
    ],
)
def test_lint_problems_fail_and_can_not_be_silenced(line: str, reason: str) -> None:
    step = take("lint", a_convex_task(), with_notes(f"{NOTES}{line}\n"))

    assert step.status == "failed"
    assert reason in step.reason


NESTED = f"export const x = {'!' * 200_000}1;\n"
MISSING = json.dumps({"dependencies": {f"missing-{number}": "1" for number in range(5000)}})


@pytest.mark.parametrize(
    ("step", "files"),
    [
        ("install", {"package.json": MISSING}),  # says more than may be said
        ("typecheck", {"convex/nested.ts": NESTED}),  # crashes a parser
        ("lint", {"convex/nested.ts": NESTED}),
    ],
)
def test_an_answer_that_breaks_a_tool_has_failed_and_does_not_get_away(
    step: StepName, files: Files
) -> None:
    taken = take(step, a_convex_task(), with_notes(NOTES) | files)

    assert taken.status == "failed"
    assert "The step was ended" in taken.reason

"""Versions of toolchains: source text is no part of them, lock files and configuration are."""

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from eval_pipeline.suites.coding.toolchains.convex import layout
from eval_pipeline.suites.coding.toolchains.python import environment, toolchain

LANGUAGES = {"3.11": "bd32f9e56cf113ae", "3.12": "5496ce95356a3005", "3.13": "624bbec6d5c4b1a6"}


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the Python toolchain, whose version is taken of it."""
    copy = shutil.copytree(environment.HERE, tmp_path / "python")
    monkeypatch.setattr(
        toolchain, "CONFIGURATION", [copy / path.name for path in toolchain.CONFIGURATION]
    )
    return copy


@pytest.fixture
def convex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the convex environment, whose version is taken of it."""
    copy = shutil.copytree(layout.SOURCES, tmp_path / "environment")
    monkeypatch.setattr(layout, "SOURCES", copy)
    return copy


def version_of_convex() -> str:
    return layout.version.__wrapped__()


def version_of_python() -> str:
    return toolchain.Python().version


def changed(path: Path, version: Callable[[], str]) -> bool:
    before = version()
    with path.open("a") as file:
        file.write("\n")
    return before != version()


@pytest.mark.parametrize("language", LANGUAGES)
def test_results_from_before_explicit_versions_stay_comparable(
    monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setattr(platform, "python_version_tuple", lambda: (*language.split("."), "0"))

    assert version_of_python() == LANGUAGES[language]
    assert version_of_convex() == "d55755881a9fc531"


@pytest.mark.parametrize(
    ("name", "matters"),
    [
        ("checking.py", False),
        ("testing.py", False),
        ("python.lock", True),
        ("mypy.ini", True),
        ("pytest.ini", True),
    ],
)
def test_a_python_verdict_depends_on_configuration_and_not_on_source_text(
    python: Path, name: str, matters: bool
) -> None:
    assert changed(python / name, version_of_python) is matters


@pytest.mark.parametrize(
    ("name", "matters"),
    [
        ("harness/reporter.js", False),
        ("sample/convex/notes.ts", False),
        ("bun.lock", True),
        ("bun/package-lock.json", True),
        ("package.json", True),
        ("harness/eslint.config.js", True),
        ("harness/tsconfig.json", True),
    ],
)
def test_a_convex_verdict_depends_on_configuration_and_not_on_source_text(
    convex: Path, name: str, matters: bool
) -> None:
    assert changed(convex / name, version_of_convex) is matters


@pytest.mark.parametrize("number", ["VERSION", "ISOLATION_VERSION"])
def test_a_maintainer_raises_a_number_when_verdicts_change(
    monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    before = version_of_python()

    monkeypatch.setattr(toolchain, number, 2)

    assert version_of_python() != before
    assert version_of_python() not in LANGUAGES.values()


def test_a_changed_harness_has_to_be_prepared_again(
    convex: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    shutil.copytree(convex, layout.built(home))
    (home / layout.MARKER).write_text(version_of_convex())
    assert layout.is_prepared(home)

    (convex / "harness" / "reporter.js").write_text("another")

    assert not layout.is_prepared(home)

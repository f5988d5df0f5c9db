"""What the documents promise: every query of the README runs, every file it names is there."""

import re
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.environment import VARIABLES
from eval_pipeline_tests.project import ROOT, a_project, run

README = (ROOT / "README.md").read_text("utf-8")
QUERIES = [query.strip() for query in re.findall(r"```sql\n(.*?)```", README, re.DOTALL)]
LINKS = re.findall(r"\]\(([^)#:]+)\)", README)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = a_project(tmp_path_factory.mktemp("project"))
    done = run(project, "evals run", {"MODELS": "demo/strong,demo/average"})
    assert done.returncode == 0, done.stderr
    return project / "data" / "evals.duckdb"


def test_there_are_ten_queries() -> None:
    assert len(QUERIES) == 10


# The demo has neither failures nor incomplete runs, so those two queries rightly find nothing.
@pytest.mark.parametrize("number", range(1, 11))
def test_a_query_of_the_readme_answers(results: Path, number: int) -> None:
    with duckdb.connect(str(results), read_only=True) as db:
        found = db.sql(QUERIES[number - 1]).fetchall()

    assert bool(found) is (number not in {7, 8})


@pytest.mark.parametrize("link", LINKS)
def test_what_the_readme_links_to_is_there(link: str) -> None:
    assert (ROOT / link).exists()


def test_every_variable_is_in_the_readme_and_in_the_example() -> None:
    example = (ROOT / ".env.example").read_text("utf-8")

    assert [name for name in VARIABLES if f"`{name}`" not in README] == []
    assert [name for name in VARIABLES if f"# {name}=" not in example] == []


def test_the_lock_has_hashes_and_names_no_package_index() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    requirements = re.split(r"\n(?=[a-z])", lock.strip())

    assert "://" not in lock and "--index" not in lock
    assert [one.split()[0] for one in requirements if "--hash=sha256:" not in one] == []


def test_ci_calls_make_test_and_nothing_else() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()

    assert script == ["#!/usr/bin/env bash", "exec make test"]

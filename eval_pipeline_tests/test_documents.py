"""What the documents promise: every query of the README runs, every file it names is there."""

import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.prediction import Usage
from eval_pipeline.settings.loading import VARIABLES
from eval_pipeline_tests.boards import (
    CATEGORIES,
    EXAM,
    ITEMS,
    Records,
    Scores,
    answers,
    graded,
    scores_of,
    taken,
    verdicts,
)
from eval_pipeline_tests.project import ROOT, a_project, call
from eval_pipeline_tests.sampled import rows_of
from eval_pipeline_tests.test_metrics import published

README = (ROOT / "README.md").read_text("utf-8")
QUERIES = [query.strip() for query in re.findall(r"```sql\n(.*?)```", README, re.DOTALL)]
LINKS = re.findall(r"\]\(([^)#:]+)\)", README)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = a_project(tmp_path_factory.mktemp("project"))
    done = call(project, "evals run", {"MODELS": "demo/strong,demo/average"})
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


def mixed_scores() -> dict[str, Scores]:
    """Two samples per item; on the last items nobody is right."""
    scores = {
        "demo/strong": scores_of(0.8, seed=1, samples=2),
        "demo/average": scores_of(0.5, seed=2, samples=2),
    }
    return {
        model: np.where(np.arange(ITEMS)[:, None] < ITEMS - 3, one, 0.0)
        for model, one in scores.items()
    }


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two samples, judged by two judges and, on trial, with another prompt of one."""
    own = {"prompt_hash": EXAM.version.judge_prompt_hash, "confidence": 0.95}
    trial = {**own, "prompt_hash": fingerprint("a prompt on trial"), "judge_version": "trial"}
    records: Records = []
    for model, scores in mixed_scores().items():
        for hour in range(2):
            run = taken(model, f"run-{hour}", hour=hour, samples=2)
            told = {"usage": Usage(cost_usd=0.01), "latency_s": 1.0 + hour}
            records += [run, *answers(run, **told), *verdicts(run, scores, **own)]
            records += verdicts(run, 1 - scores, **trial)
            records += verdicts(run, [1.0] * 3, **{**own, "judge_version": "begun"})
            records += verdicts(run, scores, **{**own, "judge": "other/judge"})
    only_trial = taken("demo/trial", samples=2)
    part = taken("demo/part", samples=2)
    records += graded(only_trial, np.ones((ITEMS, 2)), **trial)
    records += [*graded(part, [1.0] * 9, **own), *verdicts(part, [1.0] * 5, **trial)]
    return published(tmp_path_factory.mktemp("mixed"), *records, benchmark=EXAM).path


JUDGES, MODELS, RUNS_EACH = 2, 2, 2


def mixed_counts() -> dict[int, int]:
    """How many rows each query should find there, counted in numpy."""
    strong, average = (mixed_scores()[f"demo/{name}"] for name in ("strong", "average"))
    nobody = (np.maximum(strong, average).max(axis=1) == 0).sum()
    differing = (strong.mean(axis=1) != average.mean(axis=1)).sum()
    wrong = (strong == 0).sum() + (average == 0).sum()
    return {
        1: JUDGES * MODELS,
        2: JUDGES * len(CATEGORIES),
        3: JUDGES * int(nobody),
        4: JUDGES * int(differing),
        5: JUDGES * MODELS,
        6: JUDGES * int(wrong),
        7: 0,
        8: 1,
        9: MODELS,
        # With the trial, there are three ways of judging; one model was judged in that one only.
        10: 3 * MODELS * RUNS_EACH + 1,
    }


@pytest.mark.parametrize("number", range(1, 11))
def test_a_query_of_the_readme_counts_nothing_twice(mixed: Path, number: int) -> None:
    with duckdb.connect(str(mixed), read_only=True) as db:
        found = db.sql(QUERIES[number - 1]).fetchall()

    assert len(found) == len(set(map(str, found))) == mixed_counts()[number]


def test_the_queries_of_the_readme_use_official_verdicts(mixed: Path) -> None:
    with duckdb.connect(str(mixed), read_only=True) as db:
        best, differing = (rows_of(db, QUERIES[number - 1]) for number in (1, 4))

    strong, average = (
        mixed_scores()[f"demo/{name}"].mean(axis=1) for name in ("strong", "average")
    )
    shown = {(row["model"], round(row["accuracy"], 9)) for row in best}
    assert shown == {("demo/strong", strong.mean()), ("demo/average", average.mean())}
    places = {f"q{n:02}": n for n in range(ITEMS)}
    for row in differing:
        place = places[row["item_id"]]
        assert (row["strong"], row["average"]) == (strong[place], average[place])


@pytest.mark.parametrize("link", LINKS)
def test_what_the_readme_links_to_is_there(link: str) -> None:
    assert (ROOT / link).exists()


def test_every_variable_is_in_the_readme_and_in_the_example() -> None:
    example = (ROOT / ".env.example").read_text("utf-8")

    assert [name for name in VARIABLES if f"`{name}`" not in README] == []
    assert [name for name in VARIABLES if f"# {name}=" not in example] == []


@pytest.mark.parametrize("name", ["requirements.lock", "deploy/requirements.lock"])
def test_a_lock_has_hashes_and_names_no_package_index(name: str) -> None:
    lock = (ROOT / name).read_text("utf-8")
    requirements = re.split(r"\n(?=[a-z])", lock.strip())

    assert "://" not in lock and "--index" not in lock
    assert [one.split()[0] for one in requirements if "--hash=sha256:" not in one] == []


def test_ci_runs_the_tests_then_what_takes_longer_and_fails_with_the_first_that_fails() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()

    said = [line for line in script if not line.startswith("#")]
    assert said == ["set -e", "make test", "make soak", "make cluster-test"]

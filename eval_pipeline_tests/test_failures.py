"""What failed in a run, why, and all that it takes to find out: `evals failures`, `evals debug`."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.analysis.failures import chosen_runs, to_analyse
from eval_pipeline.cli.project import results
from eval_pipeline.results.runs import failed_replies
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.failing import ESCAPE, FAULTY, TASK, a_failed_exam
from eval_pipeline_tests.project import call

RUN = "demo/strong@1111"


@pytest.fixture(scope="module")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_failed_exam(tmp_path_factory.mktemp("failed"))


def told(project: Path, command: str) -> str:
    done = call(project, f"evals {command}")
    assert done.returncode == 0, done.stderr
    assert ESCAPE not in done.stdout
    return done.stdout


def found(project: Path, command: str) -> Any:
    return json.loads(told(project, f"{command} --json"))


def test_failures_are_those_of_the_judge_that_stands_with_what_is_known_of_why(
    exam: Path,
) -> None:
    settings = Settings.from_env({"EVALS_SETTINGS": str(exam / "eval_pipeline.toml")})
    with results(settings) as db:
        runs = chosen_runs(db, "latest")
        rows, wrong = failed_replies(db, [run._asdict() for run in runs]), to_analyse(db, runs)

    about = ("item_id", "went", "judge", "judge_version", "failed_step", "classification", "error")
    assert [tuple(row[name] for name in about) for row in rows] == [
        ("q3", "no answer", None, None, None, None, f"{ESCAPE}[31mToo late [bold]"),
        (FAULTY.id, "no verdict", "demo/judge", "v1", None, None, None),
        (TASK.id, "wrong", "demo/judge", "v1", "lint", None, None),
        ("q2", "wrong", "demo/judge", "v1", None, "MODEL_FAULT", "It says 43."),
    ]
    assert [(one.item_id, one.category, one.reason[:4]) for one in wrong] == [
        (TASK.id, "words", "lint"),
        ("q2", "Math", "43 \x1b"),
    ]


def test_failures_of_a_run_are_one_document_with_totals(exam: Path) -> None:
    document = found(exam, "failures latest -m strong")

    run, totals = document["run"], document["totals"]
    assert (run["run_id"], run["model"], run["simulated"]) == ("11111111-a", "demo/strong", True)
    assert (totals["planned"], totals["answered"], totals["judged"]) == (5, 4, 3)
    assert (totals["correct"], totals["accuracy"]) == (1, pytest.approx(1 / 3))
    assert totals["failed"] == {"wrong": 2, "no answer": 1, "no verdict": 1}
    assert totals["steps"] == {"lint": 1}
    assert totals["classifications"] == {"MODEL_FAULT": 1}
    assert (totals["unclassified"], totals["overridden"]) == (1, 0)
    *_, code, wrong = document["failures"]
    assert (code["failed_step"], code["reason"]) == ("lint", "lint: Rules are broken")
    assert (wrong["classification"], wrong["overridden"]) == ("MODEL_FAULT", False)
    assert found(exam, f"failures {RUN}") == document


def test_runs_of_several_models_are_a_list_also_where_nothing_failed(exam: Path) -> None:
    perfect, strong = found(exam, "failures 1111")["runs"]

    assert (perfect["run"]["model"], perfect["failures"]) == ("demo/perfect", [])
    assert perfect["totals"]["failed"] == {"no answer": 0, "no verdict": 0, "wrong": 0}
    assert strong == found(exam, f"failures {RUN}")


def test_people_read_failures_in_tables_that_nobody_s_words_can_break(exam: Path) -> None:
    page = told(exam, "failures 1111")

    assert "demo/perfect (simulated), run 11111111" in page
    assert "Failed: 1 no answer, 1 no verdict, 2 wrong." in page
    assert "Classified: MODEL_FAULT 1; 1 not." in page
    assert "\ufffd[31mToo late [bold]" in page
    assert "It says 43." in page
    assert f"evals debug demo/strong@11111111 coding/{TASK.id}" in page


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("failures 2222", "There is no run '2222'"),
        ("failures 1111 -m nobody", "There is no run of a model 'nobody'"),
        ("failures latest -m other/*", "There is no run of a model 'other/*'"),
        ("debug demo/strong@1111 q7", "There is no item 'q7'"),
        ("debug 1111 q1", "Several models were asked 'q1'"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(exam: Path, command: str, sentence: str) -> None:
    done = call(exam, f"evals {command} --json")

    assert done.returncode == 2
    said = json.loads(done.stdout)
    assert said["ended"] == "wrong use"
    assert sentence in said["error"] and said["error"] in done.stderr


def test_an_item_is_debugged_with_its_grader_files_steps_and_analysis(exam: Path) -> None:
    code = found(exam, f"debug {RUN} {TASK.id}")
    question = found(exam, f"debug {RUN} q2")

    assert (code["question"], code["answer"], code["grader"]) == (
        TASK.question,
        TASK.answer,
        TASK.grader,
    )
    (reply,) = code["replies"]
    assert reply["files"] == {"answer.py": "A = 1\n"}
    (step,) = reply["verdicts"][0]["steps"]
    assert (step["step"], step["output"]) == ("lint", "a.py:1:8: F401 unused")
    assert code["failures"][0]["failed_step"] == "lint"
    assert found(exam, f"debug {RUN} {FAULTY.id}")["gaps"] == FAULTY.gaps
    assert (question["grader"], question["answer"]) == ({}, "42")
    assert question["failures"][0]["reasoning"].startswith("The sum begins")


def test_people_read_the_grader_and_the_analysis_below_what_show_tells(exam: Path) -> None:
    code, question = told(exam, f"debug {RUN} {TASK.id}"), told(exam, f"debug {RUN} q2")

    assert "== Grader file grader/test_total.py ==\ndef test_total() -> None: ..." in code
    assert "== Analysis: not classified ==" in code
    assert "== Analysis: MODEL_FAULT ==\nerror: It says 43.\nreasoning: The sum begins" in question

"""What `evals compare` and `evals leaderboard` print, whatever names the items have."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from eval_pipeline.cli.main import app
from eval_pipeline_tests.boards import answers, graded, taken
from eval_pipeline_tests.builders import a_benchmark, a_question, settings_in
from eval_pipeline_tests.project import call
from eval_pipeline_tests.test_metrics import published


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models over questions whose names look like markup."""
    folder = tmp_path_factory.mktemp("project")
    questions = [a_question(f"[red]{n:02}[/]", category="[bold]Math[/bold]") for n in range(12)]
    benchmark = a_benchmark(*questions)
    settings = settings_in(folder)
    right, wrong = (taken(f"demo/{name}", benchmark=benchmark) for name in ("strong", "weak"))
    records = [*graded(right, [1.0] * 12), *graded(wrong, [0.0] * 11 + [1.0])]
    part = taken("demo/part", benchmark=benchmark, experiment="[hot]")
    published(settings.data, *records, part, *answers(part), benchmark=benchmark)
    return folder


def evals(project: Path, *arguments: str) -> Result:
    environment = {"EVALS_SETTINGS": str(project / "eval_pipeline.toml"), "COLUMNS": "80"}
    return CliRunner().invoke(app, arguments, env=environment)


def test_compare_prints_who_is_better_and_the_items(project: Path) -> None:
    shown = evals(project, "compare", "demo/strong", "demo/weak")

    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[:2] == [
        "A: demo/strong (simulated, run run-1): 100.0%",
        "B: demo/weak (simulated, run run-1): 8.3%",
    ]
    assert lines[2].startswith("A - B: +91.7 points (95 % interval +52.9 to +100.0) on 12 items")
    assert lines[3] == "A scored higher on 11, B on 0 of them."
    assert lines[4] == "p = 0.00098 (exact McNemar test); 0.00098 corrected for 1 pair (Holm)"
    assert lines[6] == "demo/strong (simulated, run run-1) is better."
    listed = [line.split() for line in lines if "sample/" in line]
    assert listed == [[f"sample/[red]{n:02}[/]", "[bold]Math[/bold]", "1", "0"] for n in range(11)]


@pytest.mark.parametrize(
    ("items", "listed", "more"), [(3, 3, "8 more; all with --items 11"), (0, 0, "")]
)
def test_as_many_items_are_listed_as_are_asked_for(
    project: Path, items: int, listed: int, more: str
) -> None:
    shown = evals(project, "compare", "demo/weak", "demo/strong", "--items", str(items))

    assert shown.output.count("sample/") == listed
    assert more in shown.output
    assert "demo/strong (simulated, run run-1) is better." in shown.output


def test_the_leaderboard_prints_names_as_they_are(project: Path) -> None:
    shown = evals(project, "leaderboard")

    assert shown.exit_code == 0, shown.output
    assert "Not on it: demo/part ([hot], run run-1): 12 not judged" in shown.output
    places = [line.split()[:2] for line in shown.output.splitlines() if "demo/s" in line]
    assert places == [["1", "demo/strong"]]


def test_an_unknown_name_is_a_sentence_and_no_stack_trace(project: Path) -> None:
    done = call(project, "evals compare demo/strong demo/nobody")

    assert done.returncode == 2
    assert done.stderr.startswith("There is no judged run of 'demo/nobody'.")

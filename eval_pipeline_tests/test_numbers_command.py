"""What `evals metrics`, and the JSON of leaderboard, compare and benchmark list, tell."""

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from eval_pipeline.cli.main import app
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.tables.leaderboard import leaderboard_tables
from eval_pipeline.results.tables.metrics import Slice, Wanted, metrics_tables, read_metrics
from eval_pipeline_tests.boards import EXAM, ITEMS, Records, graded, taken, verdicts
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.project import call, run
from eval_pipeline_tests.terminal import in_terminal
from eval_pipeline_tests.test_metrics import published

Named = list[tuple[str, str, str]]
BEST = ("demo/strong", "a1111111", "demo/judge")
OTHERWISE = ("demo/strong", "a1111111", "x/other")
FEW = ("x/few", "d4444444", "demo/judge")
STRONG = [1.0] * 30 + [0.0] * 10
HALF = [1.0, 0.0] * 20
LONG = "openrouter/a-model-whose-name-goes-on-and-on-and-on:some-provider"
FOLDED = (LONG, "f6666666", "demo/judge")
RATE = re.compile(r"\d\.\d% \((\d+% to \d+%|\d+-\d+)\)")


def records() -> Records:
    """Complete, incomplete, unjudged, filtered and otherwise judged runs."""
    strong = taken("demo/strong", "a1111111")
    later = taken("demo/strong", "b2222222", hour=1)
    part = taken("x/part", "c3333333", experiment="[bold]", simulated=False)
    few = taken("x/few", "d4444444", plan=list(EXAM.items)[:3], scope="filtered", simulated=False)
    long = taken(LONG, "f6666666", simulated=False)
    abandoned = taken("x/few", "e5555555", hour=-1, simulated=False, scope="filtered")
    return [
        *graded(strong, STRONG),
        *verdicts(strong, HALF, judge="x/other"),
        *graded(later, STRONG[:25]),
        *graded(part, []),
        *graded(few, [1.0, 0.0, 1.0]),
        *graded(long, HALF),
        abandoned,
    ]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    published(settings_in(folder).data, *records(), benchmark=EXAM)
    return folder


def evals(project: Path, *arguments: str, columns: int = 80) -> Result:
    variables = {"EVALS_SETTINGS": str(project / "eval_pipeline.toml"), "COLUMNS": str(columns)}
    return CliRunner().invoke(app, arguments, env=variables, catch_exceptions=False)


def told(project: Path, *arguments: str) -> Any:
    return json.loads(evals(project, *arguments, "--json").stdout)


def named(rows: list[dict[str, Any]]) -> Named:
    return sorted((row["model"], row["run_id"], row["judge"] or "") for row in rows)


def test_strict_numbers_are_of_complete_runs_and_say_what_is_left_out(project: Path) -> None:
    found = told(project, "metrics")

    assert named(found["metrics"]) == [BEST, OTHERWISE, FOLDED, FEW]
    assert all(row["complete"] for row in found["metrics"])
    assert named(found["left_out"]) == [
        ("demo/strong", "b2222222", "demo/judge"),
        ("x/part", "c3333333", ""),
    ]
    lacking = {row["run_id"]: row["incomplete_because"] for row in found["left_out"]}
    assert lacking == {"b2222222": "15 not judged", "c3333333": "40 not judged"}


def test_moderate_numbers_are_of_the_latest_runs_with_what_they_could_be(project: Path) -> None:
    found = told(project, "metrics", "--moderate")

    assert found["left_out"] == []
    rows = {(row["model"], row["judge"]): row for row in found["metrics"]}
    strong = rows["demo/strong", "demo/judge"]
    assert (strong["run_id"], strong["judged"], strong["accuracy"]) == ("b2222222", 25, 1.0)
    assert strong["coverage"] == 25 / ITEMS
    assert strong["accuracy_if_missing_wrong"] == 25 / ITEMS
    assert strong["accuracy_if_missing_right"] == 1.0
    assert rows["x/part", None]["accuracy"] is None


def test_json_has_every_column_of_the_table(project: Path) -> None:
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        columns = db.sql("from metrics").columns

    found = told(project, "metrics")

    assert [list(row) for row in found["metrics"]] == [columns] * 4
    assert [list(row) for row in found["left_out"]] == [columns] * 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["a11"], [BEST, OTHERWISE]),
        (["a11", "--judge", "x/other"], [OTHERWISE]),
        (["-m", "x/few"], [FEW]),
        (["-m", "FEW", "-m", "open*"], [FOLDED, FEW]),
        (["latest", "--moderate"], [("demo/strong", "b2222222", "demo/judge")]),
        (["x/few@d4"], [FEW]),
        (["a11", "-m", "few"], []),
        (["b22"], []),
        (["-e", "[bold]"], []),
        (["-e", "[bold]", "--moderate"], [("x/part", "c3333333", "")]),
    ],
)
def test_runs_models_experiments_and_judges_narrow_it(
    project: Path, arguments: list[str], expected: Named
) -> None:
    assert named(told(project, "metrics", *arguments)["metrics"]) == expected


@pytest.mark.parametrize(
    ("by", "labels"),
    [
        ("suite", {("sample", None, None)}),
        ("input", {(None, None, "text"), (None, None, "image")}),
        ("category", {("sample", name, None) for name in ("Biology", "Math", "Physics")}),
    ],
)
def test_slices_add_up_to_the_run(
    project: Path, by: str, labels: set[tuple[str | None, ...]]
) -> None:
    rows = told(project, "metrics", "a11", "--judge", "demo/judge", "--by", by)["metrics"]

    assert {(row["suite"], row["category"], row["input"]) for row in rows} == labels
    assert sum(row["judged"] for row in rows) == ITEMS
    assert sum(row["correct"] for row in rows) == sum(STRONG)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("-m nobody", "There are no numbers of the model 'nobody'. There are: demo/strong, "),
        ("-e none", "There are no numbers of the experiment 'none'. There are: [bold], default."),
        ("--judge none", "There are no numbers of the judge 'none'. There are: demo/judge, "),
        ("9999", "There is no run '9999'"),
    ],
)
def test_what_is_not_there_is_a_sentence(project: Path, arguments: str, sentence: str) -> None:
    done = call(project, f"evals metrics {arguments}")

    assert done.returncode == 2
    assert done.stderr.startswith(sentence)
    assert done.stdout == ""


def test_no_rate_is_printed_without_its_interval_and_how_many_were_judged(project: Path) -> None:
    shown = evals(project, "metrics").output

    (strong,) = [line.split() for line in shown.splitlines() if "75.0%" in line]
    assert strong[:6] == ["demo/strong", "(simulated)", "75.0%", "(60%", "to", "86%)"]
    assert strong[6] == str(ITEMS)
    assert "x/few (only a part)" in shown
    assert (
        "Left out: demo/strong (default, run b2222222, judge demo/judge): 15 not judged; " in shown
    )
    assert "Left out: x/part ([bold], run c3333333): 40 not judged; 0 of 40 have" in shown
    assert "evals metrics --moderate" in shown


def test_moderate_prints_coverage_and_bounds(project: Path) -> None:
    shown = evals(project, "metrics", "--moderate").output

    (strong,) = [line for line in shown.splitlines() if "25/40" in line]
    assert "100.0% (87% to 100%)" in strong
    assert "62%" in strong
    assert "62% to 100%" in strong
    assert "x/part ([bold])" in shown
    assert "not judged yet" in shown


def test_tables_fit_into_80_columns(project: Path) -> None:
    with in_terminal(project, "evals metrics") as terminal:
        ended = terminal.end()
        shown = terminal.everything

    assert ended == 0
    rates = told(project, "metrics")["metrics"]
    assert len([line for line in shown.splitlines() if RATE.search(line)]) == len(rates)
    assert LONG not in shown
    assert LONG in evals(project, "metrics").output


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("by", ["all", "category"])
def test_every_rate_stands_in_a_line_of_a_narrow_terminal(
    project: Path, by: Slice, columns: int
) -> None:
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        found = read_metrics(db, Wanted(by=by, moderate=True))
        board = rows(query(db, "summaries/leaderboard"))
    tables = [*metrics_tables(found, by=by, moderate=True), *leaderboard_tables(board)]

    paper = StringIO()
    Console(width=columns, file=paper, force_terminal=True, color_system=None).print(*tables)

    lines = paper.getvalue().splitlines()
    rates = [row for row in found.rows if row["accuracy"] is not None]
    assert max(map(len, lines)) <= columns
    assert len([line for line in lines if RATE.search(line)]) == len(rates) + len(board)


def test_before_the_first_run_that_is_said(tmp_path: Path) -> None:
    settings_in(tmp_path)

    strict, moderate = evals(tmp_path, "metrics"), evals(tmp_path, "metrics", "--moderate")

    assert strict.output == moderate.output == "There is no run yet: evals run\n"
    assert told(tmp_path, "metrics") == {"metrics": [], "left_out": []}


def test_the_leaderboard_as_json_has_what_is_printed(project: Path) -> None:
    found = told(project, "leaderboard")

    assert list(found) == ["leaderboard", "steps", "left_out", "draft"]
    board = [(row["judge"], row["model"], row["rank"]) for row in found["leaderboard"]]
    assert board == [
        ("demo/judge", "demo/strong", 1),
        ("demo/judge", LONG, 2),
        ("x/other", "demo/strong", 1),
    ]
    assert found["leaderboard"][0]["run_ids"] == ["a1111111"]
    left_out = {(row["model"], row["run"]): row["reason"] for row in found["left_out"]}
    assert left_out["x/few", "d4444444"] == "only a part was asked"
    assert left_out["x/part", "c3333333"] == "40 not judged"


def test_a_comparison_as_json_is_whole(project: Path) -> None:
    found = told(project, "compare", "demo/strong", LONG)

    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        (kept,) = db.sql("from comparisons where judge = 'demo/judge'").df().to_dict("records")
    same = ("items", "better", "worse", "test", "p_value", "p_adjusted", "pairs", "significant")
    assert {name: found[name] for name in same} == {name: kept[name] for name in same}
    for name in ("difference", "difference_low", "difference_high", "standard_error", "detectable"):
        assert found[name] == pytest.approx(kept[name])
    assert (found["model_a"], found["run_ids_a"]) == ("demo/strong", ["a1111111"])
    assert len(found["differences"]) == found["better"] + found["worse"] == 20
    assert list(found["differences"][0]) == ["suite", "item_id", "category", "score_a", "score_b"]


def test_benchmark_versions_as_json(project: Path) -> None:
    (version,) = told(project, "benchmark", "list")

    assert version["benchmark_version"] == EXAM.version.benchmark_version
    assert (version["items"], version["runs"]) == (ITEMS, 6)
    assert version["suites"][0]["suite"] == "sample"
    assert version["is_published"] is True


def test_json_of_a_process_is_one_document(project: Path) -> None:
    done = run(project, "evals metrics --json")

    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["metrics"]) == 4

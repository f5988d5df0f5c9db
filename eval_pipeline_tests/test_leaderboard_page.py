"""The leaderboard as a page: who stands where and how certain that is, and who is left out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.results.tables.leaderboard import leaderboard_page, write_leaderboard
from eval_pipeline_tests.boards import EXAM, Records, graded, scores_of, taken
from eval_pipeline_tests.builders import NOON
from eval_pipeline_tests.test_metadata import parts, rendered
from eval_pipeline_tests.test_metrics import published


def page(folder: Path, *records: Any, pictures: Sequence[str] = ()) -> str:
    with published(folder, *records, benchmark=EXAM).reading() as db:
        return leaderboard_page(db, NOON, pictures)


def three(**changes: Any) -> Records:
    """Two models that can not be told apart, and one that is clearly worse."""
    skills = {"lab/_one_": 0.9, "lab/two": 0.88, "lab/three": 0.1}
    runs = [taken(model, **changes) for model in skills]
    return [
        record
        for run, skill in zip(runs, skills.values(), strict=True)
        for record in graded(run, scores_of(skill, seed=1))
    ]


def test_the_page_has_ranks_intervals_ties_and_the_version(tmp_path: Path) -> None:
    written = page(tmp_path, *three(simulated=False))

    html = rendered(written)
    cells = parts(html, "td")
    rows = [cells[n : n + 8] for n in range(0, len(cells), 8)]
    assert [row[:2] for row in rows] == [
        ["1-2", "lab/_one_"],
        ["1-2", "lab/two"],
        ["3", "lab/three"],
    ]
    assert [row[3] for row in rows] == ["A", "A", "B"]
    assert all(" to " in row[2] and row[5] == "40" for row in rows)
    assert "As of 2025-01-01 12:00 UTC." in written
    assert f"Benchmark version {EXAM.version.benchmark_version}" in written
    assert "## Judged by demo/judge" in written
    assert "## Left out\n\nNobody." in written
    assert "`evals job metrics_only`" in written
    assert "SIMULATED" not in written


def test_simulated_models_are_called_so_each_and_on_top(tmp_path: Path) -> None:
    written = page(tmp_path, *three())

    assert "**All models are SIMULATED" in written
    assert "lab/two (simulated)" in parts(rendered(written), "td")


def test_where_only_some_are_simulated_these_are_named(tmp_path: Path) -> None:
    real = taken("lab/real", simulated=False)

    written = page(tmp_path, *three(), *graded(real, scores_of(0.5, seed=2)))

    assert "**Models that are called simulated are SIMULATED" in written
    assert {"lab/real", "lab/two (simulated)"} <= set(parts(rendered(written), "td"))


def test_who_is_left_out_is_told_why(tmp_path: Path) -> None:
    incomplete = taken("lab/half")

    written = page(tmp_path, *three(), *graded(incomplete, [1.0, 0.0]))

    assert parts(rendered(written.split("## Left out")[1]), "td") == [
        "lab/half",
        "default",
        "run-1",
        "38 not judged",
    ]


def test_where_nobody_is_ranked_the_page_says_so(tmp_path: Path) -> None:
    assert "No run is complete yet." in page(tmp_path)


@pytest.mark.parametrize("there", [(), ("accuracy", "calibration")])
def test_the_page_shows_the_plots_that_are_there(tmp_path: Path, there: tuple[str, ...]) -> None:
    plots = tmp_path / "reports" / "plots"
    plots.mkdir(parents=True)
    for name in there:
        (plots / f"{name}.svg").touch()
    report = tmp_path / "reports" / "leaderboard.md"

    with published(tmp_path, *three(), benchmark=EXAM).reading() as db:
        write_leaderboard(db, report, NOON)

    written = report.read_text("utf-8")
    assert [name for name in there if f"](plots/{name}.svg)" in written] == list(there)
    assert written.count("](plots/") == len(there)
    assert [path.name for path in report.parent.iterdir()].count("leaderboard.md") == 1
    assert len(list(report.parent.iterdir())) == 2

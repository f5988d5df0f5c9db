"""The report on what guidelines are worth."""

from dataclasses import replace
from pathlib import Path

from eval_pipeline.evaluation.ablation_report import AblationReport, plan_table
from eval_pipeline_tests.ablations import (
    TASKS,
    TWO,
    USUAL,
    Fabricated,
    worse,
)
from eval_pipeline_tests.builders import (
    NOON,
    a_model,
)


def test_the_page_names_everything_and_takes_no_name_for_markup(tmp_path: Path) -> None:
    odd = a_model("demo/a_b~c", simulated=False)
    made = Fabricated(tmp_path, odd, TWO, sections=("Types", "Errors | <b>"))
    made.add("default", [None, *USUAL[1:]])
    made.add("without_types", worse(12))
    made.add("without_errors_b", USUAL)
    effects = list(made.effects().values())
    report = AblationReport(made.ablation, effects, 0.05, ["without_types: *no*"])

    report.write(tmp_path / "reports" / "ablation_python.md", NOON)

    page = (tmp_path / "reports" / "ablation_python.md").read_text()
    rows = [line.split("|") for line in page.replace("\\|", "!").splitlines() if line[:1] == "|"]
    assert {len(row) for row in rows} == {len(rows[0])}
    worths = {row[1].strip(): row[-2].strip() for row in rows[2:]}
    assert worths == {"all of them": "-", "Types": "essential", "Errors ! \\<b\\>": "dispensable"}
    assert "As of 2025-01-01 12:00 UTC. 40 tasks x 2 models x 1 sample x 4 experiments" in page
    assert "Models: demo/a\\_b\\~c, demo/two (SIMULATED)." in page
    assert "SIMULATED models: demo/two. Their skill is invented" in page
    assert "excludes a loss of more than 5 points" in page
    assert "Pairs that had to be left out: 84 (80 not asked, 4 not graded)." in page
    assert "- `default`: default-" in page and "- `no_guidelines`: none" in page
    assert "- without\\_types: \\*no\\*" in page
    assert list((tmp_path / "reports").iterdir()) == [tmp_path / "reports" / "ablation_python.md"]


def test_if_nothing_differs_the_report_says_that_nothing_was_found(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, sections=("Types",))
    made.add("default", USUAL)
    made.add("no_guidelines", USUAL)
    made.add("without_types", USUAL)

    report = AblationReport(made.ablation, list(made.effects().values()), 0.02)

    said = " ".join(report.remarks())
    assert "Of no section it was found that it matters, or that it does not." in said
    assert "No pair had to be left out." in said
    error = (1 / (TASKS + 2) ** 2) ** 0.5
    assert f"A true loss of {(1.96 + 0.8416) * error * 100:.1f} points" in said


def test_nothing_at_all_is_reported_as_nothing(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, sections=("Types",))

    report = AblationReport(made.ablation, list(made.effects().values()), 0.02)

    assert "Pairs that had to be left out: 160 (160 not asked)." in report.page(NOON)
    assert report.table().row_count == 2
    assert plan_table(replace(made.ablation, toolchain="[red]")).row_count == 3

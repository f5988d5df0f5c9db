"""Guidelines ablation: what is asked, and the command."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eval_pipeline.cli.main import app
from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.ablation import experiment_names
from eval_pipeline.evaluation.ablation_report import requests_line
from eval_pipeline.records.run import Mode
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.coding.guidelines import Section
from eval_pipeline.suites.kinds import Prompts
from eval_pipeline_tests.ablations import (
    ONE,
    a_project,
    experiments,
    planned,
)
from eval_pipeline_tests.builders import (
    a_task,
)
from eval_pipeline_tests.coding_stand import prepared


def test_each_section_is_left_out_once_beside_all_and_none(tmp_path: Path) -> None:
    settings = a_project(tmp_path, tasks=3)

    ablation = planned(settings)

    assert experiments(ablation) == {
        "default": "nothing",
        "no_guidelines": "all of them",
        "without_all": "all",
        "without_form": "Form",
        "without_python": "python",
        "without_types": "Types",
        "without_errors_b": "Errors | <b>",
    }
    assert (len(ablation.plan), ablation.sections) == (3, 5)
    assert f"= {3 * 2 * 7} requests" in requests_line(ablation)
    assert not (settings.data / "ablation").exists()


def test_models_read_all_of_the_guidelines_but_for_one_section(tmp_path: Path) -> None:
    ablation = planned(a_project(tmp_path, tasks=1))
    read = {}

    for one in ablation.variations:
        one.write()
        prompts = Prompts.of(one.settings, one.settings.experiments[one.settings.experiment])
        (_, asked) = prompts.messages(a_task(), ONE)
        read[one.left_out] = str(asked["content"])

    whole = read.pop("nothing")
    texts = {
        "all": "General remarks.",
        "Form": "## Form\n\nOne file.",
        "python": "Python 3.11 it is.",
        "Types": "## Types\n\n```python\n# all of this is code\nx: int = 1\n```",
        "Errors | <b>": "## Errors | <b>\n\nRaise early.",
    }
    assert "\n\n".join(texts.values()) in whole
    assert not any(text in read["all of them"] for text in texts.values())
    for name, text in texts.items():
        assert read[name] == whole.replace(f"{text}\n\n", "")


def test_only_the_guidelines_differ_whatever_an_experiment_of_that_name_says(
    tmp_path: Path,
) -> None:
    settings = a_project(tmp_path, tasks=1).overridden(
        {
            "experiment": "web_search",
            "experiments": {
                "default": {"temperature": 0.5, "max_tokens": 99},
                "no_guidelines": {"temperature": 1.5},
                "without_types": {"web_search": True},
            },
        }
    )

    ablation = planned(settings)

    for one in ablation.variations:
        asked = one.settings.experiments[one.settings.experiment]
        assert one.settings.experiment == one.experiment
        assert (asked.temperature, asked.max_tokens, asked.web_search) == (0.5, 99, False)


def test_tasks_of_other_toolchains_and_those_that_a_filter_excludes_are_not_asked(
    tmp_path: Path,
) -> None:
    settings = a_project(tmp_path, tasks=12).overridden(
        {"plan": {"test_filter": "00[0-5]-a", "max_samples": 3}}
    )

    ablation = planned(settings, pattern="/00[4-9]-|/00[0-2]-")
    convex = planned(settings, toolchain="convex", sections=("Schema",))

    assert [key.item_id for key in ablation.plan] == [f"001-words/00{n}-a-task" for n in range(3)]
    assert convex.plan == (("coding", "100-tables/001-a-task"),)
    assert list(experiments(convex).values()) == ["nothing", "all of them", "Schema"]


@pytest.mark.parametrize(
    ("wanted", "error", "sentence"),
    [
        ({"sections": ("Typos",)}, SettingsError, "There is no section 'Typos'; there are: all, F"),
        ({"pattern": "("}, SettingsError, "must be a regular expression"),
        ({"pattern": "nowhere"}, RunError, "no task for the toolchain 'python' that passes"),
    ],
)
def test_what_can_not_be_asked_is_refused_with_a_reason(
    tmp_path: Path, wanted: Mapping[str, Any], error: type[Exception], sentence: str
) -> None:
    settings = a_project(tmp_path, tasks=1)

    with pytest.raises(error) as refused:
        planned(settings, **wanted)

    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    "guidelines",
    ["# convex\n\n## Schema\n\nDefine it.", "# python\n\nHello.\n\n## all\n\nBye.\n\n## X\n\nx"],
)
def test_guidelines_without_anything_to_leave_out_are_refused(
    tmp_path: Path, guidelines: str
) -> None:
    settings = a_project(tmp_path, tasks=1, guidelines=guidelines)

    with pytest.raises(SettingsError, match=r"(nothing to leave out)|(read as something else)"):
        planned(settings)


def test_sections_with_similar_names_get_experiments_of_their_own() -> None:
    names = ["Types!", "types", "Übung", "日本", "SQL: joins"]

    found = experiment_names([Section(name, "", 0) for name in names])

    assert found["SQL: joins"] == "without_sql_joins"
    assert found["Übung"] == "without_bung"
    assert len(set(found.values())) == len(names)
    assert all(name.isascii() and name.startswith("without_") for name in found.values())


def test_every_variation_is_run_in_turn_and_one_that_fails_keeps_none_back(
    tmp_path: Path,
) -> None:
    ablation = planned(a_project(tmp_path, tasks=1), sections=("Types", "Form"))
    seen = []

    def evaluate(settings: Settings, mode: Mode) -> list[str]:
        told = settings.experiments[settings.experiment].guidelines
        there = settings.path(told).exists() if isinstance(told, Path) else None
        seen.append((settings.experiment, mode, there))
        return ["predictions: no."] if settings.experiment == "no_guidelines" else []

    failures = ablation.run(evaluate, lambda line: None)

    assert failures == ["no_guidelines: predictions: no."]
    assert seen == [
        ("default", Mode.FIX, None),
        ("no_guidelines", Mode.FIX, None),
        ("without_form", Mode.FIX, True),
        ("without_types", Mode.FIX, True),
    ]


def evals(folder: Path, *arguments: str) -> Result:
    environment = {"EVALS_SETTINGS": str(folder / "eval_pipeline.toml"), "COLUMNS": "100"}
    return CliRunner().invoke(app, arguments, env=environment)


def test_a_dry_run_prints_the_plan_and_leaves_nothing_behind(tmp_path: Path) -> None:
    a_project(tmp_path, tasks=2)

    shown = evals(tmp_path, "ablate", "--dry-run", "--sections", "Types", "-f", "000-")

    assert shown.exit_code == 0, shown.output
    assert "without_types" in shown.output and "without_form" not in shown.output
    assert "1 task x 3 models x 1 sample x 3 experiments = 9 requests" in shown.output
    assert not (tmp_path / "data" / "journal").exists()
    assert not (tmp_path / "reports").exists()


@pytest.mark.slow
def test_the_command_asks_simulated_models_and_reports(tmp_path: Path) -> None:
    guidelines = "# python\n\n## Types\n\nA.\n\n## Form\n\nB.\n"
    a_project(tmp_path, tasks=2, guidelines=guidelines, convex=False, models=["demo/strong"])
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "toolchains").symlink_to(prepared().parent)

    shown = evals(tmp_path, "ablate", "--sections", "Types")

    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "reports" / "ablation_python.md").read_text()
    assert "Models: demo/strong (SIMULATED)." in page
    assert "2 tasks x 1 model x 1 sample x 3 experiments = 6 requests" in page
    assert "No pair had to be left out." in page
    assert "| Types " in page and "marginal" in page

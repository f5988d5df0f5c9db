"""Guidelines ablation: what is asked, what each section is found to be worth, and the report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from eval_pipeline.benchmark import load_benchmark
from eval_pipeline.cli import app
from eval_pipeline.coding.ablation import Ablation, Wanted, experiment_names, plan_ablation
from eval_pipeline.coding.ablation_effects import Effect, measure
from eval_pipeline.coding.ablation_report import AblationReport, plan_table
from eval_pipeline.coding.guidelines import Section
from eval_pipeline.environment import SettingsError
from eval_pipeline.kinds import Prompts
from eval_pipeline.records import Judgement, Model, Prediction, Prices, Run, Usage
from eval_pipeline.runs import Mode, RunError
from eval_pipeline.settings import Settings
from eval_pipeline.stats.cautious import cautious
from eval_pipeline.stats.pairs import Differences, compare, holm, mcnemar
from eval_pipeline.warehouse import Warehouse
from eval_pipeline_tests.builders import (
    NOON,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_run,
    a_task,
    settings_in,
)
from eval_pipeline_tests.coding_stand import prepared

GUIDELINES = """General remarks.

# all

## Form

One file.

# python

Python 3.11 it is.

## Types

```python
# all of this is code
x: int = 1
```

## Errors | <b>

Raise early.

# convex

## Schema

Define it.
"""
SECTIONS = ["all", "Form", "python", "Types", "Errors | <b>"]
TASKS = 40
ONE, TWO = a_model("demo/one"), a_model("demo/two")
TEST = """from answer import VALUE


def test_value() -> None:
    assert VALUE == 42
"""
SUITE = {"name": "coding", "kind": "coding", "path": "evals"}


def a_project(
    folder: Path,
    *,
    tasks: int = TASKS,
    guidelines: str = GUIDELINES,
    convex: bool = True,
    models: Sequence[str] = (),
) -> Settings:
    """A suite with so many tasks for python and one for convex."""
    for number in range(tasks):
        _write_task(folder / "evals" / "001-words" / f"{number:03}-a-task", "answer.py", "python")
    if convex:
        _write_task(folder / "evals" / "100-tables" / "001-a-task", "convex/schema.ts", "convex")
    (folder / "evals" / "guidelines.md").write_text(guidelines)
    selection = {"models": models}
    return settings_in(folder, suites=[SUITE], judge={"rules": "only"}, selection=selection)


def _write_task(folder: Path, file: str, toolchain: str) -> None:
    texts = {
        "TASK.txt": f"Write {file} ({folder.name}).",
        "eval.toml": f'toolchain = "{toolchain}"\nsteps = ["tests"]\n',
        f"answer/{file}": "VALUE = 42\n",
        "grader/test_answer.py": TEST,
    }
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def planned(settings: Settings, *models: Model, **wanted: Any) -> Ablation:
    return plan_ablation(settings, settings.suites[0], Wanted(**wanted), models or (ONE, TWO))


def experiments(ablation: Ablation) -> dict[str, str]:
    return {one.experiment: one.left_out for one in ablation.variations}


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
    assert ablation.requests == 3 * 2 * 7
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

    with pytest.raises(SettingsError, match=r"(no guidelines to leave)|(read as something else)"):
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


Scores = Sequence[float | None]
USUAL = [1.0, 1.0, 1.0, 0.0] * (TASKS // 4)
"""Scores with all guidelines."""


def worse(count: int) -> list[float]:
    """The usual scores, but for so many tasks that are no longer solved."""
    solved = [place for place, score in enumerate(USUAL) if score][:count]
    return [0.0 if place in solved else score for place, score in enumerate(USUAL)]


class Fabricated:
    """A journal with the runs of an ablation."""

    def __init__(self, folder: Path, *models: Model, **wanted: Any) -> None:
        self.settings = a_project(folder)
        self.ablation = planned(self.settings, *models, **wanted)
        self.benchmark = load_benchmark(self.settings)
        self.records: list[Run | Prediction | Judgement] = []

    def add(
        self, experiment: str, scores: Scores, *models: Model, run_id: str = "", **changes: Any
    ) -> None:
        """A run of each model under an experiment; with a score of None nobody could tell."""
        (one,) = (one for one in self.ablation.variations if one.experiment == experiment)
        tokens = {"default": 1000, "no_guidelines": 200}.get(experiment, 950)
        for model in models or self.ablation.models:
            values: dict[str, Any] = {
                "experiment": experiment,
                "benchmark_version": self.benchmark.version.benchmark_version,
                "parameters": {"temperature": 0, "coding_prompt_hash": one.prompt_hash},
                "scope": "filtered",
            }
            name = run_id or f"{experiment}-run"
            run = a_run(name, model.id, self.ablation.plan, **{**values, **changes})
            self.records.append(run)
            for key, score in zip(run.plan, scores, strict=True):
                self._reply(run, key.item_id, score, tokens)

    def _reply(self, run: Run, item_id: str, score: float | None, tokens: int) -> None:
        about = {"suite": "coding", "run_id": run.run_id, "model": run.model}
        reply = a_prediction(item_id, **about, usage=Usage(input_tokens=tokens))
        outcome = {"outcome": "sandbox_error"} if score is None else {}
        self.records += [reply, a_judgement(reply, score, judge="rules", **outcome)]

    def change(self, changed: type, where: Mapping[str, str], **changes: Any) -> None:
        """Changes the records of a kind whose fields are these."""
        self.records = [
            record.model_copy(update=changes)
            if isinstance(record, changed)
            and all(getattr(record, name) == value for name, value in where.items())
            else record
            for record in self.records
        ]

    def effects(self) -> dict[str, Effect]:
        journal = a_journal(self.settings.data, *self.records, benchmark=self.benchmark)
        warehouse = Warehouse(self.settings.database, journal)
        warehouse.publish()
        with warehouse.reading() as db:
            return {one.variation.experiment: one for one in measure(db, self.ablation)}


def test_a_section_that_is_missed_is_essential_and_one_that_is_not_dispensable(
    tmp_path: Path,
) -> None:
    made = Fabricated(tmp_path, sections=("Types", "Form"))
    made.add("default", USUAL)
    made.add("no_guidelines", [0.0] * TASKS)
    made.add("without_types", worse(12))
    made.add("without_form", USUAL)

    found = made.effects()

    types, form = found["without_types"], found["without_form"]
    assert types.paired and form.paired and types.paired.interval and form.paired.interval
    assert (types.paired.items, types.tasks, types.paired.worse) == (2 * TASKS, TASKS, 24)
    assert types.paired.difference == pytest.approx(-12 / TASKS)
    assert types.paired.interval.low < -0.3 < types.paired.interval.high < 0
    # The models lost the same tasks, so these are 12 signs that may flip and not 24.
    assert types.p_value == pytest.approx(2 * mcnemar(0, 12))
    assert types.worth(0.02) == "essential"
    assert (form.paired.difference, form.p_value) == (0, 1)
    assert form.paired.interval.low == pytest.approx(-1.96 / (TASKS + 2), abs=1e-5)
    assert [form.worth(margin) for margin in (0.02, 0.05)] == ["marginal", "dispensable"]
    assert found["no_guidelines"].p_value == pytest.approx(mcnemar(0, 30))


def test_a_loss_that_may_be_chance_among_so_many_sections_is_not_called_essential(
    tmp_path: Path,
) -> None:
    made = Fabricated(tmp_path, ONE, sections=("Types", "Form", "python"))
    made.add("default", USUAL)
    for experiment, lost in (("without_types", 6), ("without_form", 7), ("without_python", 0)):
        made.add(experiment, worse(lost))

    found = made.effects()

    names = ["without_form", "without_python", "without_types"]
    alone = [mcnemar(0, 7), 1.0, mcnemar(0, 6)]
    assert [found[name].p_value for name in names] == pytest.approx(holm(alone))
    assert [found[name].worth(0.02) for name in names] == ["essential", "marginal", "marginal"]
    assert mcnemar(0, 6) < 0.05


def test_better_without_a_section_makes_it_dispensable(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, ONE, sections=("Types",))
    made.add("default", worse(15))
    made.add("without_types", USUAL)

    types = made.effects()["without_types"]

    assert types.paired and types.paired.difference > 0
    assert types.worth(0.0) == "dispensable"


def test_pairs_without_two_scores_are_left_out_and_counted_by_reason(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, sections=("Types", "Form"))
    made.add("default", [None, *USUAL[1:]])
    made.add("without_types", USUAL, ONE)
    failed = {"run_id": "without_types-run", "item_id": "001-words/007-a-task"}
    made.change(Prediction, failed, outcome="timeout", answer=None)
    made.change(Judgement, failed, score=None, outcome="timeout")

    found = made.effects()

    assert found["without_types"].excluded == {
        "not graded": 1,
        "no answer": 1,
        "not asked": TASKS,
    }
    types = found["without_types"].paired
    assert types and (types.items, types.difference) == (TASKS - 2, 0)
    assert found["without_form"].excluded == {"not asked": 2 * TASKS}
    assert found["without_form"].paired is None
    assert found["without_form"].worth(1.0) == "marginal"


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {"temperature": 0, "coding_prompt_hash": "another"}},
        {"experiment": "another"},
        {"benchmark_version": "another"},
        {"samples": 2},
        {"plan": (("coding", "001-words/000-a-task"),)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_runs_that_were_asked_otherwise_are_not_mixed_in(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    made = Fabricated(tmp_path, ONE, sections=("Types",))
    made.add("default", USUAL)
    made.add("without_types", worse(3))
    made.add("without_types", [0.0] * TASKS, run_id="newer", opened_at=NOON.replace(hour=13))
    made.change(Run, {"run_id": "newer"}, **changes)

    types = made.effects()["without_types"]

    assert types.run_ids == ("without_types-run",)
    assert types.paired and types.paired.worse == 3


def test_of_runs_that_were_asked_alike_the_newest_counts(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, ONE, sections=("Types",))
    hot = {"temperature": 1, "coding_prompt_hash": made.ablation.variations[2].prompt_hash}
    made.add("default", USUAL)
    made.add("without_types", USUAL)
    made.add("without_types", worse(5), run_id="newer", opened_at=NOON.replace(hour=13))
    later = NOON.replace(hour=14)
    made.add("without_types", worse(9), run_id="hot", opened_at=later, parameters=hot)

    types = made.effects()["without_types"]

    assert types.run_ids == ("newer",)
    assert types.paired and types.paired.worse == 5


def test_scores_of_different_judges_are_not_compared(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, ONE, sections=("Types",))
    made.add("default", USUAL)
    made.add("without_types", worse(5))
    made.change(Judgement, {"run_id": "without_types-run"}, judge_version="v2")

    types = made.effects()["without_types"]

    assert types.excluded == {"not graded": TASKS}


def test_tokens_are_measured_where_no_request_was_repeated(tmp_path: Path) -> None:
    dear = ONE.model_copy(update={"prices": Prices(prompt=2e-6, completion=1e-5)})
    made = Fabricated(tmp_path, dear, sections=("Types", "Form"))
    for experiment in ("default", "without_types", "without_form"):
        made.add(experiment, USUAL)
    usual, first = {"run_id": "default-run"}, {"item_id": "001-words/000-a-task"}
    made.change(Prediction, usual, attempts=2, usage=Usage(input_tokens=2000))
    made.change(Prediction, {**usual, **first}, attempts=1, usage=Usage(input_tokens=1000))
    made.change(Prediction, {"run_id": "without_form-run"}, usage=Usage())

    found = made.effects()

    types, form = found["without_types"], found["without_form"]
    assert (types.tokens, types.is_measured) == (50, True)
    assert types.usd == pytest.approx(50 * 2e-6 * 1000)
    assert (form.tokens, form.is_measured) == (form.variation.tokens, False)
    assert form.usd == pytest.approx(form.tokens * 2e-6 * 1000)


def test_a_cost_that_is_not_known_of_every_model_is_not_told(tmp_path: Path) -> None:
    dear = ONE.model_copy(update={"prices": Prices(prompt=2e-6, completion=1e-5)})
    made = Fabricated(tmp_path, dear, TWO, sections=("Types",))
    made.add("default", USUAL)

    found = made.effects()

    assert found["without_types"].usd is None


def test_the_interval_is_that_of_single_pairs_where_each_task_was_done_by_one_model() -> None:
    differences = [1.0] * 3 + [-1.0] * 9 + [0.0] * 40

    found = cautious(differences, range(len(differences)))

    values, counts = np.unique(differences, return_counts=True)
    expected = compare(Differences(values, counts, binary=True), seed=1).interval
    assert found.interval == pytest.approx(expected)


def test_models_that_do_the_same_on_a_task_count_once() -> None:
    differences, tasks = [-1.0] * 9 + [0.0] * 41, list(range(50))

    once = cautious(differences, tasks)
    thrice = cautious(differences * 3, tasks * 3)
    apart = cautious(differences * 3, range(150))

    assert thrice.interval == pytest.approx(once.interval)
    assert apart.standard_error < 0.7 * once.standard_error


def test_tasks_with_more_models_weigh_more() -> None:
    differences, tasks = [-1.0] * 3 + [0.0] * 20, [0, 0, 0, *range(1, 21)]

    found = cautious(differences, tasks)

    middle = (found.interval.low + found.interval.high) / 2
    assert middle == pytest.approx(-3 / 23 * 21 / 23)


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

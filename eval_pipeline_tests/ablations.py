"""Projects with guidelines, and journals of ablations that never took place."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_pipeline.evaluation.ablation import Ablation, plan_ablation
from eval_pipeline.evaluation.ablation_report import Effect, measure
from eval_pipeline.records.model import Model
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import load_benchmark
from eval_pipeline_tests.builders import (
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_run,
    settings_in,
)

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
    return plan_ablation(settings, settings.suites[0], models or (ONE, TWO), **wanted)


def experiments(ablation: Ablation) -> dict[str, str]:
    return {one.experiment: one.left_out for one in ablation.variations}


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

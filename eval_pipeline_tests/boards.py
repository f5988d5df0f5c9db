"""Journals in which several models took one exam, and the scores they got, to compute with."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.suites.benchmark import Benchmark
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_judgement,
    a_prediction,
    a_question,
    a_run,
)

Records = list[Run | Prediction | Judgement]
Scores = NDArray[np.float64]
"""A row per item of the plan, a column per sample."""
ITEMS = 40
CATEGORIES = ("Biology", "Math", "Physics")
PICTURE = "data:image/png;base64,"
EXAM = a_benchmark(
    *(
        a_question(
            f"q{n:02}",
            category=CATEGORIES[n % 3],
            image=PICTURE if n % 10 == 9 else None,
        )
        for n in range(ITEMS)
    )
)
ABOUT = pd.DataFrame(
    [
        (key.item_id, one.category, one.cluster or one.category, one.image is None)
        for key, one in EXAM.items.items()
    ],
    columns=["item_id", "category", "cluster", "is_text"],
).set_index("item_id")
TEXT = [key for key, one in EXAM.items.items() if one.image is None]


def taken(
    model: str,
    run_id: str = "run-1",
    *,
    hour: float = 0,
    benchmark: Benchmark = EXAM,
    plan: Sequence[ItemKey] | None = None,
    **changes: object,
) -> Run:
    """A run over the exam, opened so many hours after noon."""
    version = {"benchmark_version": benchmark.version.benchmark_version}
    opened = {"opened_at": NOON + timedelta(hours=hour)}
    chosen = list(benchmark.items) if plan is None else plan
    return a_run(run_id, model, chosen, **{**version, **opened, **changes})


def scores_of(skill: float, *, seed: int, items: int = ITEMS, samples: int = 1) -> Scores:
    """Scores of 0 or 1; the first items are the easier ones, for all models alike."""
    ease = np.linspace(0.5, -0.5, items)[:, np.newaxis]
    drawn = np.random.default_rng(seed).random((items, samples))
    return (drawn < skill + ease * min(skill, 1 - skill)).astype(np.float64)


def answers(run: Run, **changes: object) -> list[Prediction]:
    """A reply to every item of the plan, as often as the run has samples."""
    return [
        a_prediction(
            key.item_id,
            **{"suite": key.suite, "run_id": run.run_id, "model": run.model, "sample": sample},
            **{"prediction_id": f"{run.run_id} {run.model} {key.item_id} {sample}", **changes},
        )
        for key in run.plan
        for sample in range(run.samples)
    ]


def verdicts(
    run: Run, scores: Scores | Sequence[float | None], **changes: object
) -> list[Judgement]:
    """A verdict on each reply; on the first ones where there are fewer scores."""
    flat = scores.ravel().tolist() if isinstance(scores, np.ndarray) else scores
    pairs = zip(answers(run), flat, strict=False)
    return [a_judgement(prediction, score, **changes) for prediction, score in pairs]


def graded(run: Run, scores: Scores | Sequence[float | None], **changes: object) -> Records:
    """The run with all its replies and the verdicts of one judge."""
    return [run, *answers(run), *verdicts(run, scores, **changes)]


def item_means(runs: Sequence[tuple[Run, Scores]]) -> "pd.Series[float]":
    """The mean score of each item over all replies of these runs."""
    tables = [pd.DataFrame(scores, index=[key.item_id for key in run.plan]) for run, scores in runs]
    return pd.concat(tables, axis=1).mean(axis=1)


def by_category(means: "pd.Series[float]") -> Mapping[str, float]:
    found = means.groupby(ABOUT["category"]).mean()
    return {str(name): float(value) for name, value in found.items()}

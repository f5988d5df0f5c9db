"""The numbers in metrics, against the formulas written out in plain Python."""

import statistics
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest

from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.suites.benchmark import Benchmark
from eval_pipeline_tests.builders import (
    a_benchmark,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
    a_run,
)

Row = dict[str, Any]
NAMED_BY = {"all": [], "suite": ["suite"], "category": ["suite", "category"], "input": ["input"]}
Z = statistics.NormalDist().inv_cdf(0.975)
INFRASTRUCTURE = [outcome for outcome in Outcome if not outcome.is_result]
OWN_FAILINGS = [Outcome.REFUSED, Outcome.TRUNCATED, Outcome.CONTENT_FILTER]
PICTURE = "data:image/png;base64,"
FOUR = a_benchmark(*(a_question(f"q{n}") for n in range(3)), a_question("q3", image=PICTURE))


class Graded(NamedTuple):
    question: ExamQuestion
    score: float
    confidence: float | None


def published(
    folder: Path, *records: Run | Prediction | Judgement, benchmark: Benchmark = FOUR
) -> Warehouse:
    warehouse = Warehouse(folder / "evals.duckdb", a_journal(folder, *records, benchmark=benchmark))
    warehouse.publish()
    return warehouse


def rows(warehouse: Warehouse, sql: str) -> list[Row]:
    with warehouse.reading() as db:
        found = db.sql(sql)
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def whole_runs(warehouse: Warehouse) -> list[Row]:
    return rows(warehouse, "from metrics where slice = 'all' order by model, run_id, judge")


def a_run_of_four(
    run_id: str = "run-1", model: str = "demo/strong", *, items: int = 4, **changes: object
) -> Run:
    version = FOUR.version.benchmark_version
    return a_run(run_id, model, list(FOUR.items)[:items], benchmark_version=version, **changes)


def answered(run: Run, *scores: float | None) -> list[Run | Prediction | Judgement]:
    """The run with one answer and verdict per score, in the order of its plan."""
    predictions = [
        a_prediction(item_id, suite=suite, run_id=run.run_id, model=run.model)
        for (suite, item_id), _ in zip(run.plan, scores, strict=False)
    ]
    return [run, *predictions, *map(a_judgement, predictions, scores)]


def calibration_errors(graded: Iterable[Graded]) -> Row:
    stated = [(one.confidence, one.question, one.score) for one in graded]
    as_planned = [(c, score) for c, _, score in stated if c is not None]
    pairs = [
        (confidence, score)
        for confidence, _, _, score in sorted(
            (c, q.suite, q.id, score) for c, q, score in stated if c is not None
        )
    ]
    n, count = len(pairs), len(pairs) // 100
    sorted_there = [as_planned[n] for n in np.argsort([c for c, _ in as_planned])]
    of_100 = [sorted_there[i * 100 : (i + 1) * 100] for i in range(count - 1)]
    ends = [0, *accumulate(n // count + (i < n % count) for i in range(count))]
    equal = [gap(pairs[start:end]) for start, end in pairwise(ends)]
    brier = statistics.fmean((c - score) ** 2 for c, score in pairs) if pairs else None
    return {
        "calibration_error": sqrt(sum(size / n * g**2 for size, g in equal)) if count else None,
        "expected_calibration_error": sum(size / n * g for size, g in equal) if count else None,
        # The published code of Humanity's Last Exam leaves out the last bin of 100 and more.
        "calibration_error_last_bin_dropped": (
            sqrt(sum(size / n * g**2 for size, g in map(gap, of_100))) if count else None
        ),
        "brier_score": brier,
    }


def gap(pairs: Sequence[tuple[float, float]]) -> tuple[int, float]:
    confidence, score = (statistics.fmean(column) for column in zip(*pairs, strict=True))
    return len(pairs), abs(confidence - score)


def the_numbers(graded: Sequence[Graded], planned: int) -> Row:
    n, correct = len(graded), sum(one.score for one in graded)
    stated = [one.confidence for one in graded if one.confidence is not None]
    share = correct / n if n else 0
    center, spread = share + Z**2 / (2 * n or 1), share * (1 - share) / (n or 1)
    half = Z * sqrt(spread + (Z / (2 * n or 1)) ** 2)
    return {
        "planned": planned,
        "judged": n,
        "coverage": n / planned,
        "correct": correct if n else None,
        "accuracy": share if n else None,
        "accuracy_low": max(0, (center - half) / (1 + Z**2 / n)) if n else None,
        "accuracy_high": min(1, (center + half) / (1 + Z**2 / n)) if n else None,
        "wald_half_width": Z * sqrt(spread) if n else None,
        "accuracy_if_missing_wrong": correct / planned,
        "accuracy_if_missing_right": (correct + planned - n) / planned,
        "with_confidence": len(stated),
        "mean_confidence": statistics.fmean(stated) if stated else None,
        "items": planned,
        "samples": 1,
        "items_judged": n,
        "standard_error": statistics.stdev(one.score for one in graded) / sqrt(n)
        if n > 1
        else None,
        **calibration_errors(graded),
    }


def an_exam(stated: int) -> tuple[list[Graded], list[ExamQuestion]]:
    """So many graded answers with a confidence, a tenth as many without, and three never asked."""
    chance = Random(stated)
    questions = [
        a_question(
            f"{chance.random()}",
            suite=chance.choice(["one", "two"]),
            category=chance.choice(["Math", "Physics"]),
            image=chance.choice([None, PICTURE]),
        )
        for _ in range(stated + stated // 10 + 3)
    ]
    scores, confidences = [0.0, 0.5, 1.0, 1.0], [0.0, 0.25, 0.5, 0.9, 1.0]
    graded = [
        Graded(question, chance.choice(scores), chance.choice(confidences) if n < stated else None)
        for n, question in enumerate(questions[:-3])
    ]
    return graded, questions


def is_in(question: ExamQuestion, row: Row) -> bool:
    kind = "image" if question.image else "text"
    told = {"suite": question.suite, "category": question.category, "input": kind}
    return all(row[name] in (None, value) for name, value in told.items())


@pytest.mark.parametrize("stated", [0, 1, 99, 100, 150, 199, 200, 250, 1000])
def test_every_slice_has_the_numbers_of_the_formulas(tmp_path: Path, stated: int) -> None:
    graded, questions = an_exam(stated)
    benchmark = a_benchmark(*questions)
    run = a_run(plan=benchmark.items, benchmark_version=benchmark.version.benchmark_version)
    predictions = [a_prediction(one.question.id, suite=one.question.suite) for one in graded]
    verdicts = [
        a_judgement(prediction, one.score, confidence=one.confidence)
        for prediction, one in zip(predictions, graded, strict=True)
    ]

    warehouse = published(tmp_path, run, *predictions, *verdicts, benchmark=benchmark)
    slices = rows(warehouse, "from metrics")

    for row in slices:
        names = [name for name in ("suite", "category", "input") if row[name]]
        assert names == NAMED_BY[row["slice"]]
        planned = sum(is_in(question, row) for question in questions)
        expected = the_numbers([one for one in graded if is_in(one.question, row)], planned)
        assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    for kind in NAMED_BY:
        parts = [row for row in slices if row["slice"] == kind]
        assert sum(row["planned"] for row in parts) == len(questions)
        assert sum(row["judged"] for row in parts) == len(graded)


@pytest.mark.parametrize(
    ("outcomes", "scores", "lacking"),
    [
        ("ok ok ok ok", (1, 1, 0, 0), None),
        ("ok ok ok", (1, 0, 0), "1 not asked"),
        ("ok ok ok timeout", (1, 0, 0), "1 failed (timeout)"),
        ("ok timeout timeout auth", (1,), "3 failed (auth, timeout)"),
        ("ok ok ok ok", (1, 0), "2 not judged"),
        ("ok ok ok ok", (1, 0, None, None), "2 not judged (judge_unparsable)"),
        ("ok ok server_error", (1,), "1 not asked, 1 failed (server_error), 1 not judged"),
    ],
)
def test_an_incomplete_run_says_what_it_lacks_and_is_not_in_the_strict_view(
    tmp_path: Path, outcomes: str, scores: tuple[float | None, ...], lacking: str | None
) -> None:
    predictions = [
        a_prediction(f"q{n}", outcome=outcome) for n, outcome in enumerate(outcomes.split())
    ]
    verdicts = map(a_judgement, predictions, scores)
    known = [score for score in scores if score is not None]

    warehouse = published(tmp_path, a_run_of_four(), *predictions, *verdicts)

    (row,) = whole_runs(warehouse)
    assert (row["complete"], row["incomplete_because"]) == (lacking is None, lacking)
    assert row["accuracy"] == statistics.fmean(known)
    assert row["accuracy_if_missing_wrong"] == sum(known) / 4
    assert row["accuracy_if_missing_right"] == (sum(known) + 4 - len(known)) / 4
    assert bool(rows(warehouse, "from metrics_strict")) == (lacking is None)
    assert bool(rows(warehouse, "from leaderboard")) == (lacking is None)


def test_a_failure_on_the_way_is_left_out_and_a_failing_of_the_model_counts(tmp_path: Path) -> None:
    records: list[Run | Prediction | Judgement] = []
    for outcome in [*INFRASTRUCTURE, *OWN_FAILINGS]:
        run = a_run_of_four(model=f"demo/{outcome}")
        failing = a_prediction("q1", model=run.model, outcome=outcome, answer=None)
        records += [*answered(run, 1.0), failing]
        records += [a_judgement(failing, 0.0)] if outcome in OWN_FAILINGS else []

    found = whole_runs(published(tmp_path, *records))

    numbers = {
        row["model"]: (row["accuracy"], row["judged"], row["answered"], row["failed"])
        for row in found
    }
    assert numbers == {
        **{f"demo/{outcome}": (1.0, 1, 1, 1) for outcome in INFRASTRUCTURE},
        **{f"demo/{outcome}": (0.5, 2, 2, 0) for outcome in OWN_FAILINGS},
    }


def test_tokens_and_costs_are_summed_and_times_are_quantiles_of_what_is_known(
    tmp_path: Path,
) -> None:
    usage = Usage(input_tokens=10, output_tokens=20, reasoning_tokens=5, cost_usd=0.25)
    exact, latencies = usage.model_copy(update={"cost_estimated": False}), [1.0, 2.0, 7.0]
    predictions = [
        a_prediction(f"q{n}", usage=usage if n else exact, latency_s=seconds, first_token_s=0.5)
        for n, seconds in enumerate(latencies)
    ]
    verdicts = [a_judgement(one, usage=Usage(cost_usd=0.01)) for one in predictions]

    warehouse = published(tmp_path, a_run_of_four(), *predictions, a_prediction("q3"), *verdicts)

    (row,) = whole_runs(warehouse)
    expected = {
        "input_tokens": 30,
        "output_tokens": 60,
        "reasoning_tokens": 15,
        "cost_usd": None,
        "cost_known_usd": 0.75,
        "costs_unknown": 1,
        "cost_estimated": True,
        "judge_cost_usd": 0.03,
        "latency_p50_s": 2.0,
        "latency_p95_s": statistics.quantiles(latencies, n=20, method="inclusive")[-1],
        "first_token_p50_s": 0.5,
        "output_tokens_per_s": statistics.median((20 - 5) / (s - 0.5) for s in latencies),
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected)


def test_a_run_without_any_verdict_has_no_judge_and_no_accuracy(tmp_path: Path) -> None:
    warehouse = published(tmp_path, a_run_of_four(), a_prediction("q0"))

    (row,) = whole_runs(warehouse)
    assert [row["judge"], row["accuracy"], row["accuracy_low"], row["correct"]] == [None] * 4
    assert (row["accuracy_if_missing_wrong"], row["accuracy_if_missing_right"]) == (0, 1)
    assert row["incomplete_because"] == "3 not asked, 1 not judged"


def test_each_judge_of_a_run_has_rows_of_its_own(tmp_path: Path) -> None:
    records = answered(a_run_of_four(), 1, 1, 1, 1)
    second = [a_judgement(a_prediction(name), 0, judge="other/judge") for name in ("q0", "q1")]

    warehouse = published(tmp_path, *records, *second)

    found = whole_runs(warehouse)
    assert [(row["judge"], row["accuracy"], row["incomplete_because"]) for row in found] == [
        ("demo/judge", 1, None),
        ("other/judge", 0, "2 not judged"),
    ]
    assert [row["judge"] for row in rows(warehouse, "from leaderboard")] == ["demo/judge"]

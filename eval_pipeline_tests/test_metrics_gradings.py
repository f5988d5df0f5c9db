"""Whose verdicts on which replies the metrics count: judges in their versions, samples, views."""

from datetime import timedelta
from pathlib import Path

import pytest

from eval_pipeline.records.prediction import Usage
from eval_pipeline.records.run import Run
from eval_pipeline.results.queries import query
from eval_pipeline_tests.builders import NOON, a_judgement, a_prediction
from eval_pipeline_tests.test_metrics import (
    a_run_of_four,
    answered,
    published,
    rows,
    whole_runs,
)


def test_each_version_of_a_judge_has_rows_of_its_own(tmp_path: Path) -> None:
    predictions = [a_prediction(f"q{n}") for n in range(4)]
    cents = Usage(cost_usd=0.01)
    old = [a_judgement(one, 0, judge_version="v1", usage=cents) for one in predictions]
    again = [a_judgement(predictions[0], None, judge_version="v1", usage=cents)]
    later = NOON + timedelta(hours=1)
    new = [
        a_judgement(one, 1, judge_version="v2", usage=cents, finished_at=later)
        for one in predictions[:3]
    ]

    warehouse = published(tmp_path, a_run_of_four(), *predictions, *old, *again, *new)

    columns = "judge_version, accuracy, judged, complete, judge_cost_usd"
    found = rows(warehouse, f"select {columns} from metrics where slice = 'all' order by all")
    assert [tuple(row.values()) for row in found] == [
        ("v1", 0, 4, True, pytest.approx(0.05)),
        ("v2", 1, 3, False, pytest.approx(0.03)),
    ]
    assert len(rows(warehouse, "from judged")) == 7
    with warehouse.reading() as db:
        missing = query(db, "checks/every_prediction_is_judged").fetchall()
        (latest,) = query(db, "summaries/metrics").fetchall()
    assert [row[3] for row in missing] == ["q3"]
    assert "1 not judged" in latest


class SampledRun(Run):
    """As a run will be kept that asks each item several times."""

    samples: int = 1


def test_a_run_plans_as_many_replies_as_it_has_samples_of_each_item(tmp_path: Path) -> None:
    run = SampledRun.model_validate({**a_run_of_four(items=2).model_dump(), "samples": 2})
    first, second, third = (
        a_prediction(item, sample=sample, prediction_id=f"{item} {sample}")
        for item, sample in (("q0", 0), ("q0", 1), ("q1", 0))
    )
    ignored = a_prediction("q1", sample=2, prediction_id="not in the plan")
    verdicts = [a_judgement(first, 1), a_judgement(second, 0), a_judgement(ignored, 1)]

    warehouse = published(tmp_path, run, first, second, third, ignored, *verdicts)

    (row,) = whole_runs(warehouse)
    counts = ("items", "samples", "planned", "answered", "judged", "items_judged")
    assert [row[name] for name in counts] == [2, 2, 4, 3, 2, 1]
    assert row["incomplete_because"] == "1 not asked, 1 not judged"
    with warehouse.reading() as db:
        unasked = query(db, "checks/every_planned_item_is_predicted").fetchall()
    assert [one[2:6] for one in unasked] == [("sample", "q1", 1, "not asked")]


def test_the_moderate_view_has_what_the_strict_one_leaves_out(tmp_path: Path) -> None:
    warehouse = published(
        tmp_path,
        *answered(a_run_of_four("whole"), 1, 1, 0, 1),
        *answered(a_run_of_four("part"), 1, 1),
    )

    seen = "select distinct run_id from {} order by run_id"
    assert rows(warehouse, seen.format("metrics_strict")) == [{"run_id": "whole"}]
    assert rows(warehouse, seen.format("metrics_moderate")) == [
        {"run_id": "part"},
        {"run_id": "whole"},
    ]

"""Calibration of the replies in the tables: which count, in which order, in which slice."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import duckdb
import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from eval_pipeline.results import metrics as measuring
from eval_pipeline.results.build import derive
from eval_pipeline.results.schema import create_schema
from eval_pipeline.results.stats.calibration import last_bin_dropped

Reply = tuple[str, str, int, float | None, float | None]
Scored = tuple[float, str, int, float]
AT = "timestamp '2025-01-01'"
SAMPLES = 2


@pytest.fixture
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_schema(connection)
        yield connection


def some_replies(count: int, *, seed: int = 0) -> list[Reply]:
    """Model, item, sample, confidence and score; a tenth state no confidence or have no score."""
    chance = Random(seed)
    replies: list[Reply] = []
    for n in range(count):
        confidence = chance.choice([None, *(step / 10 for step in range(1, 10))])
        score = None if chance.random() < 0.1 else float(chance.random() < 0.5)
        replies.append(("demo/a", f"q{n // SAMPLES:05}", n % SAMPLES, confidence, score))
    return replies


def fill(db: duckdb.DuckDBPyConnection, replies: list[Reply]) -> None:
    """A run of each model over all items: even ones of category Math, odd ones of Physics."""
    db.execute(
        "create or replace temp table given "
        "(model varchar, item_id varchar, sample bigint, confidence double, score double)"
    )
    columns = dict(zip("abcde", map(list, zip(*replies, strict=True)), strict=True))
    db.execute(
        "insert into given select unnest($a), unnest($b), unnest($c), unnest($d), unnest($e)",
        columns,
    )
    verdict = "'demo/judge' as judge, 'v1' as judge_version, 'ok' as outcome, '' as reason"
    reply = "item_id || ' ' || sample as prediction_id, 'run' as run_id, 's' as suite"
    ended = f"1 as attempts, true as cost_estimated, {AT} as finished_at"
    dated = f"{AT} as first_loaded_at, {AT} as last_loaded_at, true as is_current"
    version = "'b' as benchmark_version, 's' as suite, 'v' as suite_version"
    for statement in (
        f"insert into benchmark_versions by name select {version}, {dated}, 1 as items, "
        "'' as answer_prompt_hash, '' as judge_prompt_hash, 1 as protocol",
        "insert into items by name select distinct 's' as suite, 'v' as suite_version, item_id, "
        "'' as question, '' as answer, '' as answer_type, '' as rationale, '' as raw_subject, "
        "if(item_id[-1]::int % 2 = 0, 'Math', 'Physics') as category, "
        "item_id as cluster from given",
        "insert into runs by name select distinct 'run' as run_id, model, "
        "'b' as benchmark_version, 'default' as experiment, 'full' as scope, "
        "1 as planned, '{}' as plan_filter, "
        f"'{{}}' as parameters, true as simulated, {AT} as opened_at, "
        f"{SAMPLES} as samples from given",
        "insert into plans select 'run', model, 's', item_id, "
        "row_number() over (partition by model order by item_id desc) "
        "from (select distinct model, item_id from given)",
        f"insert into predictions by name select {reply}, {ended}, model, item_id, sample, "
        "'ok' as outcome, true as is_result, 'h' as request_hash from given",
        f"insert into judged by name select {reply}, {ended}, {verdict}, model, item_id, sample, "
        "confidence, score from given",
    ):
        db.execute(statement)
    for table in ("metrics", "pass_at_k", "calibration_bins"):
        derive(db, table)


def scored(replies: list[Reply], category: str | None = None) -> list[Scored]:
    """Confidence, item, sample and score of those that have all of it."""
    remainder = {"Math": 0, "Physics": 1}.get(category or "")
    return [
        (confidence, item_id, sample, score)
        for _, item_id, sample, confidence, score in replies
        if confidence is not None and score is not None
        if remainder is None or int(item_id[-1]) % 2 == remainder
    ]


def columns_of(found: Iterable[Scored]) -> np.ndarray[Any, Any]:
    """Confidences and scores."""
    return np.array([(one[0], one[3]) for one in found]).reshape(-1, 2).T


def in_order(replies: list[Reply]) -> np.ndarray[Any, Any]:
    """By confidence, item and sample."""
    return columns_of(sorted(scored(replies)))


def as_planned(replies: list[Reply], *, category: str | None) -> np.ndarray[Any, Any]:
    """In the order of the plan, where the items stand from the last to the first."""
    by_sample = sorted(scored(replies, category), key=lambda one: one[2])
    return columns_of(sorted(by_sample, key=lambda one: one[1], reverse=True))


def test_the_published_error_is_that_of_the_replies_as_they_were_planned_in_every_slice(
    db: duckdb.DuckDBPyConnection,
) -> None:
    replies = some_replies(2000)

    fill(db, replies)

    found = db.sql("select slice, category, calibration_error_last_bin_dropped from metrics")
    rows = found.fetchall()
    assert len(rows) == 5
    for _, category, error in rows:
        assert error == last_bin_dropped(*as_planned(replies, category=category))


def test_bins_of_a_run_are_cut_in_order_of_confidence_item_and_sample(
    db: duckdb.DuckDBPyConnection,
) -> None:
    replies = some_replies(1000)

    fill(db, replies)

    confidence, score = in_order(replies)
    count = len(confidence) // 100
    cells = zip(np.array_split(confidence, count), np.array_split(score, count), strict=True)
    expected = [
        (
            *(number, len(stated), stated.min(), stated.max(), stated.mean(), right.mean()),
            *proportion_confint(right.sum(), len(right), method="wilson"),
        )
        for number, (stated, right) in enumerate(cells, start=1)
    ]
    found = db.sql("select * exclude (run_id, model, judge, judge_version) from calibration_bins")
    assert sorted(found.fetchall()) == [pytest.approx(row) for row in expected]


@pytest.mark.parametrize(("stated", "known"), [(0, 0), (1, 0), (99, 0), (100, 1), (199, 1)])
def test_below_one_bin_the_error_is_unknown_and_not_0(
    db: duckdb.DuckDBPyConnection, stated: int, known: int
) -> None:
    replies: list[Reply] = [
        ("demo/a", f"q{n:05}", 0, 0.75 if n < stated else None, 1.0) for n in range(200)
    ]

    fill(db, replies)

    names = "calibration_error, expected_calibration_error, calibration_error_last_bin_dropped"
    (row,) = db.sql(f"select {names}, brier_score from metrics where slice = 'all'").fetchall()
    assert row[:3] == ((0.25, 0.25, 0.0) if known else (None, None, None))
    assert row[3] == (0.0625 if stated else None)
    assert len(db.sql("from calibration_bins")) == known


def test_many_runs_are_measured_a_few_at_a_time(
    db: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "GRADINGS_AT_ONCE", 2)
    runs = {f"demo/{n}": some_replies(250, seed=n) for n in range(5)}

    fill(db, [(model, *reply[1:]) for model, replies in runs.items() for reply in replies])

    found = db.sql("select model, brier_score from metrics where slice = 'all'").fetchall()
    assert dict(found) == {
        model: pytest.approx(np.mean(np.diff(in_order(replies), axis=0) ** 2))
        for model, replies in runs.items()
    }

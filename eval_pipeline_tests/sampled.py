"""Runs with several samples per item, put straight into the tables and measured there."""

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

import duckdb
from hypothesis import strategies as st

from eval_pipeline.results.build import TABLES, derive
from eval_pipeline.results.schema import create_schema

Row = dict[str, Any]
Scores = Sequence[Sequence[float | None]]
SAMPLED = ("metrics", "pass_at_k", "calibration_bins")


class Sampled(NamedTuple):
    """A run: the scores of each item's samples, and what the items belong to."""

    scores: Scores
    clusters: Sequence[str] = ()
    suites: Sequence[str] = ()
    categories: Sequence[str] = ()
    judge_outcome: str = "ok"


@contextmanager
def empty_tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """All tables, in memory and without rows."""
    with duckdb.connect(config={"threads": 2, "preserve_insertion_order": False}) as connection:
        create_schema(connection)
        yield connection


def insert(db: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    names = list(rows[0]) if rows else []
    chosen = ", ".join(f"unnest(${name}) as {name}" for name in names)
    if rows:
        columns = {name: [row[name] for row in rows] for name in names}
        db.execute(f"insert into {table} by name select {chosen}", columns)


def derived(db: duckdb.DuckDBPyConnection, run: Sampled, *, seed: int = 0) -> Row:
    """The run's row in the slice all; the other tables are there to be queried."""
    (row,) = all_derived(db, [run], seed=seed)
    return row


def all_derived(db: duckdb.DuckDBPyConnection, runs: Sequence[Sampled], *, seed: int) -> list[Row]:
    for table in [*SAMPLED, *(name for names in TABLES.values() for name in names)]:
        db.execute(f"delete from {table}")
    for number, run in enumerate(runs):
        for table, rows in tables_of(run, number).items():
            insert(db, table, Random(seed).sample(rows, len(rows)))
    for table in SAMPLED:
        derive(db, table)
    return rows_of(db, "from metrics where slice = 'all' order by model")


def rows_of(db: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    """What a query finds, by column."""
    found = db.sql(sql)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def tables_of(run: Sampled, number: int) -> dict[str, list[Row]]:
    at = "2025-01-01"
    suites = run.suites or ["one"] * len(run.scores)
    categories = run.categories or ["Math"] * len(run.scores)
    clusters = run.clusters or categories
    keys = [(suite, f"q{n:04}") for n, suite in enumerate(suites)]
    named = {"run_id": "r1", "model": f"demo/{number:02}"}
    version = f"b{number}"
    items = [
        {
            **dict.fromkeys(("question", "answer", "answer_type", "rationale", "raw_subject"), ""),
            **{"suite": suite, "suite_version": version, "item_id": item_id},
            **{"category": category, "cluster": cluster},
        }
        for (suite, item_id), category, cluster in zip(keys, categories, clusters, strict=True)
    ]
    replies = [
        {
            **named,
            **{"suite": suite, "item_id": item_id, "sample": sample},
            **{"prediction_id": f"{item_id} {sample}", "outcome": "ok", "score": score},
            **{"attempts": 1, "cost_estimated": True, "finished_at": at},
        }
        for (suite, item_id), scores in zip(keys, run.scores, strict=True)
        for sample, score in enumerate(scores)
    ]
    asked = {"is_result": True, "request_hash": "h"}
    verdict = {"judge": "demo/judge", "judge_version": "v1", "reason": ""}
    unscored = {"outcome": run.judge_outcome}
    return {
        "benchmark_versions": [
            {
                **{
                    "benchmark_version": version,
                    "suite": suite,
                    "suite_version": version,
                    "items": 1,
                },
                **{"answer_prompt_hash": "", "judge_prompt_hash": "", "protocol": 1},
                **{"first_loaded_at": at, "last_loaded_at": at, "is_current": True},
            }
            for suite in sorted(set(suites))
        ],
        "items": items,
        "runs": [
            {
                **named,
                **{"experiment": "default", "benchmark_version": version, "scope": "full"},
                **{"planned": len(keys), "plan_filter": "{}", "parameters": "{}"},
                **{"simulated": True, "opened_at": at, "samples": max(map(len, run.scores))},
            }
        ],
        "plans": [{**named, "suite": suite, "item_id": item_id} for suite, item_id in keys],
        "predictions": [{**without(row, "score"), **asked} for row in replies],
        "judged": [
            {**row, **verdict, **(unscored if row["score"] is None else {})} for row in replies
        ],
    }


def without(row: Row, name: str) -> Row:
    return {key: value for key, value in row.items() if key != name}


def means_of(scores: Scores) -> list[float]:
    """The mean score of each item that has any."""
    known = [[score for score in samples if score is not None] for samples in scores]
    return [statistics.fmean(samples) for samples in known if samples]


def chance_scores(items: int, samples: int, *, seed: int) -> list[list[float]]:
    """Scores of 0 or 1 of items that differ in how hard they are."""
    chance = Random(seed)
    skills = [chance.betavariate(0.5, 0.7) for _ in range(items)]
    return [[float(chance.random() < skill) for _ in range(samples)] for skill in skills]


SCORES: st.SearchStrategy[Scores] = st.integers(1, 5).flatmap(
    lambda samples: st.lists(
        st.lists(st.sampled_from([0.0, 1.0, None]), min_size=samples, max_size=samples),
        min_size=1,
        max_size=12,
    )
)

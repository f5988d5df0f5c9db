"""What there is to measure: results as they were published, and runs that are at work."""

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from operator import attrgetter
from typing import Any

import duckdb

from eval_pipeline.results.queries import query, rows
from eval_pipeline.settings import Settings
from eval_pipeline.viewer.at_work import Progress
from eval_pipeline.viewer.exposition import Family, Sample

MOST_NAMES = 200
"""So many models and judges have numbers of their own: whoever pushes runs can invent names."""
PURPOSES, WAYS = ("asking", "judging"), ("input", "output")
COUNTED = {
    "planned": "Replies that a run at work is for.",
    "answered": "Replies that it has.",
    "failed": "Replies that were asked for in vain.",
    "judged": "Replies that have a score.",
}
Row = Mapping[str, Any]


def of_results(db: duckdb.DuckDBPyConnection) -> Iterator[Family]:
    """What stands in the published results; evals delete can make it less, so none is a counter."""
    replies = rows(query(db, "viewer/measured_replies", {"most": MOST_NAMES}))
    used = rows(query(db, "viewer/measured_use", {"most": MOST_NAMES}))
    verdicts = rows(query(db, "viewer/measured_verdicts", {"most": MOST_NAMES}))
    runs = rows(query(db, "viewer/measured_runs"))
    yield _gauge("runs", "Runs, and whether every planned reply has a score.", runs)
    yield _gauge("predictions", "Replies that stand, by model and outcome.", replies)
    yield _gauge("judgements", "Verdicts that stand, by judge and outcome.", verdicts)
    yield _gauge(
        "cost_usd",
        "What replies and verdicts have cost as far as that is known, by the model asked about.",
        [
            {**row, "value": row[f"{what}_usd"], "purpose": what}
            for row in used
            for what in PURPOSES
        ],
        ("model", "simulated", "purpose"),
    )
    yield _gauge(
        "cost_unknown",
        "Replies whose cost nobody has told.",
        [{**row, "value": row["costs_unknown"]} for row in used],
        ("model", "simulated"),
    )
    yield _gauge(
        "tokens",
        "Tokens that the models were sent and have replied, every attempt included.",
        [{**row, "value": row[f"{way}_tokens"], "direction": way} for row in used for way in WAYS],
        ("model", "simulated", "direction"),
    )


def of_now(settings: Settings, at_work: Sequence[Progress]) -> Iterator[Family]:
    """How it is at the moment."""
    yield Family(
        "evals_info", "gauge", "This server.", [Sample(1, {"version": version("eval-pipeline")})]
    )
    yield Family(
        "evals_results_age_seconds",
        "gauge",
        "Since when the file of results is as it is.",
        [Sample(time.time() - settings.database.stat().st_mtime)],
    )
    free = shutil.disk_usage(settings.data).free
    yield Family("evals_disk_free_bytes", "gauge", "Room for more.", [Sample(free)])
    yield Family("evals_runs_at_work", "gauge", "Runs at work.", [Sample(len(at_work))])
    yield Family("evals_queue", "gauge", "What runs at work have yet to do.", _queue(at_work))
    for name, about in COUNTED.items():
        yield Family(f"evals_run_{name}", "gauge", about, _of_runs(name, at_work[:MOST_NAMES]))


def _queue(at_work: Iterable[Progress]) -> list[Sample]:
    asking = sum(max(0, one.planned - one.answered) for one in at_work)
    judging = sum(max(0, one.answered - one.judged) for one in at_work)
    return [Sample(asking, {"stage": "predictions"}), Sample(judging, {"stage": "judged"})]


def _of_runs(name: str, at_work: Sequence[Progress]) -> list[Sample]:
    value = attrgetter(name)
    return [
        Sample(
            value(one),
            {
                "run_id": one.run_id,
                "model": one.model,
                "experiment": one.experiment,
                "simulated": _text(one.simulated),
            },
        )
        for one in at_work
    ]


def _gauge(
    name: str, about: str, found: Sequence[Row], labels: Sequence[str] | None = None
) -> Family:
    """Rows with a value; what else they have, or these parts of it, are labels."""
    samples = [
        Sample(
            float(row["value"]),
            {one: _text(row[one]) for one in labels or row if one != "value"},
        )
        for row in found
        if row["value"] is not None
    ]
    return Family(f"evals_{name}", "gauge", about, samples)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

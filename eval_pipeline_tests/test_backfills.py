"""Many models materialized in the UI, by a real webserver and daemon, in a run for each."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.defs.partitions import ONE
from eval_pipeline.providers.demo.faults import Faults
from eval_pipeline.providers.demo.server import DemoGateway
from eval_pipeline_tests.builders import a_question
from eval_pipeline_tests.project import call
from eval_pipeline_tests.webserver import (
    IMPATIENT,
    STAGES,
    Run,
    a_quick_project,
    change,
    dagster_dev,
)

MODELS = [f"demo/m{number}" for number in range(1, 7)]
ITEMS = [a_question(f"q{number}") for number in range(1, 5)]
AT_A_TIME = 2
DESCRIBED = """
[[gateways.models]]
id = "{model}"
request_name = "{request_name}"
prices = {{ prompt = 1e-7, completion = 4e-7 }}
"""


@pytest.fixture
def gateway() -> Iterator[DemoGateway]:
    # So slow that all runs would overlap if nobody held them back: each takes seconds to start.
    slow = Faults(latency_s=6, models=("demo/strong",))
    with DemoGateway(ITEMS, faults=slow) as gateway:
        yield gateway


@pytest.fixture
def project(tmp_path: Path, gateway: DemoGateway) -> Path:
    """Six models that are one and the same at the gateway, and few runs at a time."""
    project = a_quick_project(tmp_path, ITEMS)
    named = {**dict.fromkeys(MODELS, "demo/strong"), "demo/judge": "demo/judge"}
    described = [DESCRIBED.format(model=model, request_name=name) for model, name in named.items()]
    settings, kind = project / "eval_pipeline.toml", 'kind = "demo"\n'
    change(settings, kind, f'{kind}base_url = "{gateway.base_url}"\n{"".join(described)}')
    change(settings, "preflight = true", "preflight = false")
    change(project / "dagster.yaml", "limit: 10", f"limit: {AT_A_TIME}")
    assert call(project, "evals job refresh_catalog").returncode == 0
    return project


def replies(project: Path) -> list[tuple[object, ...]]:
    """Of each run and model, how many items were answered and how many of them have a score."""
    sql = """
        select predictions.run_id, predictions.model, count(*), count(score)
        from predictions join judged using (prediction_id) group by all
    """
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        found = db.sql(sql).fetchall()
    return sorted(found, key=lambda row: str(row[1]))


def most_at_a_time(runs: Sequence[Run]) -> int:
    return max(sum(one.began <= run.began < one.ended for one in runs) for run in runs)


def test_each_model_is_asked_in_a_run_of_its_own_a_few_at_a_time(
    project: Path, gateway: DemoGateway
) -> None:
    change(project / "eval_pipeline.toml", '"one_run"', '"run_per_model"')
    # Not only neighbours: where a model stands in the list does not matter.
    chosen = [MODELS[0], MODELS[2], MODELS[-1]]

    with dagster_dev(project, *IMPATIENT) as webserver:
        runs = webserver.backfill(STAGES, chosen)

    asking = {run.tags[ONE]: run for run in runs if "predictions" in run.assets}
    assert sorted(asking) == chosen
    assert most_at_a_time(list(asking.values())) <= AT_A_TIME
    assert replies(project) == [
        (asking[model].run_id, model, len(ITEMS), len(ITEMS)) for model in chosen
    ]
    assert gateway.requests.total() == 2 * len(chosen) * len(ITEMS)

"""Many models materialized in the UI, by a real webserver and daemon, in a run for each."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.defs.partitions import ONE
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline_tests.builders import a_question
from eval_pipeline_tests.project import call
from eval_pipeline_tests.webserver import (
    IMPATIENT,
    a_quick_project,
    change,
    dagster_dev,
)

MODELS = ["demo/m1", "demo/m2", "demo/m3"]
ITEMS = [a_question(f"q{number}") for number in range(1, 5)]
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
    """Three models that are one and the same at the gateway, and one run at a time."""
    project = a_quick_project(tmp_path, ITEMS)
    named = {**dict.fromkeys(MODELS, "demo/strong"), "demo/judge": "demo/judge"}
    described = [DESCRIBED.format(model=model, request_name=name) for model, name in named.items()]
    settings, kind = project / "eval_pipeline.toml", 'kind = "demo"\n'
    change(settings, kind, f'{kind}base_url = "{gateway.base_url}"\n{"".join(described)}')
    change(settings, "preflight = true", "preflight = false")
    change(project / "dagster.yaml", "limit: 10", "limit: 1")
    assert call(project, "evals job refresh_catalog").returncode == 0
    return project


def replies(project: Path) -> list[tuple[object, ...]]:
    """Of each run and model, how many items were answered."""
    sql = "select run_id, model, count(*) from predictions where is_result group by all order by 2"
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        return db.sql(sql).fetchall()


@pytest.mark.slow
def test_each_model_is_asked_in_a_run_of_its_own_and_no_more_at_a_time_than_may(
    project: Path, gateway: DemoGateway
) -> None:
    change(project / "eval_pipeline.toml", '"one_run"', '"run_per_model"')
    # No neighbours: where a model stands in the list does not matter.
    chosen = [MODELS[0], MODELS[2]]

    with dagster_dev(project, *IMPATIENT) as webserver:
        runs = webserver.backfill(["predictions"], chosen)

    first, second = sorted(runs, key=lambda run: run.began)
    assert sorted(run.tags[ONE] for run in runs) == chosen
    assert first.ended <= second.began
    by_model = {run.tags[ONE]: run.run_id for run in runs}
    assert replies(project) == [(by_model[model], model, len(ITEMS)) for model in chosen]
    assert gateway.requests.total() == len(chosen) * len(ITEMS)

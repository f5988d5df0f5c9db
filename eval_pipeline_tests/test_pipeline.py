"""The whole graph, offline: every asset, check and table, as Dagster runs them."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from eval_pipeline.definitions import build_definitions
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import a_question, settings_in
from eval_pipeline_tests.project import undrawn

SAMPLE = Path(__file__).parent.parent / "data" / "sample" / "questions.jsonl"
STAGES = ("predictions", "judged", "metrics", "leaderboard")
SECRET = "sk-planted-0123456789"


class Graph:
    """The project's definitions over some settings, in a Dagster instance of their own.

    Checks are half of the steps: where a test is not about them, it can do without.
    """

    def __init__(
        self, settings: Settings, instance: dg.DagsterInstance, *, checked: bool = True
    ) -> None:
        self.settings = settings
        self.instance = instance
        self.checked = checked

    def run(
        self,
        *assets: str,
        partition: str | None = None,
        config: Mapping[str, object] | None = None,
        tags: Mapping[str, str] | None = None,
        drawn: bool = False,
    ) -> dg.ExecuteInProcessResult:
        job = self._definitions().resolve_implicit_global_asset_job_def()
        with nullcontext() if drawn else undrawn():
            return job.execute_in_process(
                instance=self.instance,
                asset_selection=[dg.AssetKey(name) for name in assets],
                partition_key=partition,
                tags=dict(tags or {}),
                run_config={
                    "ops": {name: {"config": values} for name, values in (config or {}).items()}
                },
                raise_on_error=False,
            )

    def _definitions(self) -> dg.Definitions:
        whole = build_definitions(self.settings)
        if self.checked:
            return whole
        return dg.Definitions(whole.assets, resources=whole.resources, executor=whole.executor)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.settings.database), read_only=True) as db:
            return db.sql(sql).fetchall()

    def partitions(self) -> set[str]:
        return set(self.instance.get_dynamic_partitions("models"))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """In memory; it is the commands that test what Dagster keeps in files."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def instance_in_files(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        yield instance


def told(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    """The metadata of the asset's only materialization."""
    (materialized,) = result.asset_materializations_for_node(asset)
    return {name: one.value for name, one in materialized.metadata.items()}


def checks(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {found.check_name: found.passed for found in result.get_asset_check_evaluations()}


def test_the_whole_graph_evaluates_three_models_of_known_skill(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}]), instance)

    inputs = graph.run("dataset", "model_catalog")
    runs = [graph.run(*STAGES, partition=model) for model in sorted(graph.partitions())]
    last = {name: told(runs[-1], name) for name in STAGES}

    assert inputs.success and all(run.success for run in runs)
    assert graph.partitions() == {"demo/strong", "demo/average", "demo/weak"}
    passed = checks(inputs) | checks(runs[-1])
    assert len(passed) == 14 and all(passed.values())
    board = graph.rows("select model, rank, judged, simulated from leaderboard order by rank")
    assert board == [
        ("demo/strong", 1, 140, True),
        ("demo/average", 2, 140, True),
        ("demo/weak", 3, 140, True),
    ]
    known = dict(graph.rows("select model, accuracy from leaderboard"))
    assert known["demo/strong"] == pytest.approx(0.8, abs=0.1)
    assert known["demo/average"] == pytest.approx(0.5, abs=0.1)
    assert known["demo/weak"] == pytest.approx(0.2, abs=0.1)
    errors = dict(graph.rows("select model, calibration_error from leaderboard"))
    assert errors["demo/strong"] < errors["demo/average"] < errors["demo/weak"]
    assert graph.rows(
        "select count(*) from predictions where run_id not in (select run_id from runs)"
    ) == [(0,)]
    assert {run.run_id for run in runs} == {run for (run,) in graph.rows("select run_id from runs")}
    for name, metadata in {"dataset": told(inputs, "dataset"), **last}.items():
        assert metadata["dagster/row_count"] == graph.rows(f"select count(*) from {name}")[0][0]
        assert metadata["dagster/table_name"] == f"main.{name}"
        assert metadata["dagster/column_schema"].columns
    assert (last["metrics"]["runs"], last["metrics"]["complete_runs"]) == (3, 3)
    ranked, best = (last["leaderboard"][name] for name in ("models_ranked", "best_accuracy"))
    assert (ranked, best) == (3, pytest.approx(known["demo/strong"], abs=1e-6))
    assert "demo/weak" in last["leaderboard"]["freshness"]
    assert Path(last["leaderboard"]["report"]) == tmp_path / "reports" / "leaderboard.md"
    assert "SIMULATED" in (tmp_path / "reports" / "leaderboard.md").read_text("utf-8")


def test_judged_works_on_its_own_for_all_models_at_once(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path), instance)
    graph.run("model_catalog")
    for model in ("demo/strong", "demo/weak"):
        graph.run("predictions", partition=model)

    result = graph.run("judged")

    assert result.success
    assert graph.rows("select model, count(score) from judged group by model order by model") == [
        ("demo/strong", 3),
        ("demo/weak", 3),
    ]


def test_judged_in_a_partitioned_run_judges_that_model_only(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path), instance)
    graph.run("model_catalog")
    graph.run("predictions", partition="demo/weak")

    graph.run("predictions", "judged", partition="demo/strong")

    assert graph.rows("select distinct model from judged") == [("demo/strong",)]


def test_run_config_overrides_the_settings_for_one_launch(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path), instance)
    graph.run("model_catalog")

    result = graph.run(
        "predictions", partition="demo/strong", config={"predictions": {"max_samples": 2}}
    )

    assert result.success
    assert graph.rows("select scope, planned from runs") == [("filtered", 2)]
    graph.run("judged", "metrics", "leaderboard")
    assert graph.rows("select count(*) from leaderboard") == [(0,)]


def test_run_config_selects_models_for_one_launch(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path), instance)

    chosen = {"models": ["demo/*"], "exclude_models": ["weak", "demo/judge"]}
    graph.run("model_catalog", config={"model_catalog": chosen})

    assert graph.partitions() == {"demo/strong", "demo/average"}


def test_wrong_run_config_is_one_sentence(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    graph = Graph(settings_in(tmp_path), instance)
    graph.run("model_catalog")

    result = graph.run(
        "predictions", partition="demo/strong", config={"predictions": {"test_filter": "("}}
    )

    (failure,) = result.filter_events(lambda event: event.is_step_failure)
    error = failure.step_failure_data.error
    assert error and error.cause
    assert "run config: plan.test_filter: must be a regular expression" in error.cause.message


def test_a_failed_check_shows_counts_and_examples(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    with DemoGateway([a_question(name) for name in ("q1", "q2", "q3")]) as gateway:
        demo = [{"name": "demo", "kind": "demo", "base_url": gateway.base_url}]
        graph = Graph(settings_in(tmp_path, gateways=demo, requests={"attempts": 1}), instance)
        graph.run("model_catalog")
        gateway.misbehave(Faults(server_error=1))

        result = graph.run(*STAGES, partition="demo/strong")

    assert result.success
    (found,) = [
        found
        for found in result.get_asset_check_evaluations()
        if found.check_name == "every_planned_item_is_predicted"
    ]
    assert not found.passed
    assert found.metadata["rows"].value == 3
    assert r"server\_error" in str(found.metadata["examples"].value)
    assert graph.rows("select accuracy, incomplete_because from metrics where slice = 'all'") == [
        (None, "3 failed (server_error)")
    ]
    assert graph.rows("select count(*) from leaderboard") == [(0,)]


def test_a_model_that_vanishes_loses_its_partition_and_keeps_its_results(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path), instance)
    graph.run("model_catalog")
    graph.run("predictions", partition="demo/weak")
    static = {"name": "demo", "kind": "demo", "models": [{"id": "demo/strong"}]}
    graph.settings = settings_in(tmp_path, gateways=[static])

    graph.run("model_catalog", "metrics")

    assert graph.partitions() == {"demo/strong"}
    assert graph.rows("select count(*) from predictions where model = 'demo/weak'") == [(3,)]
    assert graph.rows("select model from model_catalog where not listed order by model") == [
        ("demo/average",),
        ("demo/judge",),
        ("demo/weak",),
    ]


def test_a_gateway_that_does_not_answer_keeps_its_partitions(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path), instance)
    graph.run("model_catalog")
    gone = {"name": "demo", "kind": "demo", "base_url": "http://127.0.0.1:9/v1"}
    other = {"name": "other", "kind": "openai", "models": [{"id": "other/one"}]}
    graph.settings = settings_in(tmp_path, gateways=[gone, other])

    result = graph.run("model_catalog")

    assert graph.partitions() == {"demo/strong", "demo/average", "demo/weak", "other/one"}
    (materialized,) = result.asset_materializations_for_node("model_catalog")
    assert "Gateway 'demo'" in str(materialized.metadata["warnings"].value)


def test_deleting_the_file_loses_nothing_and_asks_nobody(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    with DemoGateway([a_question(name) for name in ("q1", "q2", "q3")]) as gateway:
        demo = [{"name": "demo", "kind": "demo", "base_url": gateway.base_url}]
        graph = Graph(settings_in(tmp_path, gateways=demo), instance)
        graph.run("model_catalog")
        graph.run(*STAGES, partition="demo/strong")
        tables = ("dataset", "model_catalog", "predictions", "judged", "metrics", "leaderboard")
        before = {name: graph.rows(f"select * from {name} order by all") for name in tables}
        asked = gateway.requests.total()
        graph.settings.database.unlink()

        graph.run("metrics")

        assert {name: graph.rows(f"select * from {name} order by all") for name in tables} == before
        assert gateway.requests.total() == asked


@pytest.mark.parametrize("faults", [Faults(echo_key=True), Faults(echo_key=True, server_error=0.5)])
def test_a_key_that_the_server_repeats_is_written_nowhere(
    tmp_path: Path,
    instance_in_files: dg.DagsterInstance,
    faults: Faults,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = [a_question(name) for name in ("q1", "q2", "q3")]
    monkeypatch.setenv("DEMO_KEY", SECRET)
    with DemoGateway(items, api_key=SECRET, faults=Faults(echo_key=True)) as gateway:
        demo = {"name": "demo", "kind": "demo", "base_url": gateway.base_url}
        settings = settings_in(tmp_path, gateways=[{**demo, "api_key_variable": "DEMO_KEY"}])
        with_key = Settings.from_env(
            {"EVALS_SETTINGS": str(settings.root / "eval_pipeline.toml"), "DEMO_KEY": SECRET}
        )
        graph = Graph(with_key, instance_in_files)
        graph.run("model_catalog")
        gateway.misbehave(faults)
        graph.run(*STAGES, partition="demo/strong")
        gateway.misbehave(Faults(echo_key=True, status={"demo/strong": 401}))
        graph.run("predictions", partition="demo/strong", config={"predictions": {"mode": "FRESH"}})

    texts = [one for (one,) in graph.rows("select coalesce(answer, error) from predictions")]
    assert any("[DEMO_KEY]" in str(text) for text in texts)
    leaks = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    assert leaks == []


def test_while_a_stage_runs_the_ui_shows_how_far_it_is(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval_pipeline.runtime.PROGRESS_EVERY_S", 0.1)
    with DemoGateway([a_question("q1")], faults=Faults(latency_s=0.5)) as gateway:
        demo = {"name": "demo", "kind": "demo", "base_url": gateway.base_url}
        graph = Graph(settings_in(tmp_path, gateways=[demo]), instance)
        graph.run("dataset", "model_catalog")

        result = graph.run("predictions", partition="demo/strong")

    assert result.success
    key = dg.AssetKey("predictions")
    (seen, *_) = instance.fetch_observations(key, limit=10).records
    observation = seen.asset_observation
    assert observation is not None
    assert observation.partition == "demo/strong"
    assert observation.metadata["planned"].value == 3
    assert {"done", "cost_usd", "models"} <= observation.metadata.keys()

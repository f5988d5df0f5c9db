"""How a stage went, as the UI shows it: the same numbers as in DuckDB, and failures in words."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.defs.metadata import Metadata, how_asking_went, how_judging_went
from eval_pipeline.defs.partitions import RANGE_END, RANGE_START
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.workers import StageProgress
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
    a_run,
    settings_in,
)
from eval_pipeline_tests.test_metadata import HOSTILE, in_one_line, parts, rendered, tags
from eval_pipeline_tests.test_pipeline import Graph, told

QUESTIONS = [a_question(f"q{n:02}") for n in range(20)]
EXAM = a_benchmark(*QUESTIONS)
PLAN = list(EXAM.items)
OF_A_RUN = """
    select
        count(*) filter (is_result) as answered,
        count(*) filter (not is_result) as failed,
        count(*) filter (outcome = 'ok') as outcome_ok,
        count(*) filter (outcome = 'server_error') as outcome_server_error,
        count(*) filter (outcome = 'empty') as outcome_empty,
        sum(cost_usd) as cost_usd,
        sum(input_tokens)::bigint as input_tokens,
        sum(output_tokens)::bigint as output_tokens,
        quantile_cont(latency_s, 0.5) as latency_p50_s,
        quantile_cont(latency_s, 0.95) as latency_p95_s
    from predictions where model = 'demo/strong'
"""
OF_VERDICTS = """
    select
        count(score) as scored,
        count(*) - count(score) as unscored,
        count(*) filter (outcome = 'ok') as outcome_ok,
        count(*) filter (outcome = 'invalid_reply') as outcome_invalid_reply,
        sum(cost_usd) as cost_usd,
        sum(input_tokens)::bigint as input_tokens,
        quantile_cont(latency_s, 0.5) filter (attempts > 0) as latency_p50_s
    from judged
"""


class Stage:
    """The graph over a gateway that may misbehave."""

    def __init__(self, folder: Path, gateway: DemoGateway, instance: dg.DagsterInstance) -> None:
        demo = [{"name": "demo", "kind": "demo", "base_url": gateway.base_url}]
        settings = settings_in(
            folder,
            gateways=demo,
            questions=QUESTIONS,
            requests={"attempts": 1},
            automation={"preflight": False},
        )
        self.graph, self.gateway = Graph(settings, instance, checked=False), gateway
        self.graph.run("model_catalog")

    def ask(self, model: str = "demo/strong") -> dict[str, Any]:
        return told(self.graph.run("predictions", partition=model), "predictions")

    def counted(self, sql: str) -> dict[str, object]:
        """The numbers of the only row, by column."""
        names = [name for (name, *_) in self.graph.rows(f"describe {sql}")]
        (row,) = self.graph.rows(sql)
        return dict(zip(names, row, strict=True))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with DemoGateway(QUESTIONS) as gateway, dg.DagsterInstance.ephemeral() as instance:
        yield Stage(tmp_path, gateway, instance)


def test_predictions_tell_how_the_run_went_and_what_this_launch_did(stage: Stage) -> None:
    stage.gateway.misbehave(Faults(server_error=0.3, empty=0.2))

    first = stage.ask()

    expected = stage.counted(OF_A_RUN)
    assert {name: first[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert 0 < first["outcome_ok"] < 20 and first["outcome_server_error"] and first["outcome_empty"]
    assert (first["planned"], first["launch_pending"], first["launch_done"]) == (20, 20, 20)
    assert first["launch_cost_usd"] == pytest.approx(first["cost_usd"])
    assert first["dagster/partition_row_count"] == 20
    (run,) = stage.graph.rows("select left(run_id, 8) from runs")[0]
    assert first["run"] == run
    (failed,) = stage.graph.rows(
        "select min(suite || '/' || item_id, 3) from predictions where outcome = 'server_error'"
    )[0]
    lines = [parts(line, "td") for line in rendered(first["failures"]).split("<tr>")[2:]]
    assert sorted((line[0], int(line[1])) for line in lines) == [
        ("empty", first["outcome_empty"]),
        ("server_error", first["outcome_server_error"]),
    ]
    assert ", ".join(failed) in [line[2] for line in lines]


def test_after_a_repair_there_is_a_number_for_what_no_longer_occurs(stage: Stage) -> None:
    stage.gateway.misbehave(Faults(server_error=0.4))
    failed = stage.ask()["failed"]
    stage.gateway.misbehave(Faults())

    again = stage.ask()

    assert (again["answered"], again["failed"]) == (20, 0)
    assert (again["outcome_ok"], again["outcome_server_error"]) == (20, 0)
    assert again["launch_pending"] == again["launch_done"] == failed
    assert 0 < again["launch_cost_usd"] < again["cost_usd"]
    assert again["failures"] == "none"


def test_in_one_run_for_several_models_each_partition_has_its_own_numbers(stage: Stage) -> None:
    stage.gateway.misbehave(Faults(status={"demo/weak": 500}))
    models = stage.graph.instance.get_dynamic_partitions("models")

    result = stage.graph.run("predictions", tags={RANGE_START: models[0], RANGE_END: models[-1]})

    shown = {
        event.partition: event.materialization.metadata
        for event in result.get_asset_materialization_events()
    }
    assert {model: metadata["failed"].value for model, metadata in shown.items()} == {
        "demo/average": 0,
        "demo/strong": 0,
        "demo/weak": 20,
    }
    assert {model: metadata["outcome_server_error"].value for model, metadata in shown.items()} == {
        "demo/average": 0,
        "demo/strong": 0,
        "demo/weak": 20,
    }
    assert "demo/weak" not in str(shown["demo/strong"]["models"].value)
    assert {one["dagster/row_count"].value for one in shown.values()} == {60}


def test_judged_tells_how_judging_went(stage: Stage) -> None:
    stage.ask()
    stage.gateway.misbehave(Faults(invalid_json=0.4, models=("demo/judge",)))

    shown = told(stage.graph.run("judged"), "judged")

    expected = stage.counted(OF_VERDICTS)
    assert {name: shown[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert 0 < shown["scored"] < 20 and shown["outcome_invalid_reply"] == shown["unscored"]
    assert r"invalid\_reply" in shown["failures"] and "demo/strong sample/q" in shown["failures"]
    assert shown["runs"] == 1


def went(
    folder: Path,
    *records: Run | Prediction | Judgement,
    experiment: str = "default",
    continued: str | None = None,
) -> Metadata:
    warehouse = Warehouse(folder / "evals.duckdb", a_journal(folder, *records, benchmark=EXAM))
    warehouse.publish()
    launch = Launch("launch", continue_run=continued)
    with warehouse.reading() as db:
        tallies = [StageProgress("demo/strong", "asked")]
        return how_asking_went(db, tallies, experiment, launch)["demo/strong"]


def a_whole_run(run_id: str, opened_at: datetime = NOON, experiment: str = "default") -> Run:
    version = {"benchmark_version": EXAM.version.benchmark_version}
    return a_run(run_id, plan=PLAN, opened_at=opened_at, experiment=experiment, **version)


@pytest.mark.parametrize("said", HOSTILE)
def test_the_words_of_servers_are_shown_as_they_are(tmp_path: Path, said: str) -> None:
    failed = [a_prediction("q00", outcome="server_error", answer=None, error=said)]

    shown = went(tmp_path, a_whole_run("run-1"), *failed)

    html = rendered(str(getattr(shown["failures"], "value", None)))
    assert tags(html) == {"table", "thead", "tbody", "tr", "th", "td"}
    assert parts(html, "td") == ["server_error", "1", "sample/q00", in_one_line(said)]


def test_a_typical_error_is_the_most_frequent_one_and_cut_short(tmp_path: Path) -> None:
    long = "overloaded " * 100
    errors = ["a rare one", long, long, "another"]
    failed = [
        a_prediction(f"q{n:02}", outcome="timeout", answer=None, error=error)
        for n, error in enumerate(errors)
    ]

    shown = went(tmp_path, a_whole_run("run-1"), *failed)

    html = rendered(str(getattr(shown["failures"], "value", None)))
    examples = "sample/q00, sample/q01, sample/q02"
    assert parts(html, "td") == ["timeout", "4", examples, in_one_line(long[:200])]


def test_a_model_that_was_never_asked_has_no_numbers_of_a_run(tmp_path: Path) -> None:
    shown = went(tmp_path)

    assert "planned" not in shown and "run" not in shown
    assert shown["dagster/partition_row_count"] == 0


def test_the_numbers_are_of_the_run_last_worked_at(tmp_path: Path) -> None:
    opened = [NOON + timedelta(hours=n) for n in range(4)]
    runs = [
        a_whole_run("old", opened_at=opened[0]),
        a_whole_run("new", opened_at=opened[1]),
        a_whole_run("hot", opened_at=opened[2], experiment="hot"),
    ]
    asked = a_prediction("q00", run_id="old", finished_at=opened[3])
    other = [a_prediction(f"q0{n}", run_id="new", finished_at=opened[1]) for n in (0, 1)]

    last = went(tmp_path, *runs, asked, *other)
    named = went(tmp_path, continued="ne")
    hot = went(tmp_path, experiment="hot")

    assert (last["run"], last["answered"], last["planned"]) == ("old", 1, 20)
    assert (named["run"], named["answered"]) == ("new", 2)
    assert (hot["run"], hot["answered"], hot["outcome_ok"]) == ("hot", 0, 0)


def test_an_unknown_cost_is_no_number(tmp_path: Path) -> None:
    shown = went(tmp_path, a_whole_run("run-1"), a_prediction("q00"))

    assert "cost_usd" not in shown
    assert shown["costs_unknown"] == 1


def test_where_nothing_is_judged_the_numbers_are_0(tmp_path: Path) -> None:
    reply = a_prediction("q00")
    journal = a_journal(tmp_path, a_whole_run("run-1"), reply, benchmark=EXAM)
    warehouse = Warehouse(tmp_path / "evals.duckdb", journal)
    warehouse.publish()

    with warehouse.reading() as db:
        before = how_judging_went(db, [], [])
    a_journal(tmp_path, a_judgement(reply, None, reason="no verdict in it"), benchmark=EXAM)
    warehouse.publish()
    with warehouse.reading() as db:
        after = how_judging_went(db, [], ["demo/strong"])
        others = how_judging_went(db, [], ["demo/weak"])

    names = ("runs", "scored", "unscored", "outcome_ok")
    assert [before[name] for name in names] == [0, 0, 0, 0]
    assert [after[name] for name in names] == [1, 0, 1, 0]
    assert after["outcome_judge_unparsable"] == 1
    assert others["outcome_judge_unparsable"] == 0 == others["runs"]

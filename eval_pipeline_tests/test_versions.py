"""Versions: what a change of a prompt, a query or a result makes out of date, and what not."""

import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

from eval_pipeline.defs.assets import build_graph
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.defs.versions import VERSIONS, code_version, data_version
from eval_pipeline.journal import DIAGNOSES, RECLASSIFIED
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.results.queries import SQL
from eval_pipeline.settings.sections import PACKAGE
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import (
    a_benchmark,
    a_diagnosis,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
    a_reclassification,
    a_run,
    settings_in,
)
from eval_pipeline_tests.test_pipeline import Graph

MODEL, WEAK = "demo/strong", "demo/weak"
RESULTS = ("metrics", "comparisons", "leaderboard")
STAGES = ("predictions", "judged", *RESULTS)
COMPUTED = {*RESULTS, "judge_reliability"}
HELD = (*STAGES, "judge_reliability", "run_reports")
VERDICTS = {"judged", "metrics", "judge_reliability"}
BENCHMARK = a_benchmark(a_question("q1"), a_question("q2"))
PLANNED: dict[str, Any] = {
    "plan": (("sample", "q1"), ("sample", "q2")),
    "benchmark_version": BENCHMARK.version.benchmark_version,
}
RUN, WEAK_RUN = a_run(**PLANNED), a_run("run-2", WEAK, **PLANNED)
DATA_VERSION = "dagster/data_version"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Adds a line to a query, in a copy of all of them."""

    def add(name: str, line: str) -> None:
        copy = shutil.copytree(SQL, tmp_path / "sql")
        with (copy / name).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
        monkeypatch.setattr("eval_pipeline.results.queries.SQL", copy)

    return add


def versions(settings: Settings) -> dict[str, str | None]:
    return {name: code_version(name, settings) for name in VERSIONS}


def changed(before: dict[str, str | None], after: dict[str, str | None]) -> set[str]:
    return {name for name in VERSIONS if before[name] != after[name]}


def stale(graph: Graph) -> dict[str, list[str]]:
    """Which assets the UI shows as out of date, and because of what."""
    defs = build_graph(graph.settings)
    resolver = CachingStaleStatusResolver(
        graph.instance, defs.resolve_asset_graph(), LoadingContextForTest(graph.instance)
    )
    found = {}
    for name in VERSIONS:
        partition = MODEL if name == "predictions" else None
        causes = resolver.get_stale_causes(dg.AssetKey(name), partition)
        found[name] = [cause.category.value for cause in causes]
    return {name: causes for name, causes in found.items() if causes}


def held(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    """The data version of each asset that was materialized and told it."""
    events = result.get_asset_materialization_events()
    found = {event.materialization.asset_key: event.materialization.tags or {} for event in events}
    return {
        key.to_user_string(): tags[DATA_VERSION]
        for key, tags in found.items()
        if f"{DATA_VERSION}_is_user_provided" in tags
    }


def judged(
    item: str, score: float = 1.0, judge: str = "demo/judge", of: Run = RUN
) -> tuple[Prediction, Judgement]:
    """An answer with a verdict."""
    prediction = a_prediction(item, run_id=of.run_id, model=of.model)
    return prediction, a_judgement(prediction, score, judge=judge)


def results(folder: Path, *records: Run | Prediction | Judgement) -> WarehouseResource:
    """The published results of these records and those before."""
    settings = settings_in(folder)
    a_journal(settings.journal.parent, *records, benchmark=BENCHMARK)
    warehouse = WarehouseResource(database=str(settings.database), settings=settings)
    warehouse.publish()
    return warehouse


def all_held(warehouse: WarehouseResource) -> dict[str, str]:
    given = {"predictions": {"models": [MODEL]}}
    return {name: data_version(warehouse, name, **given.get(name, {})).value for name in HELD}


def test_connections_are_configured_as_those_of_dagsters_duckdb_resource(tmp_path: Path) -> None:
    plain = results(tmp_path, RUN)
    database, config = plain.database, {"threads": 1, "default_null_order": "nulls_first"}
    configured = WarehouseResource(
        database=database, connection_config=config, settings=plain.settings
    )
    set_here = "select current_setting('threads'), current_setting('default_null_order')"

    with plain.get_connection() as one, configured.get_connection() as other:
        told = [db.sql(set_here).fetchall() for db in (one, other)]
        assert other.sql("select count(*) from runs").fetchall() == [(1,)]

    assert told[1] == [(1, "NULLS_FIRST")] != told[0]


def test_every_asset_has_a_code_version(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    keys = build_graph(settings).resolve_asset_graph().get_all_asset_keys()
    names = {key.to_user_string() for key in keys}

    known = versions(settings)

    assert set(known) == names
    assert all(known.values())


@pytest.mark.parametrize(
    ("setting", "out_of_date"),
    [
        ({"experiments": {"default": {"system_prompt": "own.txt"}}}, {"predictions"}),
        ({"experiments": {"default": {"temperature": 0.5}}}, {"predictions"}),
        ({"experiments": {"default": {"max_tokens": 9}}}, {"predictions"}),
        ({"experiments": {"default": {"extra": {"seed": 1}}}}, {"predictions"}),
        ({"experiment": "web_search"}, {"predictions"}),
        ({"experiments": {"default": {"stream": False}}}, set()),
        ({"judge": {"prompt": "own.txt"}}, {"judged"}),
        ({"judge": {"model": "demo/strong"}}, {"judged"}),
        ({"judge": {"also": ["demo/strong"]}}, {"judged"}),
        ({"judge": {"rules": "first"}}, {"judged"}),
        ({"judge": {"max_tokens": 9}}, {"judged"}),
        ({"coding": {"reviewer": "demo/judge"}}, {"judged"}),
        ({"analysis": {"model": "demo/strong"}}, {"run_reports"}),
        ({"analysis": {"max_tokens": 9}}, {"run_reports"}),
        ({"analysis": {"num_workers": 3}}, set()),
        ({"judge": {"num_workers": 3}}, set()),
        ({"budget": {"usd_per_run": 1.0}, "plan": {"samples": 2}}, set()),
    ],
)
def test_a_setting_makes_out_of_date_what_it_decides(
    tmp_path: Path, setting: dict[str, Any], out_of_date: set[str]
) -> None:
    (tmp_path / "own.txt").write_text("Answer in verse.")
    before = versions(settings_in(tmp_path))

    after = versions(settings_in(tmp_path, **setting))

    assert changed(before, after) == out_of_date


@pytest.mark.parametrize(
    ("file", "out_of_date"),
    [
        ("load/predictions.sql", COMPUTED),
        ("load/rejudged.sql", COMPUTED),
        ("derive/metrics.sql", COMPUTED),
        ("derive/leaderboard_entries.sql", COMPUTED),
        ("summaries/leaderboard.sql", set()),
        ("versions/metrics.sql", set()),
    ],
)
def test_a_query_makes_out_of_date_what_is_computed(
    tmp_path: Path, change: Callable[[str, str], None], file: str, out_of_date: set[str]
) -> None:
    settings = settings_in(tmp_path)
    before = versions(settings)

    change(file, "-- ")

    assert changed(before, versions(settings)) == out_of_date


def test_a_formula_has_a_number_that_a_maintainer_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_in(tmp_path)
    before = versions(settings)

    monkeypatch.setattr("eval_pipeline.results.queries.FORMULAS_VERSION", 2)

    assert changed(before, versions(settings)) == COMPUTED


@pytest.mark.parametrize("asset", VERSIONS)
def test_an_asset_has_a_number_that_a_maintainer_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asset: str
) -> None:
    settings = settings_in(tmp_path)
    before = versions(settings)

    monkeypatch.setattr("eval_pipeline.defs.versions.VERSIONS", {**VERSIONS, asset: 2})

    assert changed(before, versions(settings)) == {asset}


@pytest.mark.parametrize(
    ("name", "another"),
    [("ANALYSIS_PROMPT", PACKAGE / "prompts" / "judge.txt"), ("ANALYSIS_SCHEMA", {"type": "null"})],
)
def test_how_an_analyst_is_asked_makes_nothing_but_reports_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, another: object
) -> None:
    settings = settings_in(tmp_path)
    before = versions(settings)

    monkeypatch.setattr(f"eval_pipeline.defs.versions.{name}", another)

    assert changed(before, versions(settings)) == {"run_reports"}


def test_a_prompt_that_is_missing_is_told_of_by_the_run_and_not_by_loading(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    (tmp_path / "own.txt").write_text("Answer in verse.")
    own = {"verse": {"system_prompt": "own.txt"}}
    settings = settings_in(tmp_path, experiments=own, experiment="verse")
    graph = Graph(settings, instance, checked=False)
    graph.run("dataset", "model_catalog")
    before = versions(graph.settings)
    (tmp_path / "own.txt").unlink()

    result = graph.run("predictions", partition=MODEL)

    assert changed(before, versions(graph.settings)) == {"predictions"}
    (failure,) = result.filter_events(lambda event: event.is_step_failure)
    assert "The prompt file own.txt can not be read" in str(failure.step_failure_data.error)


def test_a_new_prompt_makes_predictions_out_of_date_and_then_one_after_another(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path), instance, checked=False)
    graph.run("dataset", "model_catalog")
    graph.run(*STAGES, partition=MODEL)
    fresh = stale(graph)
    (tmp_path / "own.txt").write_text("Answer in verse.")
    own = {"verse": {"system_prompt": "own.txt"}}

    graph.settings = settings_in(tmp_path, experiments=own, experiment="verse")

    assert fresh == {}
    assert stale(graph) == {"predictions": ["CODE"]}
    graph.run("predictions", partition=MODEL)
    assert stale(graph) == {"judged": ["DATA"]}
    graph.run("judged")
    assert stale(graph) == {"metrics": ["DATA"]}
    graph.run("metrics")
    assert stale(graph) == {"comparisons": ["DATA"], "leaderboard": ["DATA"]}
    graph.run("comparisons", "leaderboard")
    assert stale(graph) == {}


@pytest.mark.slow
def test_new_verdicts_on_the_same_answers_make_results_out_of_date(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path), instance, checked=False)
    graph.run("dataset", "model_catalog")
    graph.run("predictions", "judged", "metrics", partition=MODEL)

    graph.run("judged")
    nothing_new = stale(graph)
    graph.run("judged", config={"judged": {"judge": WEAK}})

    assert nothing_new == {}
    assert stale(graph) == {"metrics": ["DATA"]}


@pytest.mark.slow
def test_a_new_query_makes_results_out_of_date_and_neither_verdicts_nor_answers(
    tmp_path: Path, instance: dg.DagsterInstance, change: Callable[[str, str], None]
) -> None:
    graph = Graph(settings_in(tmp_path), instance, checked=False)
    told = held(graph.run("dataset", "model_catalog"))
    told |= held(graph.run(*STAGES, partition=MODEL))

    change("derive/metrics.sql", "; update metrics set output_tokens = 0")

    assert set(told) == {"dataset", "model_catalog", *STAGES}
    assert stale(graph) == {name: ["CODE"] for name in RESULTS}
    graph.run(*RESULTS)
    assert stale(graph) == {}
    assert graph.rows("select distinct output_tokens from metrics") == [(0,)]


def test_what_is_built_anew_from_the_same_is_the_same_version(tmp_path: Path) -> None:
    warehouse = results(tmp_path, RUN, *judged("q1"), *judged("q2", 0.0))
    before = all_held(warehouse)
    Path(warehouse.database).unlink()

    warehouse.publish()

    assert all_held(warehouse) == before


@pytest.mark.parametrize(
    ("more", "another"),
    [
        ((a_prediction("q2"),), {"predictions", "metrics"}),
        (judged("q1", 0.0, judge="demo/other"), VERDICTS),
        (judged("q2"), {*VERDICTS, "predictions", "leaderboard"}),
        ((WEAK_RUN,), {"metrics"}),
        ((WEAK_RUN, *judged("q1", of=WEAK_RUN)), VERDICTS),
        (
            (WEAK_RUN, *(one for item in ("q1", "q2") for one in judged(item, of=WEAK_RUN))),
            {*VERDICTS, "leaderboard"},
        ),
    ],
)
def test_new_results_are_another_version_of_what_they_change(
    tmp_path: Path, more: tuple[Run | Prediction | Judgement, ...], another: set[str]
) -> None:
    warehouse = results(tmp_path, RUN, *judged("q1"))
    before = all_held(warehouse)

    after = all_held(results(tmp_path, *more))

    assert {name for name in HELD if before[name] != after[name]} == another


def test_each_word_on_a_failure_makes_another_version_of_the_reports_alone(tmp_path: Path) -> None:
    _, verdict = wrong = judged("q1", 0.0)
    warehouse = results(tmp_path, RUN, *wrong)
    held_then = [all_held(warehouse)]
    journal, place = warehouse.journal, (RUN.model, RUN.run_id, "1")

    for stream, word in (
        (DIAGNOSES, a_diagnosis(verdict)),
        (RECLASSIFIED, a_reclassification(verdict)),
    ):
        journal.write_whole(cast(Any, stream), *place, records=[word])
        warehouse.publish()
        held_then.append(all_held(warehouse))

    changes = [{name for name in HELD if a[name] != b[name]} for a, b in pairwise(held_then)]
    assert changes == [{"run_reports"}, {"run_reports"}]


@pytest.mark.slow
def test_new_answers_of_one_model_leave_those_of_another(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path), instance, checked=False)
    graph.run("model_catalog")
    fresh, resumed = ({"predictions": {"mode": mode}} for mode in ("FRESH", "RESUME"))
    weak, strong = (held(graph.run("predictions", partition=name)) for name in (WEAK, MODEL))

    new = held(graph.run("predictions", partition=MODEL, config=fresh))

    assert new != strong
    assert held(graph.run("predictions", partition=WEAK, config=resumed)) == weak


def test_what_changes_about_one_model_leaves_the_replies_of_another(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_in(tmp_path), instance, checked=False)
    graph.run("dataset", "model_catalog")
    graph.run("predictions", partition=MODEL)
    dear = {"prices": {"prompt": 1.0, "completion": 1.0}, "input_modalities": ["text", "image"]}

    for change in (
        {"overrides": {WEAK: dear}},
        {"selection": {"exclude_models": ["demo/judge", WEAK]}},
    ):
        graph.settings = settings_in(tmp_path, **change)
        assert graph.run("model_catalog").success

        assert stale(graph) == {}
    assert WEAK not in graph.partitions()

"""The checks: each finds what it is named after, nothing else, and only errors fail a launch."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from eval_pipeline.defs import checks
from eval_pipeline.defs.assets import build_graph
from eval_pipeline.defs.jobs import find_job, run_job
from eval_pipeline.defs.partitions import MODELS, RANGE_END, RANGE_START
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import SIGHTINGS
from eval_pipeline.records.base import now
from eval_pipeline.records.model import Model, Prices, Sighting
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import Run
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import (
    a_benchmark,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
    settings_in,
)

ITEMS = 100
EXAM = a_benchmark(*(a_question(f"q{n:02}") for n in range(ITEMS)))
PARTITION = "dagster/partition"
PRICES = Prices(prompt=1e-6, completion=2e-6)
PARTITIONS = ("lab/good", "lab/edge", "lab/bad")
Records = list[Run | Prediction | Judgement]


def taken(
    model: str, *, cut_off: int = 0, repeated: int = 0, unreadable: int = 0, days_ago: float = 0
) -> Records:
    """A run in which so many of a hundred replies were not as they should be."""
    moment = now() - timedelta(days=days_ago)
    version = EXAM.version.benchmark_version
    run = a_run("r" * 12, model, EXAM.items, benchmark_version=version, simulated=False)
    records: Records = [run.model_copy(update={"opened_at": moment})]
    for n, key in enumerate(EXAM.items):
        reply = a_prediction(
            key.item_id,
            run_id=run.run_id,
            model=model,
            outcome="truncated" if n < cut_off else "ok",
            attempts=2 if n >= ITEMS - repeated else 1,
            usage=Usage(cost_usd=None if model == "lab/bad" else 0.01),
            finished_at=moment,
        )
        judge = "lab/judge" if model == "lab/bad" else "rival/judge"
        score = None if n >= ITEMS - unreadable else 1.0
        records += [reply, a_judgement(reply, score, judge=judge, finished_at=moment)]
    return records


def seen(*, hours_ago: float, **models: Model) -> list[Sighting]:
    moment = now() - timedelta(hours=hours_ago)
    return [Sighting(model=one, selected=True, seen_at=moment) for one in models.values()]


def a_listed(model_id: str, prices: Prices = PRICES) -> Model:
    return a_model(model_id, prices=prices, simulated=False)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Results of one good model, one that is just good enough, and several that are not."""
    settings = settings_in(tmp_path_factory.mktemp("checks"))
    journal = a_journal(
        settings.data,
        *taken("lab/good"),
        *taken("lab/edge", cut_off=5, repeated=20, unreadable=2, days_ago=69),
        *taken("lab/bad", cut_off=6, repeated=21, unreadable=3),
        *taken("lab/old", days_ago=71),
        benchmark=EXAM,
    )
    names = ("lab/good", "lab/edge", "lab/old", "lab/never")
    listed = {name: a_listed(name) for name in names} | {"bad": a_listed("lab/bad", Prices())}
    gone = {"gone": a_listed("lab/gone")}
    journal.write_whole(SIGHTINGS, "first", records=seen(hours_ago=48, **listed, **gone))
    journal.write_whole(SIGHTINGS, "long ago", records=seen(hours_ago=40 * 24, x=a_listed("lab/x")))
    journal.write_whole(SIGHTINGS, "second", records=seen(hours_ago=1, **listed))
    return settings


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(MODELS, list(PARTITIONS))
        yield instance


Found = dict[str, dg.AssetCheckEvaluation]


def a_job(settings: Settings, selection: dg.AssetSelection) -> dg.JobDefinition:
    jobs = dg.Definitions(jobs=[dg.define_asset_job("some", selection)])
    return dg.Definitions.merge(build_graph(settings), jobs).resolve_job_def("some")


def check(settings: Settings, instance: dg.DagsterInstance, **tags: str) -> Found:
    """All checks as Dagster runs them, without materializing anything."""
    job = a_job(settings, dg.AssetSelection.all_asset_checks())
    result = job.execute_in_process(instance=instance, tags=tags)
    return {one.check_name: one for one in result.get_asset_check_evaluations()}


@pytest.fixture(scope="module")
def found(settings: Settings, instance: dg.DagsterInstance) -> Found:
    return check(settings, instance)


@pytest.mark.parametrize(
    ("name", "severity", "models"),
    [
        ("dataset_ids_are_unique", "ERROR", []),
        ("every_item_has_an_answer", "ERROR", []),
        ("every_selected_model_has_a_price", "WARN", ["lab/bad"]),
        ("every_selected_model_is_still_listed", "WARN", ["lab/gone"]),
        ("every_planned_item_is_predicted", "ERROR", []),
        ("few_replies_are_cut_off", "WARN", ["lab/bad"]),
        ("few_items_are_asked_several_times", "WARN", ["lab/bad"]),
        ("every_prediction_is_judged", "ERROR", ["lab/bad"] * 3 + ["lab/edge"] * 2),
        ("verdicts_can_be_read", "WARN", ["lab/bad"]),
        ("no_judge_grades_its_own_family", "WARN", ["lab/bad"]),
        ("metrics_are_within_bounds", "ERROR", []),
        ("every_cost_is_known", "WARN", ["lab/bad"]),
        ("every_selected_model_is_ranked", "WARN", ["lab/bad", "lab/edge", "lab/never"]),
        ("no_result_is_stale", "WARN", ["lab/old"]),
    ],
)
def test_each_check_finds_what_it_is_named_after_and_nothing_else(
    found: Found, name: str, severity: str, models: list[str]
) -> None:
    one = found[name]

    assert one.severity.value == severity
    assert one.passed == (not models)
    examples = str(one.metadata["examples"].value).splitlines()[2:]
    assert sorted(line.split("|")[1].strip() for line in examples) == models
    assert one.metadata["rows"].value == len(models)


def test_every_check_there_is_has_a_test_and_says_why_it_matters(found: Found) -> None:
    defined = dg.load_asset_checks_from_modules([checks])
    specs = [spec for one in defined for spec in one.check_specs]

    assert {spec.name for spec in specs} == set(found)
    assert all(spec.description for spec in specs)


def test_the_description_tells_what_was_found_and_of_which_models(found: Found) -> None:
    said = {name: one.description for name, one in found.items()}

    cut_off = "1 run has more than 5 % of its replies cut off: lab/bad"
    assert said["few_replies_are_cut_off"] == cut_off
    assert said["every_prediction_is_judged"] == "5 replies have no verdict: lab/bad, lab/edge"
    ranked = "3 models have no rank: lab/bad, lab/edge, lab/never"
    assert said["every_selected_model_is_ranked"] == ranked
    assert said["metrics_are_within_bounds"] == "nothing found"


def test_who_is_not_ranked_is_told_why(found: Found) -> None:
    told = str(found["every_selected_model_is_ranked"].metadata["examples"].value)

    assert r"3 not judged (judge\_unparsable)" in told
    assert "no run of this benchmark version" in told


OF_MODELS = {
    "every_planned_item_is_predicted",
    "few_replies_are_cut_off",
    "few_items_are_asked_several_times",
    "every_prediction_is_judged",
    "verdicts_can_be_read",
    "no_judge_grades_its_own_family",
}


def test_in_a_run_for_one_model_the_replies_of_others_are_not_looked_at(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    good = check(settings, instance, **{PARTITION: "lab/good"})
    bad = check(settings, instance, **{PARTITION: "lab/bad"})

    assert all(good[name].passed for name in OF_MODELS)
    assert bad["every_prediction_is_judged"].metadata["rows"].value == 3
    assert bad["every_prediction_is_judged"].metadata["models"].value == "- lab/bad"
    assert not good["every_selected_model_is_ranked"].passed


def test_in_a_run_for_several_models_only_these_are_looked_at(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    some = check(settings, instance, **{RANGE_START: "lab/good", RANGE_END: "lab/edge"})
    more = check(settings, instance, **{RANGE_START: "lab/edge", RANGE_END: "lab/bad"})

    assert some["every_prediction_is_judged"].metadata["rows"].value == 2
    assert some["few_replies_are_cut_off"].passed
    assert more["every_prediction_is_judged"].metadata["rows"].value == 5
    assert not more["few_replies_are_cut_off"].passed


def test_simulated_models_and_their_judge_are_no_family(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    reply = a_prediction()
    settings = settings_in(tmp_path)
    a_journal(settings.data, a_run(), reply, a_judgement(reply))

    found = check(settings, instance)

    assert found["no_judge_grades_its_own_family"].passed


def test_a_warning_is_told_and_fails_no_launch(
    tmp_path: Path,
    gateway: DemoGateway,
    instance: dg.DagsterInstance,
    caplog: pytest.LogCaptureFixture,
) -> None:
    demo = [{"name": "demo", "kind": "demo", "base_url": gateway.base_url}]
    short = {"default": {"max_tokens": 3}}
    settings = settings_in(tmp_path, gateways=demo, experiments=short)
    run_job(find_job(settings, "refresh_catalog"), instance)
    ask = a_job(settings, dg.AssetSelection.assets("predictions"))

    with caplog.at_level(logging.WARNING):
        failures = run_job(ask, instance, partition="demo/strong")

    assert failures == []
    told = "Worth a look: 1 run has more than 5 % of its replies cut off: demo/strong."
    assert told in caplog.messages

"""The jobs: what each does, what its config begins with, and that it can be launched by name."""

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from eval_pipeline.definitions import load_definitions
from eval_pipeline.defs.assets import build_graph
from eval_pipeline.defs.config import (
    CatalogConfig,
    JudgedConfig,
    PredictionsConfig,
    ReliabilityConfig,
    ReportsConfig,
)
from eval_pipeline.defs.jobs import find_job, named_jobs, run_job, stages_of, with_options
from eval_pipeline.defs.partitions import PART_OF, RANGE_END, RANGE_START
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.project import a_project, call, run, undrawn

MODELS = ("demo/average", "demo/strong", "demo/weak")
ASKING = ("evaluate_all", "fix_evaluation")


class Launched:
    """The jobs over a simulated gateway, in an instance of their own."""

    def __init__(self, folder: Path, gateway: DemoGateway, instance: dg.DagsterInstance) -> None:
        gateways = [{"name": "demo", "kind": "demo", "base_url": gateway.base_url}]
        self.settings = settings_in(
            folder, gateways=gateways, automation={"preflight": False}, budget={"usd_per_run": 7}
        )
        self.gateway, self.instance = gateway, instance

    def run(self, name: str, model: str | None = None, **stages: Mapping[str, object]) -> list[str]:
        job = find_job(self.settings, name)
        ops = {stage: {"config": dict(values)} for stage, values in stages.items()}
        if name in ASKING:
            ops = {"every_model": {"config": {"predictions": {}, "judged": {}, **stages}}}
        config = json.dumps({"ops": ops}) if stages else None
        with undrawn():
            return run_job(job, self.instance, partition=model, config=config)

    def anew(
        self, name: str, model: str | None = None, budget_usd: float | None = None
    ) -> list[str]:
        """As with `evals job --fresh --budget`."""
        job = find_job(self.settings, name)
        with undrawn():
            return run_job(job, self.instance, partition=model, budget_usd=budget_usd, fresh=True)

    def asked(self, *models: str) -> int:
        """How often these were asked since the last time."""
        return sum(self.gateway.requests.pop(model, 0) for model in models)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.settings.database), read_only=True) as db:
            return db.sql(sql).fetchall()


@pytest.fixture
def launched(tmp_path: Path, gateway: DemoGateway) -> Iterator[Launched]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Launched(tmp_path, gateway, instance)


def defaults(settings: Settings, name: str) -> dict[str, Any]:
    """What the launchpad begins with."""
    job = find_job(settings, name)
    if job.partitioned_config is not None:
        return dict(job.partitioned_config.get_run_config_for_partition_key("demo/weak"))
    return dict(job.run_config or {})


def test_the_launchpad_begins_with_what_the_settings_say(tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path,
        budget={"usd_per_run": 7},
        concurrency={"num_workers": 3},
        plan={"max_samples": 2},
        selection={"models": ["demo/weak"]},
        analysis={"model": "demo/judge", "num_workers": 2},
    )

    begins = {name: defaults(settings, name).get("ops", {}) for name in named_jobs(settings)}

    asking, judging = (begins["evaluate"][name]["config"] for name in ("predictions", "judged"))
    assert asking["mode"] == "AUTO" and judging["mode"] == "AUTO"
    assert asking["num_workers"] == 3 and asking["max_samples"] == 2
    assert asking["budget_usd"] == judging["budget_usd"] == 7
    for name, mode in zip(ASKING, ("AUTO", "FIX"), strict=True):
        config = begins[name]["every_model"]["config"]
        assert config == {"predictions": asking | {"mode": mode}, "judged": judging}
    assert begins["fix_judge"] == {"judged": {"config": judging | {"mode": "FIX"}}}
    assert begins["metrics_only"] == {}
    assert begins["analyze"]["run_reports"]["config"] == {
        "analyst": "demo/judge",
        "num_workers": 2,
        "budget_usd": 7,
        "models": [],
        "fresh": False,
    }
    assert begins["refresh_catalog"]["model_catalog"]["config"]["models"] == ["demo/weak"]


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        (
            "evaluate",
            {"predictions": {"mode": "FRESH", "budget_usd": 3}, "judged": {"budget_usd": 3}},
        ),
        ("fix_judge", {"judged": {"mode": "FRESH", "budget_usd": 3}}),
        ("analyze", {"run_reports": {"fresh": True, "budget_usd": 3}}),
    ],
)
def test_what_any_job_may_cost_and_that_all_is_done_anew_can_be_said_in_a_word(
    tmp_path: Path, name: str, changed: dict[str, dict[str, object]]
) -> None:
    begins = defaults(settings_in(tmp_path), name)

    for given in (begins, {}):
        config = with_options(name, given, stages_of(begins), budget_usd=3, fresh=True)

        for stage, values in changed.items():
            before = given.get("ops", {}).get(stage, {}).get("config", {})
            assert config["ops"][stage]["config"] == {**before, **values}
    both = defaults(settings_in(tmp_path), "evaluate_all")
    config = with_options("evaluate_all", both, stages_of(both), budget_usd=3, fresh=True)
    asking, judging = (
        config["ops"]["every_model"]["config"][one] for one in ("predictions", "judged")
    )
    assert (asking["mode"], judging["mode"]) == ("FRESH", "AUTO")
    assert asking["budget_usd"] == judging["budget_usd"] == 3


def test_dagster_writes_our_log_as_lines_if_the_settings_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_definitions(settings_in(tmp_path, log="json"))

    logging.getLogger("eval_pipeline.evaluation").warning("late")

    assert json.loads(capsys.readouterr().err)["message"] == "late"


def test_every_job_and_every_field_of_its_config_is_described(tmp_path: Path) -> None:
    jobs = named_jobs(settings_in(tmp_path))

    assert list(jobs) == [
        "analyze",
        "evaluate",
        "evaluate_all",
        "fix_evaluation",
        "fix_judge",
        "metrics_only",
        "refresh_catalog",
    ]
    assert all(job.description for job in jobs.values())
    asking = (CatalogConfig, PredictionsConfig, JudgedConfig, ReliabilityConfig, ReportsConfig)
    for config in asking:
        for name, field in config.model_fields.items():
            assert field.description, f"{config.__name__}.{name}"


@pytest.mark.slow
def test_evaluate_all_evaluates_every_model_in_one_run(launched: Launched) -> None:
    failures = launched.run("evaluate_all")

    assert failures == []
    assert launched.asked(*MODELS) == 9 and launched.asked("demo/judge") == 9
    assert launched.rows("select model from leaderboard order by model") == [(m,) for m in MODELS]
    (run_id,) = launched.rows("select distinct run_id from runs")[0]
    (outer,) = (one for one in launched.instance.get_runs() if one.job_name == "evaluate_all")
    child = launched.instance.get_run_by_id(run_id)
    assert child is not None and child.tags[PART_OF] == outer.run_id


def test_evaluate_evaluates_one_model(launched: Launched) -> None:
    launched.run("refresh_catalog")

    failures = launched.run("evaluate", "demo/weak")

    assert failures == []
    assert launched.asked("demo/weak") == 3 and launched.asked("demo/judge") == 3
    assert launched.asked("demo/strong", "demo/average") == 0
    assert launched.rows("select model, judged from leaderboard") == [("demo/weak", 3)]

    # With --fresh all of it is asked anew, and with a budget no more than that pays for.
    assert launched.anew("evaluate", "demo/weak") == []
    assert launched.asked("demo/weak") == 3
    launched.anew("evaluate", "demo/weak", budget_usd=1e-9)
    assert launched.asked("demo/weak") < 3


def test_evaluate_without_a_partition_says_what_is_missing_and_asks_nobody(
    launched: Launched,
) -> None:
    launched.run("refresh_catalog")
    job = find_job(launched.settings, "evaluate")

    result = job.execute_in_process(instance=launched.instance, raise_on_error=False)

    (failure,) = result.filter_events(
        lambda event: event.is_step_failure and event.step_key == "predictions"
    )
    error = failure.step_failure_data.error
    assert error is not None and error.cause is not None
    assert "No model is named: choose a partition" in error.cause.message
    assert launched.asked(*MODELS, "demo/judge") == 0


def test_a_range_of_which_an_end_has_vanished_meanwhile_asks_nobody_else(
    launched: Launched,
) -> None:
    launched.instance.add_dynamic_partitions("models", ["demo/gone"])
    graph = build_graph(launched.settings).resolve_implicit_global_asset_job_def()

    # No gateway lists it, so that the catalog's refresh removes the partition.
    result = graph.execute_in_process(
        instance=launched.instance,
        asset_selection=[dg.AssetKey("model_catalog"), dg.AssetKey("predictions")],
        tags={RANGE_START: "demo/gone", RANGE_END: "demo/gone"},
        raise_on_error=False,
    )

    failed = [event for event in result.all_events if event.is_step_failure]
    errors = {event.step_key: str(event.step_failure_data.error) for event in failed}
    assert "demo/gone is no partition any more" in errors["predictions"]
    assert launched.asked(*MODELS) == 0


def test_refresh_catalog_makes_the_selected_models_partitions(launched: Launched) -> None:
    launched.run("refresh_catalog", model_catalog={"models": ["demo/weak"]})
    before = launched.instance.get_dynamic_partitions("models")
    launched.run("refresh_catalog")

    assert before == ["demo/weak"]
    assert sorted(launched.instance.get_dynamic_partitions("models")) == list(MODELS)
    assert launched.asked(*MODELS) == 0


@pytest.mark.slow
def test_fix_evaluation_asks_only_what_failed_and_opens_no_run(launched: Launched) -> None:
    launched.gateway.misbehave(Faults(server_error=1, models=("demo/weak",)))
    first = launched.run("evaluate_all", predictions={"mode": "FRESH"})
    launched.gateway.misbehave(Faults())
    launched.asked(*MODELS, "demo/judge")

    failures = launched.run("fix_evaluation")

    assert any("every_planned_item_is_predicted" in sentence for sentence in first)
    assert failures == []
    assert launched.asked("demo/weak") == 3 and launched.asked("demo/strong", "demo/average") == 0
    assert launched.asked("demo/judge") == 3
    assert launched.rows("select count(distinct run_id) from runs") == [(1,)]


def test_fix_judge_judges_what_has_no_score_and_asks_no_model(launched: Launched) -> None:
    launched.run("refresh_catalog")
    launched.gateway.misbehave(Faults(status={"demo/judge": 500}))
    launched.run("evaluate", "demo/weak", predictions={}, judged={"budget_usd": 5})
    launched.gateway.misbehave(Faults())
    launched.asked(*MODELS, "demo/judge")

    failures = launched.run("fix_judge")

    assert failures == []
    assert launched.asked("demo/judge") == 3 and launched.asked(*MODELS) == 0
    assert launched.rows("select judged from leaderboard") == [(3,)]


@pytest.mark.slow
def test_metrics_only_asks_nobody(launched: Launched) -> None:
    launched.run("evaluate_all")
    launched.asked(*MODELS, "demo/judge")
    launched.settings.database.unlink()

    failures = launched.run("metrics_only")

    assert failures == []
    assert launched.asked(*MODELS, "demo/judge") == 0
    assert launched.rows("select count(*) from leaderboard") == [(3,)]


def test_what_fails_inside_evaluate_all_fails_it_with_the_reason(launched: Launched) -> None:
    failures = launched.run("evaluate_all", judged={"judge": "demo/nobody"})

    assert len(failures) == 1 and "demo/nobody is in no gateway's list" in failures[0]
    assert launched.asked(*MODELS) == 0
    (outer,) = (one for one in launched.instance.get_runs() if one.job_name == "evaluate_all")
    assert outer.status is dg.DagsterRunStatus.FAILURE


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("evals job nope", "There is no job nope. There are: analyze, evaluate, evaluate_all"),
        ("evals job evaluate", "evaluate needs a model: --model."),
        ("evals job fix_judge -m demo/weak", "leave out --model"),
        ("evals job evaluate -m demo/nobody", "demo/nobody is no partition"),
        ("evals job metrics_only --budget 3", "metrics_only asks no model: leave out --budget"),
        ("evals job fix_evaluation --fresh", "evals job evaluate_all --fresh"),
        ("evals job fix_judge --budget -1", "--budget"),
        ("evals job fix_judge --config {", "The config is no JSON"),
        ("evals job fix_judge --config []", "The config must be an object"),
        (
            'evals job fix_judge --config {"ops":{"judged":{"config":{"mode":"NO"}}}}',
            "The config of fix_judge is wrong",
        ),
    ],
)
def test_wrong_use_of_the_command_is_told_in_a_sentence(
    tmp_path: Path, command: str, said: str
) -> None:
    ended = call(a_project(tmp_path), command)

    assert ended.returncode == 2, ended.stderr
    assert said in ended.stderr and "Traceback" not in ended.stderr


def test_a_wrong_cron_line_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"automation\.schedule: must be a cron line"):
        named_jobs(settings_in(tmp_path, automation={"schedule": "99 * * * *"}))


def test_the_command_lists_the_jobs_and_runs_one(tmp_path: Path) -> None:
    project = a_project(tmp_path)

    listed = call(project, "evals job")
    done = call(project, "evals job refresh_catalog")

    assert "metrics_only: Compute all numbers anew" in listed.stdout
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_dagster_executes_a_job_by_name(tmp_path: Path) -> None:
    project = a_project(tmp_path, questions=2)

    done = run(project, "dagster job execute -j evaluate_all")

    assert done.returncode == 0, done.stderr
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        found = db.sql("select count(distinct model), count(*) from judged").fetchall()
    assert found == [(3, 6)]

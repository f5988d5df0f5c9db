"""The schedule on a real instance and journal: who is due is requested, and really evaluated."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.instigation_logger import get_instigation_log_records
from dagster._core.definitions.schedule_definition import ScheduleExecutionData

from eval_pipeline.defs.assets import build_graph
from eval_pipeline.defs.automation import build_schedules, busy_models, decide_all
from eval_pipeline.defs.jobs import build_jobs
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import ATTEMPTS, PREDICTIONS, SIGHTINGS, Journal
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.run import Attempt
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import NOON, a_model, settings_in

TICK = NOON + timedelta(days=10)
MODELS = ["demo/average", "demo/strong", "demo/weak"]
LOG_KEY = ["schedule", "due_models", "tick"]


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        yield instance


@pytest.fixture
def in_memory() -> Iterator[dg.DagsterInstance]:
    """For what needs no tick, which reads files."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def a_catalog(settings: Settings, instance: dg.DagsterInstance) -> Journal:
    """Three models that were released ten days before the tick, as journal and partitions."""
    journal = Journal(settings.journal)
    models = [a_model(name, created_at=NOON) for name in MODELS]
    seen = [Sighting(model=model, selected=True, seen_at=NOON) for model in models]
    journal.write_whole(SIGHTINGS, "noon", records=seen)
    instance.add_dynamic_partitions("models", MODELS)
    return journal


def attempted(journal: Journal, model: str, *, hours_ago: float, **changes: object) -> None:
    values = {"run_id": "run-1", "model": model, "experiment": "default", "filtered": False}
    began = {"repair": False, "began_at": TICK - timedelta(hours=hours_ago)}
    one = Attempt.model_validate({**values, **began, **changes})
    journal.write_whole(ATTEMPTS, model, one.run_id, records=[one])


def repository(settings: Settings) -> dg.RepositoryDefinition:
    parts = (build_graph(settings), build_jobs(settings), build_schedules(settings))
    return dg.Definitions.merge(*parts).get_repository_def()


def tick(
    settings: Settings, instance: dg.DagsterInstance, moment: datetime = TICK
) -> ScheduleExecutionData:
    """What the daemon has evaluated when the clock strikes."""
    known = repository(settings)
    context = dg.ScheduleEvaluationContext(
        instance_ref=instance.get_ref(),
        scheduled_execution_time=moment,
        repository_name=known.name,
        schedule_name="due_models",
        repository_def=known,
        log_key=LOG_KEY,
    )
    with context:
        return known.get_schedule_def("due_models").evaluate_tick(context)


def logged(instance: dg.DagsterInstance) -> list[str]:
    """What the UI shows as the tick's log."""
    records = get_instigation_log_records(instance, LOG_KEY)
    return [str(record["dagster_meta"]["orig_message"]) for record in records]


def requested(evaluated: ScheduleExecutionData) -> list[str | None]:
    return [request.partition_key for request in evaluated.run_requests or []]


def unfinished(
    instance: dg.DagsterInstance,
    tags: Mapping[str, str],
    *,
    job: str = "evaluate",
    config: Mapping[str, object] | None = None,
    status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED,
) -> str:
    """A run that Dagster knows of, in that state."""
    run = dg.DagsterRun(job_name=job, tags=dict(tags), run_config=dict(config or {}), status=status)
    return instance.add_run(run).run_id


def in_range(first: str, last: str) -> dict[str, str]:
    named = "dagster/asset_partition_range"
    return {f"{named}_start": first, f"{named}_end": last}


def asks_under(experiment: str) -> dict[str, object]:
    return {"ops": {"predictions": {"config": {"experiment": experiment}}}}


def test_one_run_is_requested_for_each_model_that_is_due(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    settings = settings_in(tmp_path)
    journal = a_catalog(settings, instance)
    attempted(journal, "demo/weak", hours_ago=2)
    attempted(journal, "demo/strong", hours_ago=200)

    evaluated = tick(settings, instance)

    assert requested(evaluated) == ["demo/average", "demo/strong"]
    keys = {request.run_key for request in evaluated.run_requests or []}
    assert keys == {
        "demo/average 2025-01-11T12:00:00+0000",
        "demo/strong 2025-01-11T12:00:00+0000",
    }
    first, second = (request.tags for request in evaluated.run_requests or [])
    assert first["evals/due"] == "due: never evaluated"
    assert second["evals/due"].startswith("due since 2025-01-04 ")
    assert len(second["evals/due"]) <= 63
    assert first["dagster/partition"] == "demo/average"


def test_the_log_of_the_tick_has_the_reason_of_every_decision(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    settings = settings_in(tmp_path)
    attempted(a_catalog(settings, instance), "demo/weak", hours_ago=12)
    run_id = unfinished(instance, {"dagster/partition": "demo/strong"})

    tick(settings, instance)

    assert logged(instance) == [
        "demo/average: due: never evaluated",
        "demo/weak: not due until 2025-01-13 01:17 UTC: last attempt 0.5 days ago, interval 2.1 "
        "days at an age of 9 days; what a run costs is not known",
        f"demo/strong: not due: run {run_id[:8]} is queued or running",
    ]


def test_a_tick_at_which_nobody_is_due_says_when_the_next_one_is(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    settings = settings_in(tmp_path)
    journal = a_catalog(settings, instance)
    for model in MODELS:
        attempted(journal, model, hours_ago=1)

    evaluated = tick(settings, instance)

    assert requested(evaluated) == []
    assert evaluated.skip_message == (
        "0 of 3 models are due; the next one is on 2025-01-13 13:30 UTC."
    )


def test_without_a_catalog_the_tick_says_how_to_get_one(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    settings = settings_in(tmp_path)

    before = tick(settings, instance)
    instance.add_dynamic_partitions("models", ["demo/strong"])
    without_journal = tick(settings, instance)

    assert "materialize --select model_catalog" in str(before.skip_message)
    assert without_journal.skip_message == "0 of 1 models are due."
    assert "demo/strong: not due: the catalog does not have it" in logged(instance)[0]


@pytest.mark.parametrize(
    ("tags", "job", "experiment", "busy"),
    [
        ({"dagster/partition": "demo/weak"}, "evaluate", None, ["demo/weak"]),
        ({"dagster/partition": "demo/weak"}, "evaluate", "default", ["demo/weak"]),
        ({"dagster/partition": "demo/weak"}, "evaluate", "web_search", []),
        (in_range("demo/average", "demo/strong"), "__ASSET_JOB", None, MODELS[:2]),
        (in_range("demo/strong", "demo/strong"), "__ASSET_JOB", None, MODELS[1:2]),
        (in_range("demo/gone", "demo/average"), "__ASSET_JOB", None, MODELS[:1]),
        (in_range("demo/strong", "demo/gone"), "__ASSET_JOB", None, MODELS[1:]),
        ({}, "evaluate_all", None, MODELS),
        ({}, "fix_evaluation", None, MODELS),
        ({}, "metrics_only", None, []),
    ],
)
def test_models_that_a_run_is_at_under_the_same_experiment_are_busy(
    in_memory: dg.DagsterInstance,
    tags: dict[str, str],
    job: str,
    experiment: str | None,
    busy: list[str],
) -> None:
    config = {} if experiment is None else asks_under(experiment)
    run_id = unfinished(in_memory, tags, job=job, config=config)

    found = busy_models(in_memory, MODELS, "default")

    assert found == dict.fromkeys(busy, run_id)


def test_a_run_for_all_models_under_another_experiment_keeps_nobody_busy(
    in_memory: dg.DagsterInstance,
) -> None:
    asked = {"predictions": {"experiment": "web_search"}, "judged": {}}
    config = {"ops": {"every_model": {"config": asked}}}
    unfinished(in_memory, {}, job="evaluate_all", config=config)

    assert busy_models(in_memory, MODELS, "default") == {}
    assert set(busy_models(in_memory, MODELS, "web_search")) == set(MODELS)


@pytest.mark.parametrize(
    ("status", "is_busy"),
    [
        (dg.DagsterRunStatus.STARTING, True),
        (dg.DagsterRunStatus.CANCELING, True),
        # Whoever launched it was killed before it began.
        (dg.DagsterRunStatus.NOT_STARTED, False),
        (dg.DagsterRunStatus.SUCCESS, False),
        (dg.DagsterRunStatus.FAILURE, False),
        (dg.DagsterRunStatus.CANCELED, False),
    ],
)
def test_a_run_that_has_ended_or_never_began_keeps_nobody_busy(
    in_memory: dg.DagsterInstance, status: dg.DagsterRunStatus, is_busy: bool
) -> None:
    unfinished(in_memory, {"dagster/partition": "demo/weak"}, status=status)

    assert ("demo/weak" in busy_models(in_memory, MODELS, "default")) is is_busy


def test_with_a_narrowed_plan_in_the_settings_narrowed_attempts_count(
    tmp_path: Path, in_memory: dg.DagsterInstance
) -> None:
    narrowed = settings_in(tmp_path, plan={"max_samples": 1})
    journal = a_catalog(narrowed, in_memory)
    for model in MODELS:
        attempted(journal, model, hours_ago=1, filtered=True)

    in_part = decide_all(narrowed, in_memory, TICK)
    as_a_whole = decide_all(settings_in(tmp_path), in_memory, TICK)

    assert [one.due for one in in_part] == [False] * 3
    assert [one.due for one in as_a_whole] == [True] * 3


def test_a_model_that_can_not_search_is_never_due_under_such_an_experiment(
    tmp_path: Path, in_memory: dg.DagsterInstance
) -> None:
    settings = settings_in(tmp_path, experiment="web_search")
    a_catalog(settings, in_memory)

    decisions = decide_all(settings, in_memory, TICK)

    assert {one.reason for one in decisions} == {"not due: its gateway lists no web search"}


@pytest.mark.parametrize(
    ("automation", "cron", "status"),
    [
        ({}, "0 */4 * * *", dg.DefaultScheduleStatus.STOPPED),
        ({"evaluate": True}, "0 */4 * * *", dg.DefaultScheduleStatus.RUNNING),
        ({"schedule": "30 2 * * *"}, "30 2 * * *", dg.DefaultScheduleStatus.STOPPED),
    ],
)
def test_the_schedule_ticks_as_the_settings_say_and_runs_only_if_they_allow_it(
    tmp_path: Path, automation: dict[str, object], cron: str, status: dg.DefaultScheduleStatus
) -> None:
    settings = settings_in(tmp_path, automation=automation)

    schedule = repository(settings).get_schedule_def("due_models")

    assert (schedule.cron_schedule, schedule.execution_timezone) == (cron, "UTC")
    assert (schedule.job_name, schedule.default_status) == ("evaluate", status)


@pytest.mark.slow
def test_a_requested_run_evaluates_that_model_and_makes_it_wait(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance
) -> None:
    demo = [{"name": "demo", "kind": "demo", "base_url": gateway.base_url}]
    settings = settings_in(tmp_path, gateways=demo, concurrency={"num_workers": 2})
    known = repository(settings)
    known.get_job("refresh_catalog").execute_in_process(instance=instance)
    moment = datetime.now(UTC)
    request, *others = tick(settings, instance, moment).run_requests or []

    job = known.get_job("evaluate")
    result = job.execute_in_process(
        run_config=request.run_config, tags=dict(request.tags), instance=instance
    )
    after = tick(settings, instance, moment + timedelta(minutes=5))

    assert result.success
    assert request.run_config["ops"]["predictions"]["config"]["num_workers"] == 2
    journal = Journal(settings.journal)
    assert journal.parts(PREDICTIONS) == [request.partition_key]
    assert [one.run_id for one in journal.read(ATTEMPTS)] == [result.run_id]
    assert requested(after) == [one.partition_key for one in others]


def test_the_next_tick_knows_of_a_run_that_was_killed_before_it_published(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    settings = settings_in(tmp_path)
    journal = a_catalog(settings, instance)
    before = tick(settings, instance)

    attempted(journal, "demo/strong", hours_ago=0)
    after = tick(settings, instance)

    assert requested(before) == MODELS
    assert requested(after) == ["demo/average", "demo/weak"]

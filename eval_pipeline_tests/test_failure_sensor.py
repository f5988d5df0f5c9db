"""The sensor `failed_runs`: really failed runs, a real webhook, Dagster's own evaluation."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData

from eval_pipeline import notify
from eval_pipeline.definitions import build_definitions
from eval_pipeline.defs.jobs import PART_OF
from eval_pipeline.defs.launch import words_of
from eval_pipeline.defs.partitions import RANGE_END, RANGE_START
from eval_pipeline.defs.sensors.failures import build_notifications
from eval_pipeline.providers.demo.faults import Faults
from eval_pipeline.providers.demo.server import DemoGateway
from eval_pipeline.settings import Settings
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.project import undrawn
from eval_pipeline_tests.test_notify import SECRET, Webhook, a_webhook

STAGES = ("predictions", "judged")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "WAIT_S", 0.01)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with a_webhook() as webhook:
        yield webhook


def settings_with(
    folder: Path, gateway: DemoGateway, webhook: Webhook | None, **changes: Any
) -> Settings:
    demo = {"name": "demo", "kind": "demo", "base_url": gateway.base_url}
    settings_in(
        folder,
        gateways=[demo],
        automation={"ui_url": "https://dagster.example/ui/"},
        requests={"attempts": 1},
        **changes,
    )
    url = {} if webhook is None else {"EVALS_WEBHOOK_URL": webhook.secret.get_secret_value()}
    return Settings.from_env({"EVALS_SETTINGS": str(folder / "eval_pipeline.toml"), **url})


def run(
    settings: Settings,
    instance: dg.DagsterInstance,
    *assets: str,
    partition: str | None = None,
    tags: dict[str, str] | None = None,
) -> dg.ExecuteInProcessResult:
    job = build_definitions(settings).resolve_implicit_global_asset_job_def()
    with undrawn():
        return job.execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(name) for name in assets],
            partition_key=partition,
            tags=tags,
            raise_on_error=False,
        )


def sensor_of(settings: Settings) -> dg.SensorDefinition:
    (sensor,) = build_notifications(settings).sensors or ()
    assert isinstance(sensor, dg.SensorDefinition)
    return sensor


def told(
    settings: Settings, instance: dg.DagsterInstance, failed: dg.ExecuteInProcessResult
) -> object:
    """What the sensor says to this failure."""
    assert not failed.success
    context = dg.build_run_status_sensor_context(
        sensor_name="failed_runs",
        dagster_event=failed.get_run_failure_event(),
        dagster_instance=instance,
        dagster_run=failed.dagster_run,
    )
    return sensor_of(settings)(context.for_run_failure())


def test_a_failed_run_is_told_with_model_reason_counts_cost_and_link(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    run(settings, instance, "dataset", "model_catalog")
    gateway.misbehave(Faults(status={"demo/strong": 401}))
    failed = run(settings, instance, *STAGES, partition="demo/strong")

    assert told(settings, instance, failed) is None

    (post,) = webhook.posts
    what, why, counts, cost, link = post["text"].splitlines()
    assert what == ":x: *judged, predictions failed* for `demo/strong`"
    assert why == "Why: `predictions: demo/strong: HTTP 401: A simulated fault.`"
    assert counts.startswith("`demo/strong`: auth ") and counts.endswith(" (of 3)")
    assert cost == "Cost so far: 0.0000 USD"
    assert link == f"<https://dagster.example/ui/runs/{failed.run_id}|Open the run in Dagster>"


def test_a_run_that_went_on_with_an_earlier_one_tells_how_that_stands(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    run(settings, instance, "model_catalog")
    gateway.misbehave(Faults(server_error=1))
    run(settings, instance, "predictions", partition="demo/weak")
    run(settings, instance, "predictions", partition="demo/strong")
    gateway.misbehave(Faults(status={"demo/strong": 401}))
    failed = run(settings, instance, "predictions", partition="demo/strong")

    told(settings, instance, failed)

    _, _, counts, *rest = webhook.posts[0]["text"].splitlines()
    assert counts.startswith("`demo/strong`: ") and "auth" in counts
    assert len(rest) == 2


def test_all_models_that_failed_in_the_parts_of_a_run_are_told_once(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    models = ("demo/average", "demo/strong", "demo/weak")
    settings = settings_with(tmp_path, gateway, webhook)
    run(settings, instance, "dataset", "model_catalog")
    gateway.misbehave(Faults(status=dict.fromkeys(models, 401)))
    job = build_definitions(settings).resolve_job_def("evaluate_all")
    failed = job.execute_in_process(instance=instance, raise_on_error=False)

    told(settings, instance, failed)

    what, why, *counts, _, _ = webhook.posts[0]["text"].splitlines()
    assert what == ":x: *evaluate_all failed* for all models"
    assert why.startswith("Why: `every_model: predictions: ")
    assert sorted(line.split(":")[0] for line in counts) == [f"`{model}`" for model in models]


def test_a_range_of_models_is_told_by_its_ends(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    run(settings, instance, "dataset", "model_catalog")
    first, *_, last = instance.get_dynamic_partitions("models")
    gateway.misbehave(Faults(status=dict.fromkeys(instance.get_dynamic_partitions("models"), 401)))
    ends = {RANGE_START: first, RANGE_END: last}
    failed = run(settings, instance, "predictions", tags=ends)

    told(settings, instance, failed)

    what, _, *counts, _, _ = webhook.posts[0]["text"].splitlines()
    assert what == f":x: *predictions failed* for `{first}` to `{last}`"
    assert len(counts) == 3


def test_a_failure_that_asked_nobody_is_told_without_models_and_counts(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    (tmp_path / "questions.jsonl").write_text("<!here> `no` JSON\n")
    failed = run(settings, instance, "dataset")

    told(settings, instance, failed)

    what, why, _ = webhook.posts[0]["text"].splitlines()
    assert what == ":x: *dataset failed*"
    assert why.startswith("Why: `dataset: ")
    assert "<!here>" not in why and why.count("`") == 2


def test_hostile_words_of_a_gateway_and_the_address_itself_do_no_harm(
    tmp_path: Path,
    instance: dg.DagsterInstance,
    gateway: DemoGateway,
    webhook: Webhook,
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    address = webhook.secret.get_secret_value()
    words = f"<!channel> @here `x` <http://bad.example|{address}>\n{address}"

    @dg.op
    def asks() -> None:
        try:
            raise ValueError(words)
        except ValueError as error:
            raise dg.Failure("not this") from error

    @dg.job
    def hostile() -> None:
        asks()

    failed = hostile.execute_in_process(instance=instance, raise_on_error=False)

    told(settings, instance, failed)

    what, why, _ = webhook.posts[0]["text"].splitlines()
    assert what == ":x: *hostile failed*"
    key = "[EVALS_WEBHOOK_URL]"
    assert why == (
        f"Why: `asks: &lt;!channel&gt; @\u200bhere 'x' &lt;http://bad.example|{key}&gt; {key}`"
    )


def test_a_failure_outside_of_any_step_is_told_in_dagsters_words(
    tmp_path: Path, instance: dg.DagsterInstance, gateway: DemoGateway, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    job = build_definitions(settings).resolve_job_def("metrics_only")
    lost = instance.create_run_for_job(job)
    event = instance.report_run_failed(lost, "The machine is gone.")
    found = instance.get_run_by_id(lost.run_id)
    assert found is not None
    context = dg.build_run_status_sensor_context("failed_runs", event, instance, found)

    sensor_of(settings)(context.for_run_failure())

    assert webhook.posts[0]["text"].splitlines()[:2] == [
        ":x: *metrics_only failed*",
        "Why: `The machine is gone.`",
    ]


def tick(
    settings: Settings, instance: dg.DagsterInstance, before: SensorExecutionData | None = None
) -> SensorExecutionData:
    """What Dagster makes of the failures since the tick before; the first one only begins."""
    cursor = before.cursor if before else None
    with dg.build_sensor_context(instance, cursor=cursor) as context:
        return sensor_of(settings).evaluate_tick(context)


def failing(settings: Settings, instance: dg.DagsterInstance, **tags: str) -> str:
    (settings.root / "questions.jsonl").unlink(missing_ok=True)
    return run(settings, instance, "dataset", tags=tags).run_id


def test_in_a_tick_with_several_failures_those_of_parts_are_not_told(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    begun = tick(settings, instance)
    first = failing(settings, instance)
    failing(settings, instance, **{PART_OF: first})
    last = failing(settings, instance)

    done = tick(settings, instance, begun)

    assert [reaction.error for reaction in done.dagster_run_reactions or ()] == [None] * 3
    assert not tick(settings, instance, done).dagster_run_reactions
    links = [post["text"].splitlines()[-1] for post in webhook.posts]
    assert [first in links[0], last in links[1]] == [True, True]
    assert len(links) == 2


def test_without_a_webhook_the_sensor_is_off_and_says_why(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, None)
    begun = tick(settings, instance)
    failing(settings, instance)
    failing(settings, instance)

    done = tick(settings, instance, begun)

    assert (done.skip_message, done.dagster_run_reactions) == ("EVALS_WEBHOOK_URL is not set.", [])
    assert sensor_of(settings).default_status is dg.DefaultSensorStatus.STOPPED
    on = settings_with(tmp_path, gateway, webhook)
    assert sensor_of(on).default_status is dg.DefaultSensorStatus.RUNNING


def test_a_webhook_that_fails_fails_the_tick_in_a_sentence_without_the_address(
    tmp_path: Path,
    gateway: DemoGateway,
    instance: dg.DagsterInstance,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with a_webhook(500) as webhook:
        settings = settings_with(tmp_path, gateway, webhook)
        begun = tick(settings, instance)
        failing(settings, instance)

        done = tick(settings, instance, begun)

    (reaction,) = done.dagster_run_reactions or ()
    assert len(webhook.posts) == 2
    assert reaction.error is not None
    assert "The webhook did not take the message: status 500." in reaction.error.message
    assert SECRET not in reaction.error.to_string()
    assert SECRET not in caplog.text


def test_a_failure_that_can_be_posted_leaves_no_address_in_the_log(
    tmp_path: Path,
    gateway: DemoGateway,
    instance: dg.DagsterInstance,
    webhook: Webhook,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = settings_with(tmp_path, gateway, webhook)
    begun = tick(settings, instance)
    failing(settings, instance)

    tick(settings, instance, begun)

    assert len(webhook.posts) == 1
    assert SECRET not in caplog.text


def test_of_a_killed_run_it_is_told_how_it_was_killed(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    killed = instance.add_run(dg.DagsterRun("evaluate", status=dg.DagsterRunStatus.STARTED))
    instance.report_engine_event("Its process was ended by signal 9.", killed)
    failure = instance.report_run_failed(killed)

    context = dg.build_run_status_sensor_context("failed_runs", failure, instance, killed)
    sensor_of(settings)(context.for_run_failure())

    (posted,) = webhook.posts
    assert "Its process was ended by signal 9." in str(posted)


def test_what_is_not_known_is_said_so() -> None:
    assert words_of(None) == "it failed"

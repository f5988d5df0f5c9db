"""The sensor `failed_runs`: really failed runs, a real webhook, Dagster's own evaluation."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from traceback import format_exception
from typing import Any, NamedTuple

import dagster as dg
import pytest

from eval_pipeline.definitions import build_definitions
from eval_pipeline.defs import notifications, sensors
from eval_pipeline.defs.notifications import NotifyError, cause_of
from eval_pipeline.defs.partitions import ONE, PART_OF, RANGE_END, RANGE_START
from eval_pipeline.defs.sensors import POSTED, build_notifications
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.records.base import now
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import a_journal, a_prediction, a_run, settings_in
from eval_pipeline_tests.project import undrawn
from eval_pipeline_tests.test_notify import SECRET, Webhook, a_webhook

STAGES = ("predictions", "judged")
FROM_THE_BEGINNING = "-1"
NOTHING = "There are no failures to post."


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "WAIT_S", 0.01)


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


class Ticked(NamedTuple):
    """The message of a tick, and the cursor that it left."""

    said: str | None
    cursor: str | None


def tick(
    settings: Settings, instance: dg.DagsterInstance, cursor: str | None = FROM_THE_BEGINNING
) -> Ticked:
    """Run a tick of the sensor; return its message and the new cursor."""
    with dg.build_sensor_context(instance, cursor=cursor) as context:
        said = sensor_of(settings)(context)
        assert isinstance(said, dg.SkipReason)
        return Ticked(said.skip_message, context.cursor)


def test_a_failed_run_is_told_with_model_reason_counts_cost_and_link(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    run(settings, instance, "dataset", "model_catalog")
    gateway.misbehave(Faults(status={"demo/strong": 401}))
    failed = run(settings, instance, *STAGES, partition="demo/strong")

    tick(settings, instance)

    (post,) = webhook.posts
    what, why, counts, cost, link = post["text"].splitlines()
    assert what == ":x: *judged, predictions failed* for `demo/strong`"
    assert why == "Why: `predictions: demo/strong: HTTP 401: A simulated fault.`"
    assert counts.startswith("`demo/strong`: auth ") and counts.endswith(" (of 3)")
    assert cost == "Cost so far: 0.0000 USD"
    assert link == f"<https://dagster.example/ui/runs/{failed.run_id}|Open the run in Dagster>"


@pytest.mark.slow
def test_a_run_that_went_on_with_an_earlier_one_tells_how_that_stands(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    run(settings, instance, "model_catalog")
    gateway.misbehave(Faults(server_error=1))
    run(settings, instance, "predictions", partition="demo/weak")
    run(settings, instance, "predictions", partition="demo/strong")
    gateway.misbehave(Faults(status={"demo/strong": 401}))
    run(settings, instance, "predictions", partition="demo/strong")

    tick(settings, instance)

    _, _, counts, *rest = webhook.posts[0]["text"].splitlines()
    assert counts.startswith("`demo/strong`: ") and "auth" in counts
    assert len(rest) == 2


@pytest.mark.slow
def test_all_models_that_failed_in_the_parts_of_a_run_are_told_once(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    models = ("demo/average", "demo/strong", "demo/weak")
    settings = settings_with(tmp_path, gateway, webhook)
    run(settings, instance, "dataset", "model_catalog")
    gateway.misbehave(Faults(status=dict.fromkeys(models, 401)))
    job = build_definitions(settings).resolve_job_def("evaluate_all")
    job.execute_in_process(instance=instance, raise_on_error=False)

    tick(settings, instance)

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
    run(settings, instance, "predictions", tags=ends)

    tick(settings, instance)

    what, _, *counts, _, _ = webhook.posts[0]["text"].splitlines()
    assert what == f":x: *predictions failed* for `{first}` to `{last}`"
    assert len(counts) == 3


def test_a_failure_that_asked_nobody_is_told_without_models_and_counts(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    (tmp_path / "questions.jsonl").write_text("<!here> `no` JSON\n")
    run(settings, instance, "dataset")

    tick(settings, instance)

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

    hostile.execute_in_process(instance=instance, raise_on_error=False)

    tick(settings, instance)

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
    instance.report_run_failed(instance.create_run_for_job(job), "The machine is gone.")

    tick(settings, instance)

    assert webhook.posts[0]["text"].splitlines()[:2] == [
        ":x: *metrics_only failed*",
        "Why: `The machine is gone.`",
    ]


def failing(instance: dg.DagsterInstance, **tags: str) -> str:
    """A run that has failed."""
    lost = instance.add_run(dg.DagsterRun("metrics_only", tags=tags))
    instance.report_run_failed(lost)
    return lost.run_id


def told_runs(webhook: Webhook) -> list[str]:
    """The ids of the runs that were posted, each as often as it was."""
    links = [post["text"].splitlines()[-1] for post in webhook.posts]
    return [link.split("/runs/")[1].split("|")[0] for link in links]


def test_in_a_tick_with_several_failures_those_of_parts_are_not_told(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    before = failing(instance)
    begun = tick(settings, instance, None)
    first = failing(instance)
    failing(instance, **{PART_OF: first})
    last = failing(instance)
    for run in instance.get_runs(dg.RunsFilter(run_ids=[last])):
        instance.report_run_failed(run)  # a second time

    done = tick(settings, instance, begun.cursor)

    assert done.said == "Posted: 2 of 2 failures."
    assert tick(settings, instance, done.cursor).said == NOTHING
    assert tick(settings, instance, begun.cursor).said == NOTHING
    assert told_runs(webhook) == [first, last]
    assert before not in told_runs(webhook)


def test_without_a_webhook_the_sensor_is_off_and_says_why(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, None)
    failing(instance)
    failing(instance)

    done = tick(settings, instance)

    assert done.said == "EVALS_WEBHOOK_URL is not set."
    assert sensor_of(settings).default_status is dg.DefaultSensorStatus.STOPPED
    on = settings_with(tmp_path, gateway, webhook)
    assert sensor_of(on).default_status is dg.DefaultSensorStatus.RUNNING
    assert tick(on, instance, done.cursor).said == NOTHING
    assert webhook.posts == []


def test_a_webhook_that_fails_fails_the_tick_in_a_sentence_without_the_address(
    tmp_path: Path,
    gateway: DemoGateway,
    instance: dg.DagsterInstance,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with a_webhook(500) as webhook:
        settings = settings_with(tmp_path, gateway, webhook)
        failing(instance)

        with pytest.raises(NotifyError) as raised:
            tick(settings, instance)

    assert len(webhook.posts) == 2
    assert str(raised.value) == "The webhook did not take the message: status 500."
    assert SECRET not in "".join(format_exception(raised.value))
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
    failing(instance)

    tick(settings, instance)

    assert len(webhook.posts) == 1
    assert SECRET not in caplog.text


def test_what_the_webhook_did_not_take_is_told_later_in_order_and_once(
    tmp_path: Path,
    gateway: DemoGateway,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with a_webhook(500, 500, 200) as webhook:
        settings = settings_with(tmp_path, gateway, webhook)
        first, gone, last = (failing(instance) for _ in range(3))
        with pytest.raises(NotifyError):
            tick(settings, instance)
        instance.delete_run(gone)
        monkeypatch.setattr(notifications, "LATE", timedelta())

        up = tick(settings, instance)

        assert tick(settings, instance, up.cursor).said == NOTHING
    assert told_runs(webhook) == [first, first, first, last]
    said = [post["text"].splitlines()[0] for post in webhook.posts]
    assert [line.endswith(" UTC") for line in said] == [False, False, True, True]
    assert up.said == "Posted: 2 of 2 failures."


def test_what_waits_to_be_told_is_bounded_and_the_latest_of_it(
    tmp_path: Path,
    gateway: DemoGateway,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sensors, "MOST_WAITING", 2)
    with a_webhook(404, 200) as webhook:
        settings = settings_with(tmp_path, gateway, webhook)
        _, *latest = (failing(instance) for _ in range(3))
        with pytest.raises(NotifyError):
            tick(settings, instance)
        latest = [*latest[1:], failing(instance)]

        tick(settings, instance)

    assert told_runs(webhook)[-2:] == latest


def test_a_message_that_the_webhook_will_never_take_keeps_no_other_from_being_told(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance
) -> None:
    with a_webhook(400, 200) as webhook:
        settings = settings_with(tmp_path, gateway, webhook)
        refused, taken = failing(instance), failing(instance)

        with pytest.raises(NotifyError, match="status 400"):
            tick(settings, instance)

        assert tick(settings, instance).said == NOTHING
    assert told_runs(webhook) == [refused, taken]
    runs = map(instance.get_run_by_id, (refused, taken))
    assert [run.tags[POSTED] for run in runs if run] == ["never", "true"]


def test_a_tick_that_takes_long_leaves_the_rest_to_the_next(
    tmp_path: Path,
    gateway: DemoGateway,
    instance: dg.DagsterInstance,
    webhook: Webhook,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sensors, "LONGEST_TICK_S", -1)
    settings = settings_with(tmp_path, gateway, webhook)
    failed = failing(instance)

    done = tick(settings, instance)

    assert (webhook.posts, done.said) == ([], "Posted: 0 of 1 failures.")
    monkeypatch.undo()
    tick(settings, instance, done.cursor)
    assert told_runs(webhook) == [failed]


def test_of_a_killed_run_it_is_told_how_it_was_killed_and_how_far_it_had_come(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    named = {"run_id": (killed := a_killed_run(instance)).run_id, "finished_at": now()}
    after = {**named, "finished_at": now() + timedelta(hours=1)}
    usage = {"cost_usd": 0.25}
    a_journal(
        settings.journal.parent,
        a_run(killed.run_id, plan=[("sample", f"q{number}") for number in (1, 2, 3)]),
        a_prediction("q1", **named, usage=usage),
        a_prediction("q2", **after, usage=usage),
    )
    instance.report_engine_event("Its process was ended by signal 9.", killed)
    instance.report_run_failed(killed)

    tick(settings, instance)

    (post,) = webhook.posts
    what, why, counts, cost, _ = post["text"].splitlines()
    assert what == ":x: *evaluate failed* for `demo/strong`"
    assert why == "Why: `Its process was ended by signal 9.`"
    assert counts == "`demo/strong`: ok 1 (of 3)"
    assert cost == "Cost so far: 0.2500 USD"


def a_killed_run(instance: dg.DagsterInstance) -> dg.DagsterRun:
    """A run that has begun to ask; nobody has noticed yet that its process is gone."""
    killed = instance.add_run(dg.DagsterRun("evaluate", tags={ONE: "demo/strong"}))
    for kind, step in (("RUN_START", None), ("STEP_START", "predictions")):
        event = dg.DagsterEvent(dg.DagsterEventType[kind].value, killed.job_name, step_key=step)
        instance.report_dagster_event(event, killed.run_id)
    return killed


def test_a_run_for_which_no_model_was_named_is_not_about_all_models(
    tmp_path: Path, gateway: DemoGateway, instance: dg.DagsterInstance, webhook: Webhook
) -> None:
    settings = settings_with(tmp_path, gateway, webhook)
    run(settings, instance, "predictions", tags={})

    tick(settings, instance)

    what, why, _ = webhook.posts[0]["text"].splitlines()
    assert what == ":x: *predictions failed*"
    assert why.startswith("Why: `predictions: No model is named")


def test_of_a_failure_without_an_error_no_cause_is_known() -> None:
    failure = dg.DagsterEvent(dg.DagsterEventType.RUN_FAILURE.value, "evaluate")

    assert cause_of(failure) is None

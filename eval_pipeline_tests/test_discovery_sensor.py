"""The discovery sensor: what it notices, what it asks for, and when it leaves things alone."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.defs.assets import build_graph
from eval_pipeline.defs.jobs import build_jobs
from eval_pipeline.defs.sensors import build_discovery
from eval_pipeline.evaluation import catalog as discovery
from eval_pipeline.records.base import now
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.test_preflight import Shop


class Watch:
    """The sensor over one gateway, and the job that it asks for, in an instance of their own."""

    def __init__(self, folder: Path, shop: Shop, instance: dg.DagsterInstance) -> None:
        self.folder, self.shop, self.instance = folder, shop, instance
        self.keys: list[str] = []
        self.settings = self.choose()

    def choose(self, **changes: Any) -> Settings:
        chosen: dict[str, Any] = {"selection": {"exclude_models": ()}, **changes}
        self.settings = settings_in(self.folder, gateways=[self.shop.gateway()], **chosen)
        return self.settings

    @property
    def definitions(self) -> dg.Definitions:
        parts = (build_graph, build_jobs, build_discovery)
        return dg.Definitions.merge(*(part(self.settings) for part in parts))

    @property
    def sensor(self) -> dg.SensorDefinition:
        return self.definitions.resolve_sensor_def("discovery")

    def tick(self) -> dg.RunRequest | str:
        """The request, or why there is none."""
        with dg.build_sensor_context(instance=self.instance) as context:
            data = self.sensor.evaluate_tick(context)
        if not data.run_requests:
            assert data.skip_message
            return data.skip_message
        (request,) = data.run_requests
        assert request.run_key
        self.keys.append(request.run_key)
        return request

    def refresh(self) -> bool:
        """Does what is asked for, as the daemon would."""
        assert self.sensor.job_name == "refresh_catalog"
        job = self.definitions.resolve_job_def("refresh_catalog")
        return job.execute_in_process(instance=self.instance, raise_on_error=False).success

    def partitions(self) -> set[str]:
        return set(self.instance.get_dynamic_partitions("models"))


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as shop:
        shop.prices = {"x/a": (1e-6, 2e-6), "x/b": (3e-6, 4e-6)}
        yield shop


@pytest.fixture
def watch(tmp_path: Path, shop: Shop) -> Iterator[Watch]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Watch(tmp_path, shop, instance)


def test_it_has_new_and_lost_models_made_partitions_or_not(watch: Watch, shop: Shop) -> None:
    first = watch.tick()
    assert isinstance(first, dg.RunRequest) and watch.partitions() == set()
    assert shop.asked == []
    assert watch.refresh() and watch.partitions() == {"x/a", "x/b"}
    assert watch.tick() == "nothing has changed: 2 models at 1 gateway."

    shop.prices = {"x/b": (3e-6, 4e-6), "x/c": (0, 0)}

    assert isinstance(watch.tick(), dg.RunRequest)
    assert watch.refresh() and watch.partitions() == {"x/b", "x/c"}
    assert watch.tick() == "nothing has changed: 2 models at 1 gateway."


def test_the_same_change_has_the_same_key_until_it_is_seen_to(watch: Watch, shop: Shop) -> None:
    watch.refresh()
    price = shop.prices.pop("x/b")
    watch.tick()
    watch.tick()
    watch.refresh()
    shop.prices["x/b"] = price
    watch.tick()
    watch.refresh()
    del shop.prices["x/b"]
    watch.tick()

    once, again, back, later = watch.keys
    assert once == again
    assert len({once, back, later}) == 3


def test_a_refresh_that_failed_is_asked_for_again_the_next_day(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.tick()
    monkeypatch.setattr(discovery, "now", lambda: now() + timedelta(days=1))
    watch.tick()

    today, tomorrow = watch.keys
    assert today != tomorrow


def test_a_new_price_is_a_reason_and_is_told(
    watch: Watch, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    watch.refresh()
    shop.prices["x/a"] = (5e-6, 2e-6)

    with dg.build_sensor_context(instance=watch.instance) as context:
        context.log.addHandler(caplog.handler)
        watch.sensor.evaluate_tick(context)

    told = "Changed their price: x/a: input 1.00 to 5.00 USD per million tokens."
    assert told in caplog.messages


def test_a_selected_model_that_is_no_partition_is_a_reason(watch: Watch) -> None:
    watch.choose(selection={"models": ["x/a"]})
    watch.refresh()
    assert watch.partitions() == {"x/a"}
    watch.choose()

    assert isinstance(watch.tick(), dg.RunRequest)
    assert watch.refresh() and watch.partitions() == {"x/a", "x/b"}


def test_a_dead_model_is_left_alone_for_a_day(
    watch: Watch, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.status = {"x/b": 404}
    watch.refresh()
    assert watch.partitions() == {"x/a"}
    assert isinstance(watch.tick(), str)

    monkeypatch.setattr(discovery, "now", lambda: now() + timedelta(days=1, minutes=1))

    assert isinstance(watch.tick(), dg.RunRequest)


def test_a_gateway_that_is_down_is_a_reason_to_wait(watch: Watch, shop: Shop) -> None:
    shop.closed = True

    said = watch.tick()

    assert isinstance(said, str)
    assert said.startswith("No gateway listed its models: Gateway 'shop' answered with status 503")


def test_a_selection_of_nothing_is_told_and_starts_nothing(watch: Watch) -> None:
    watch.choose(selection={"models": ["unheard-of"]})

    said = watch.tick()

    assert isinstance(said, str) and said.startswith("No model is selected")


@pytest.mark.parametrize("evaluate", [True, False])
def test_it_runs_by_itself_only_where_evaluations_do(watch: Watch, evaluate: bool) -> None:
    watch.choose(automation={"evaluate": evaluate, "discover_every_s": 77})

    sensor = watch.sensor

    running = sensor.default_status is dg.DefaultSensorStatus.RUNNING
    assert (running, sensor.minimum_interval_seconds) == (evaluate, 77)

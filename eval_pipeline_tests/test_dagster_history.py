"""What Dagster keeps of old runs goes when it is told to, and nothing that is still needed."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from eval_pipeline.defs.instance import (
    forget_runs,
    forgettable_runs,
    instance_as_it_is,
    look_at_queue,
)
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.records.base import now
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.dagster_runs import a_dagster_run
from eval_pipeline_tests.project import call

LATER = now() + timedelta(days=1)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with instance_as_it_is(settings, captured=True) as instance:
        yield instance


def a_run(instance: dg.DagsterInstance, partition: str | None = None, status: str = "") -> str:
    """A run that materialized `predictions`, or that is of that status."""
    models = dg.StaticPartitionsDefinition(["demo/strong", "demo/weak"])

    @dg.asset(name="predictions", partitions_def=models if partition else None)
    def asset() -> None:
        print("captured")

    if status:
        return instance.add_run(a_dagster_run(status)).run_id
    return dg.materialize([asset], instance=instance, partition_key=partition).run_id


def files_of(settings: Settings, run_id: str) -> list[Path]:
    return list((settings.data / "dagster").rglob(f"{run_id}*"))


def test_old_runs_go_but_for_those_of_the_latest_materializations(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    first, strong, weak = (a_run(instance, f"demo/{name}") for name in ("strong", "strong", "weak"))
    failed, queued = a_run(instance, status="FAILURE"), a_run(instance, status="QUEUED")
    held = a_run(instance, status="CANCELED")

    with hold_run_lock(settings.journal, held):
        runs = forgettable_runs(settings, LATER)
        young = forgettable_runs(settings, now() - timedelta(hours=1))

    assert set(runs) == {first, failed}
    assert young == []
    assert forget_runs(settings, [*runs, queued]) == 2
    left = {run.run_id for run in instance.get_runs()}
    assert left == {strong, weak, queued, held}
    assert not files_of(settings, first) and files_of(settings, strong)
    assert instance.get_materialized_partitions(dg.AssetKey("predictions")) == {
        "demo/strong",
        "demo/weak",
    }


def test_prune_says_what_would_go_and_does_it_only_if_that_is_meant(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    young = a_run(instance, status="FAILURE")
    old = a_run(instance, status="FAILURE")
    storage = instance.run_storage
    with storage.connect() as db:  # type: ignore[attr-defined]
        long_ago = (now() - timedelta(days=100)).replace(tzinfo=None)
        db.exec_driver_sql(
            "update runs set update_timestamp = ? where run_id = ?", (str(long_ago), old)
        )

    unsure = call(settings.root, "evals prune --history")
    sure = call(settings.root, "evals prune --history --yes --json")

    assert (unsure.returncode, "1 runs that ended before" in unsure.stdout) == (2, True)
    assert json.loads(sure.stdout) == {"forgotten": 1}
    assert [run.run_id for run in instance.get_runs()] == [young]


def test_a_folder_from_the_environment_is_meant_from_the_project_root(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (settings.root / "sub").mkdir()
    (settings.root / "dagster.yaml").write_text("storage: {sqlite: {base_dir: {env: HISTORY}}}")
    monkeypatch.chdir(settings.root / "sub")
    monkeypatch.setenv("HISTORY", "kept")

    with instance_as_it_is(settings) as instance:
        run_id = a_run(instance)

    assert (settings.root / "kept" / "history" / "runs" / f"{run_id}.db").exists()
    assert look_at_queue(settings) is not None


def test_what_is_wrong_in_dagster_yaml_is_told_with_the_name_of_the_file_or_entry(
    settings: Settings,
) -> None:
    for wrong, told in (("storage: [", "dagster.yaml"), ("storage: {sqlite: {}}", "base_dir")):
        (settings.root / "dagster.yaml").write_text(wrong)

        with pytest.raises(Exception, match=told) as raised, instance_as_it_is(settings):
            pass
        assert not isinstance(raised.value, KeyError)

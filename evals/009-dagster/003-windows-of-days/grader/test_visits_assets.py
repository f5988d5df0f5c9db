"""Partitions are materialized in process, with an I/O manager that knows what was asked of it."""

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from visits_assets import Counts, visits, visits_trend, weekly_visits

INSTANCE = dg.DagsterInstance.ephemeral()
# Every day has its own power of two, so that a sum tells which days are in it.
NUMBERS = {(date(2024, 3, 1) + timedelta(days=n)).isoformat(): 2**n for n in range(28)}


class Memory(dg.IOManager):
    """Stored visits by partition; loads partitions in the manner of FilesystemIOManager."""

    def __init__(self, stored: dict[str, int]) -> None:
        self.stored = stored
        self.loaded: set[str] = set()

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        pass

    def load_input(self, context: dg.InputContext) -> Any:
        keys = list(context.asset_partition_keys)
        self.loaded.update(keys)
        values = {key: self.stored[key] for key in keys}
        return values if len(keys) > 1 else values[keys[0]]


def run(asset: Any, key: str, memory: Memory, counts: Path) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [visits, visits_trend, weekly_visits],
        selection=[asset],
        partition_key=key,
        instance=INSTANCE,
        resources={"counts": Counts(path=str(counts)), "io_manager": memory},
        raise_on_error=False,
    )


def value(asset: dg.AssetsDefinition, key: str, memory: Memory) -> Any:
    """What the asset makes of the stored visits, where there is no file of counts."""
    result = run(asset, key, memory, Path("no-such-file.json"))
    assert result.success
    return result.output_for_node(asset.key.to_user_string())


def march(*days: int) -> dict[str, int]:
    return {f"2024-03-{day:02}": NUMBERS[f"2024-03-{day:02}"] for day in days}


def test_visits_are_the_number_of_the_day_or_zero(tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    counts.write_text(json.dumps({"2024-03-04": 8, "2024-03-06": 5}), encoding="utf-8")

    known = run(visits, "2024-03-04", Memory({}), counts)
    unknown = run(visits, "2024-03-05", Memory({}), counts)

    assert known.output_for_node("visits") == 8
    assert unknown.output_for_node("visits") == 0


@pytest.mark.parametrize(
    ("asset", "keys"),
    [
        (visits, ["2024-03-01", "2024-03-02", "2024-03-03"]),
        (visits_trend, ["2024-03-03", "2024-03-04", "2024-03-05"]),
        (weekly_visits, ["2024-03-04", "2024-03-11", "2024-03-18"]),
    ],
)
def test_the_first_partitions_are_those_asked_for(asset: Any, keys: list[str]) -> None:
    assert list(asset.partitions_def.get_partition_keys()[:3]) == keys


@pytest.mark.parametrize("asset", [visits, visits_trend, weekly_visits])
def test_partitions_begin_at_midnight_utc(asset: Any) -> None:
    start = asset.partitions_def.get_first_partition_window().start

    assert (start.hour, start.minute, start.utcoffset()) == (0, 0, timedelta(0))


def test_the_trend_is_the_mean_of_the_day_and_the_two_before_it() -> None:
    trend = value(visits_trend, "2024-03-07", Memory(NUMBERS))

    assert isinstance(trend, float)
    assert trend == pytest.approx(sum(march(5, 6, 7).values()) / 3)


def test_the_first_trend_has_a_full_window() -> None:
    assert value(visits_trend, "2024-03-03", Memory(march(1, 2, 3))) == pytest.approx(7 / 3)


def test_days_without_a_visit_count_in_the_mean() -> None:
    memory = Memory({"2024-03-08": 0, "2024-03-09": 6, "2024-03-10": 0})

    assert value(visits_trend, "2024-03-10", memory) == pytest.approx(2.0)


def test_a_trend_needs_its_three_days_and_no_other() -> None:
    memory = Memory(march(8, 9, 10))

    value(visits_trend, "2024-03-10", memory)

    assert memory.loaded == set(march(8, 9, 10))


def test_a_week_is_the_sum_from_monday_to_sunday() -> None:
    week = value(weekly_visits, "2024-03-11", Memory(NUMBERS))

    assert week == sum(march(*range(11, 18)).values())


def test_a_week_needs_its_seven_days_and_no_other() -> None:
    memory = Memory(march(*range(4, 11)))

    value(weekly_visits, "2024-03-04", memory)

    assert memory.loaded == set(march(*range(4, 11)))


@pytest.mark.parametrize(
    ("asset", "key"), [(visits_trend, "2024-03-07"), (weekly_visits, "2024-03-04")]
)
def test_a_day_that_is_not_stored_yet_fails_the_run(asset: Any, key: str) -> None:
    memory = Memory(march(4, 5, 7, 8, 9, 10))

    assert not run(asset, key, memory, Path("no-such-file.json")).success

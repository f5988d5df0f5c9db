"""Visits a day, their trend over three days, and their sum over a week."""

import json
from datetime import date, timedelta
from pathlib import Path

import dagster as dg

MONDAY = 1


class Counts(dg.ConfigurableResource[None]):
    """A JSON file with the number of visits by date."""

    path: str

    def on(self, day: str) -> int:
        numbers: dict[str, int] = json.loads(Path(self.path).read_text(encoding="utf-8"))
        return numbers.get(day, 0)


@dg.asset(partitions_def=dg.DailyPartitionsDefinition(start_date="2024-03-01"))
def visits(context: dg.AssetExecutionContext, counts: Counts) -> int:
    """How many visits the day had."""
    return counts.on(context.partition_key)


@dg.asset(
    # It begins where the first full window ends.
    partitions_def=dg.DailyPartitionsDefinition(start_date="2024-03-03"),
    ins={"visits": dg.AssetIn(partition_mapping=dg.AllPartitionMapping())},
)
def visits_trend(context: dg.AssetExecutionContext, visits: dict[str, int]) -> float:
    """The mean of the day and the two days before it."""
    day = date.fromisoformat(context.partition_key)
    days = [(day - timedelta(days=back)).isoformat() for back in range(3)]
    return sum(visits[day] for day in days) / 3


@dg.asset(
    partitions_def=dg.WeeklyPartitionsDefinition(start_date="2024-03-04", day_offset=MONDAY),
)
def weekly_visits(visits: dict[str, int]) -> int:
    """How many visits the week had."""
    return sum(visits.values())

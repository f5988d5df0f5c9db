"""Visits a day, their trend over three days, and their sum over a week."""

import json
from pathlib import Path

import dagster as dg


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
    ins={"visits": dg.AssetIn(partition_mapping=dg.TimeWindowPartitionMapping(start_offset=-2))},
)
def visits_trend(visits: dict[str, int]) -> float:
    """The mean of the day and the two days before it."""
    return sum(visits.values()) / len(visits)


@dg.asset(
    partitions_def=dg.WeeklyPartitionsDefinition(start_date="2024-03-04"),
)
def weekly_visits(visits: dict[str, int]) -> int:
    """How many visits the week had."""
    return sum(visits.values())

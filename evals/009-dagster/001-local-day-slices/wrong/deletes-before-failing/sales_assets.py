"""Daily sales by the Berlin calendar, one partition a day."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import dagster as dg
import duckdb

CREATE = """
    CREATE TABLE IF NOT EXISTS daily_sales (day DATE, sales INTEGER, revenue DECIMAL(18, 2))
"""
INSERT = """
    INSERT INTO daily_sales
    SELECT $day, count(*), coalesce(sum(amount), 0)
    FROM raw_sales
    WHERE sold_at >= $start AND sold_at < $end
    RETURNING sales
"""

berlin_days = dg.DailyPartitionsDefinition(start_date="2024-01-01", timezone="Europe/Berlin")


class Warehouse(dg.ConfigurableResource[None]):
    """A DuckDB file."""

    path: str

    @contextmanager
    def connect(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that is closed at the end."""
        with duckdb.connect(self.path) as con:
            yield con


@dg.asset(partitions_def=berlin_days)
def daily_sales(
    context: dg.AssetExecutionContext, warehouse: Warehouse
) -> dg.MaterializeResult[None]:
    """One row per day: how many sales there were and what they came to."""
    day, window = context.partition_key, context.partition_time_window
    bounds = {"start": _utc(window.start), "end": _utc(window.end)}
    with warehouse.connect() as con:
        con.execute(CREATE)
        con.execute("DELETE FROM daily_sales WHERE day = $day", {"day": day})
        ((sales,),) = con.execute(INSERT, {"day": day, **bounds}).fetchall()
    return dg.MaterializeResult(metadata={"sales": sales})


def _utc(moment: datetime) -> datetime:
    """The moment as raw_sales writes it."""
    return moment.astimezone(UTC).replace(tzinfo=None)

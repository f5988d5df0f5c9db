"""Adds up meter readings by the calendar day of a time zone."""

import pandas as pd


def daily_usage(readings: pd.Series, zone: str) -> pd.Series:
    """The sum of each local day; NaN where there is nothing to add up."""
    index = pd.DatetimeIndex(readings.index)
    # Wall-clock time without its zone: from here on every day has 24 hours and a midnight.
    days = index.tz_convert(zone).tz_localize(None).normalize().rename("day")
    totals = readings.groupby(days).sum(min_count=1).rename("kwh")
    if totals.empty:
        return totals
    return totals.reindex(pd.date_range(days.min(), days.max(), freq="D", name="day"))

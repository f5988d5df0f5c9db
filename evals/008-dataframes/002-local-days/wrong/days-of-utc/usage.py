"""Adds up meter readings by the calendar day of a time zone."""

import pandas as pd


def daily_usage(readings: pd.Series, zone: str) -> pd.Series:
    """The sum of each local day; NaN where there is nothing to add up."""
    daily = readings.sort_index().resample("D").sum(min_count=1)
    days = pd.DatetimeIndex(daily.index).tz_convert(zone).normalize().tz_localize(None)
    return daily.set_axis(days.rename("day")).rename("kwh")
